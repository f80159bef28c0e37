import { existsSync, statSync } from "node:fs";
import { basename, join, resolve } from "node:path";
import { AGENTS, type Agent, Door, Refused, type WrittenSession, writeNewFiles } from "@holdfast/doctor";
import { openStore, type Store } from "holdfast";
import type { Flags } from "../config.ts";
import { CommandError, EXIT } from "../exit.ts";
import { homeFolder } from "../home.ts";
import { familyOf } from "../store/children.ts";
import { withStore } from "../store/open.ts";
import { partOfId, resolveId } from "../store/session-id.ts";
import { plainLine } from "../terminal/plain.ts";
import { dialectNamed } from "../transcript/known-dialects.ts";
import { shellQuoted } from "../typed-command.ts";
import { importSession, sessionsNamed } from "./import.ts";
import { toTransfer } from "./transfer.ts";

/** Moves a session to another agent: into the agent's own folder, by its own rules. */

export interface MoveRequest {
  readonly given: string;
  readonly to: string;
  readonly cwd: string | undefined;
  /** A file, or a folder that is there. */
  readonly out: string | undefined;
  readonly redact: boolean;
  readonly isDryRun: boolean;
}

export interface MovedSession {
  /** As the other agent calls it. */
  readonly id: string;
  readonly agent: string;
  /** The session that was moved, or the file of the agent that it came from. */
  readonly from: string;
  readonly cwd: string;
  readonly files: readonly string[];
  /** What to type to go on; empty if the files are not where the agent looks for them. */
  readonly resume: readonly string[];
  readonly leftOut: readonly string[];
  readonly written: boolean;
}

/** The agents that sessions can be moved to. */
export const targets = (): string[] => AGENTS.flatMap(({ name, write }) => (write ? [name] : []));

export async function moveSession(request: MoveRequest, flags: Flags): Promise<MovedSession> {
  const target = AGENTS.find(({ name, write }) => name === request.to && write);
  if (!target)
    throw usage(
      `Sessions cannot be moved to "${plainLine(request.to).slice(0, 40)}". Use one of ${targets().join(", ")}.`,
    );
  return await withSource(request.given, flags, async (store, id, from, lost) => {
    const reading = await store.read(id);
    if (!dialectNamed(reading.attributes.dialect))
      throw usage(
        `Session ${id} has messages in "${plainLine(reading.attributes.dialect)}", which only its application knows.`,
      );
    const { cwd, redact, to } = request;
    const { transfer, leftOut } = toTransfer(reading, { to, cwd, redact, at: Date.now() });
    if (transfer.steps.length === 0) throw usage(`Session ${id} has no conversation yet.`);
    const children = (await familyOf(store, id)).length;
    const aside =
      children === 0
        ? []
        : [`${children} ${children === 1 ? "session" : "sessions"} of sub-agents: only what they answered is there`];
    using door = new Door();
    const home = homeFolder() ?? "/";
    const session = target.write!(transfer, process.env, home, door);
    const placed = placedFiles(session, request.out);
    if (request.out === undefined) refuseSecond(target, session, home, door);
    if (!request.isDryRun) writeNewFiles(placed);
    const files = placed.map(({ path }) => path);
    return {
      ...{ id: session.id, agent: target.name, from, cwd: transfer.cwd, files, written: !request.isDryRun },
      resume: resumeWords(session, request.out, files.at(-1)!, transfer.cwd),
      leftOut: [...lost, ...session.leftOut, ...leftOut, ...aside],
    };
  }).catch((error: unknown) => {
    if (!(error instanceof Refused)) throw error;
    const hint = request.out === undefined ? ' Give another place with "--out".' : "";
    throw new CommandError(
      EXIT.usage,
      "OUTPUT_EXISTS",
      `${plainLine(error.path)}: ${error.message}. Nothing was written.${hint}`,
    );
  });
}

type Work<T> = (store: Store, id: string, from: string, lost: readonly string[]) => Promise<T>;

/** A session of the store; else one of another agent, which is imported for the moment. */
async function withSource<T>(given: string, flags: Flags, work: Work<T>): Promise<T> {
  const isOwn = !existsSync(given) && (await isInStore(given, flags));
  if (isOwn) return await withStore(flags, async (store) => work(store, await resolveId(store, given), given, []));
  const found = await sessionsNamed(given);
  if (found.length > 1) {
    const ids = found.slice(0, 5).map(({ session }) => plainLine(session.id));
    throw usage(
      `There are ${found.length} sessions in ${plainLine(given)}: ${ids.join(", ")}${found.length > 5 ? ", …" : ""}. Give the id of one.`,
    );
  }
  const [{ session }] = found as [(typeof found)[0]];
  await using store = await openStore("memory:");
  using door = new Door();
  const { id, leftOut } = await importSession({ store, keepsFiles: false }, found[0]!, door, { isPassing: true });
  return await work(store, id, session.path, leftOut);
}

/** Whether the store has it, or what was typed can only be meant for the store. */
async function isInStore(given: string, flags: Flags): Promise<boolean> {
  if (/^(?:latest|-)$/i.test(given.trim())) return true;
  if (partOfId(given) === null) return false;
  return await withStore<boolean>(
    flags,
    async (store) =>
      await resolveId(store, given).then(
        () => true,
        (error: unknown) => {
          if (error instanceof CommandError && error.code === "SESSION_NOT_FOUND") return false;
          throw error;
        },
      ),
    () => false,
  );
}

/** Where each file goes. Of a session of one file, `out` may be that file. */
function placedFiles({ files }: WrittenSession, out: string | undefined) {
  const own = files.filter(({ name }) => name !== null);
  if (out === undefined)
    return files.map(({ path, name, text }) => ({ path: path ?? resolve(name!), text, mayExist: name === null }));
  const isFolder = existsSync(out) && statSync(out).isDirectory();
  if (isFolder || own.length > 1) return own.map(({ name, text }) => ({ path: join(resolve(out), name!), text }));
  return [{ path: resolve(out), text: own[0]!.text }];
}

/** The agent may keep it under another name by now. */
function refuseSecond(agent: Agent, { id, files }: WrittenSession, home: string, door: Door): void {
  if (files.at(-1)!.path === null) return;
  for (const folder of agent.homes(process.env, home))
    for (const session of agent.find(folder, door))
      if (session.id === id)
        throw new Refused(session.path, `${agent.title} has this session already, and it was not touched`);
}

function resumeWords({ files, resume }: WrittenSession, out: string | undefined, path: string, cwd: string): string[] {
  const takesFile = resume.some((words) => words.includes("{file}"));
  // Elsewhere, the agent does not find it by its id.
  if (out !== undefined && !takesFile) return [`# ${basename(path)} belongs to ${files.at(-1)!.path}`];
  const commands = resume.map((words) => words.map((word) => shellQuoted(word === "{file}" ? path : word)).join(" "));
  return [`cd ${shellQuoted(cwd)}`, ...commands];
}

const usage = (message: string): CommandError =>
  new CommandError(EXIT.usage, "USAGE", `${message} Nothing was written.`);
