import { existsSync } from "node:fs";
import { isAbsolute, join } from "node:path";
import { AGENTS, Door, type FoundSession, Refused, SessionIndex, type SessionOverview } from "@holdfast/doctor";
import { CommandError, EXIT } from "../exit.ts";
import { homeFolder } from "../home.ts";
import { makeOwnFolder } from "../own-folder.ts";
import { shortIds } from "../short-id.ts";
import { isPlain } from "../terminal/plain.ts";
import { progressOn } from "../terminal/progress.ts";
import { stateFolder } from "../trust/state-folder.ts";
import { shellQuoted, typedCommand } from "../typed-command.ts";
import type { AgentState } from "./agent-states.ts";

/** The sessions of other agents, in place: nothing is brought into the store, and no file of theirs is changed. */

export interface AgentSessionQuery {
  readonly here?: true | undefined;
  readonly app?: string | undefined;
  /** An ISO 8601 time. */
  readonly since?: string | undefined;
  readonly status?: AgentState | undefined;
}

/** What a user types for a session. Null if there is nothing that a shell would take as it is meant. */
export interface SessionCommands {
  /** Continues it in its own agent. */
  readonly resume: string | null;
  readonly import: string | null;
  /** Of a damaged one only; if no repair is known, it only shows what is wrong. */
  readonly repair: string | null;
}

export interface AgentSessions {
  readonly index: SessionIndex;
  /** Every session, newest first. */
  readonly all: readonly SessionOverview[];
  /** Folders that cannot be looked into, with the reasons. */
  readonly refused: readonly string[];
}

/**
 * Brings the index up to date, and uses it. `isWhole`: reads all of each session, for a search. Ctrl+C stops the
 * reading, keeps what was read, and ends the command.
 */
export async function withAgentSessions(isWhole: boolean, use: (sessions: AgentSessions) => Promise<void>) {
  let isOver = false;
  const onInterrupt = (): void => {
    isOver = true;
  };
  // A second one ends the command at once.
  process.once("SIGINT", onInterrupt);
  try {
    await SessionIndex.use(indexPath(), async (index) => {
      const refused: string[] = [];
      const incomplete = new Set<string>();
      let agent = "";
      const note = ({ path, message }: Refused): void => {
        refused.push(`${path}: ${message}`);
        incomplete.add(agent);
      };
      using run = new Door({}, null, note);
      const found: FoundSession[] = [];
      const home = homeFolder() ?? "/";
      for (const each of AGENTS) {
        agent = each.name;
        try {
          for (const root of new Set(each.homes(process.env, home)))
            for (const session of each.find(root, run)) found.push({ agent: each, session });
        } catch (error) {
          if (!(error instanceof Refused)) throw error;
          note(error);
        }
      }
      const progress = progressOn(process.stderr, found.length);
      let known = { done: 0, total: 0 };
      const onProgress = (done: number, total: number): void => {
        known = { done, total };
        if (total > 0) progress.show(found.length - total + done, "sessions indexed");
      };
      await index.refresh(found, { isWhole, run, incomplete, onProgress, isOver: () => isOver });
      progress.clear();
      if (isOver)
        process.stderr.write(`Stopped: ${known.total - known.done} sessions are left. What was read is kept.\n`);
      else await use({ index, all: await index.list(), refused });
    });
  } finally {
    process.off("SIGINT", onInterrupt);
  }
  if (isOver) process.kill(process.pid, "SIGINT");
}

/** Null if this user has no place for it: it is then in memory. */
function indexPath(): string | null {
  const state = stateFolder();
  return state === null ? null : join(makeOwnFolder(state, ["holdfast"]), "agent-sessions.sqlite");
}

export function stateOf({ unreadable, problems }: SessionOverview): AgentState {
  if (unreadable !== null) return "unreadable";
  return problems === null ? "unread" : problems.count > 0 ? "damaged" : "healthy";
}

/** Whether a session is asked for. Throws CommandError for an agent that does not exist. */
export function wantedBy({ here, app, since, status }: AgentSessionQuery): (session: SessionOverview) => boolean {
  if (app !== undefined && !AGENTS.some(({ name }) => name === app)) {
    const names = AGENTS.map(({ name }) => name).join(", ");
    throw new CommandError(EXIT.usage, "USAGE", `There is no agent "${app}". With --agents, --app takes ${names}.`);
  }
  const folder = here ? process.cwd() : null;
  const from = since === undefined ? Number.NEGATIVE_INFINITY : Date.parse(since);
  return (session) =>
    (folder === null || session.folder === folder) &&
    (app === undefined || session.agent === app) &&
    session.at >= from &&
    (status === undefined || stateOf(session) === status);
}

/** The shown ids, and the commands for each session. */
export class SessionWords {
  readonly #short: ReadonlyMap<string, string>;
  readonly #times = new Map<string, number>();

  constructor(all: readonly SessionOverview[]) {
    for (const { id } of all) this.#times.set(id, (this.#times.get(id) ?? 0) + 1);
    this.#short = shortIds([...this.#times.keys()]);
  }

  idOf({ id }: SessionOverview): string {
    return this.#short.get(id) ?? id;
  }

  commandsOf(session: SessionOverview): SessionCommands {
    const word = this.#wordFor(session);
    return {
      resume: resumeOf(session),
      import: word && typedCommand(`import ${word}`),
      repair:
        word && stateOf(session) === "damaged" ? `holdfast doctor ${hasRepair(session) ? "--fix " : ""}${word}` : null,
    };
  }

  /** What `import` and `doctor` find it by. */
  #wordFor(session: SessionOverview): string | null {
    const isOnly = this.#times.get(session.id) === 1;
    const word = isOnly && isTypable(session.id) ? this.idOf(session) : session.isShared ? null : session.path;
    return word !== null && isTypable(word) ? shellQuoted(word) : null;
  }
}

/** A text that a shell and a command take for what it is: visible, and no option. */
const isTypable = (word: string): boolean =>
  word !== "" && !word.startsWith("-") && isPlain(word) && !/[\n\t]/.test(word);

function resumeOf({ agent, id, path, folder }: SessionOverview): string | null {
  const words = AGENTS.find(({ name }) => name === agent)?.resume?.({ agent, id, path, parts: [] });
  if (!words || !isTypable(id) || !words.every((word) => isPlain(word) && !/[\n\t]/.test(word))) return null;
  const command = words.map(shellQuoted).join(" ");
  // Some find a session only in its own folder.
  const isThere = folder !== null && isAbsolute(folder) && isTypable(folder) && existsSync(folder);
  return isThere ? `cd ${shellQuoted(folder)} && ${command}` : null;
}

function hasRepair({ agent, problems }: SessionOverview): boolean {
  const repairs = AGENTS.find(({ name }) => name === agent)?.repairs;
  return problems?.kinds.some((kind) => repairs?.has(kind)) === true;
}
