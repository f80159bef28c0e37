import { basename } from "node:path";
import type { Agent } from "../contract/agent.ts";
import type { FoundSession } from "../diagnosis/sessions.ts";
import { type Alarm, sessionAlarm, silentWords, writersWords } from "./alarm.ts";
import { type AgentProcess, listProcesses, writersOf } from "./processes.ts";

/** What processes say that files do not: an agent that works and writes nothing, and two that write to one session. */

/** How long an agent may work without a word in its files, and how much of the processor it uses if it works. */
export interface SilenceLimits {
  readonly ms: number;
  readonly cpuMs: number;
}

export const SILENCE: SilenceLimits = { ms: 10 * 60_000, cpuMs: 30_000 };

/** What is known of a session that may be written to. */
export interface SeenSession {
  readonly found: FoundSession;
  /** When it grew last; null if it has not since it is followed. */
  readonly grownAt: number | null;
}

export interface ProcessTable {
  list(agents: readonly Agent[]): readonly AgentProcess[];
  writers(paths: ReadonlySet<string>): ReadonlyMap<string, readonly number[]>;
}

export const SYSTEM_PROCESSES: ProcessTable = { list: listProcesses, writers: writersOf };

export class Activity {
  readonly #processes: ProcessTable;
  readonly #limits: SilenceLimits;
  /** For each process: since when it has written nothing, and how much it had worked by then. */
  readonly #silent = new Map<string, { readonly since: number; readonly cpuMs: number; isSaid: boolean }>();
  readonly #shared = new Set<string>();

  constructor(processes: ProcessTable = SYSTEM_PROCESSES, limits: SilenceLimits = SILENCE) {
    this.#processes = processes;
    this.#limits = limits;
  }

  /** A process of the agent that has just started in the folder of the session. */
  newcomer(found: FoundSession, ageMsMax: number): AgentProcess | null {
    const started = this.#processes.list([found.agent]).filter(({ ageMs }) => ageMs <= ageMsMax);
    return started.find(({ folder }) => isOfFolder(found, folder)) ?? null;
  }

  /** Looks at all processes: cheap enough for twice a minute. */
  *look(agents: readonly Agent[], sessions: readonly SeenSession[], now: number): Generator<Alarm> {
    const processes = this.#processes.list(agents);
    const keys = new Set<string>();
    for (const process of processes) {
      const key = `${process.pid} ${process.started}`;
      keys.add(key);
      const grownAt = Math.max(0, ...sessionsOf(process, sessions).map((session) => session.grownAt ?? 0));
      const known = this.#silent.get(key);
      if (!known || grownAt > known.since) {
        this.#silent.set(key, { since: now, cpuMs: process.cpuMs, isSaid: known?.isSaid ?? false });
        continue;
      }
      const ms = now - known.since;
      if (known.isSaid || ms < this.#limits.ms || process.cpuMs - known.cpuMs < this.#limits.cpuMs) continue;
      known.isSaid = true;
      const agent = agents.find(({ name }) => name === process.agent)!;
      const words = silentWords(agent.title, process, Math.round(ms / 60_000));
      yield { kind: "silent", agent: agent.name, session: null, path: null, words };
    }
    for (const key of this.#silent.keys()) if (!keys.has(key)) this.#silent.delete(key);
  }

  /** Sessions that several processes have open to write. Said once, until it is only one again. */
  *writers(sessions: readonly SeenSession[]): Generator<Alarm> {
    const byPath = new Map(
      sessions.flatMap(({ found }) => (found.session.isShared ? [] : [[found.session.path, found]])),
    );
    const writers = this.#processes.writers(new Set(byPath.keys()));
    for (const [path, found] of byPath) {
      const pids = writers.get(path) ?? [];
      if (pids.length < 2) this.#shared.delete(path);
      else if (!this.#shared.has(path)) {
        this.#shared.add(path);
        yield sessionAlarm("second-writer", found, writersWords(path, pids));
      }
    }
  }
}

/** The sessions of the folder that the process works in; all of the agent's, if their places do not say folders. */
function sessionsOf({ agent, folder }: AgentProcess, sessions: readonly SeenSession[]): readonly SeenSession[] {
  const own = sessions.filter(({ found }) => found.agent.name === agent);
  const here = own.filter(({ found }) => isOfFolder(found, folder));
  return here.length > 0 ? here : own;
}

/** Agents name a folder after the path of another, or after its last part. */
function isOfFolder({ session }: FoundSession, folder: string): boolean {
  const names = [plainName(folder), plainName(basename(folder))];
  // Further up is the home of the user, which may have the name of any folder.
  const own = session.path.split("/").slice(-4);
  return session.folder === folder || own.some((name) => names.includes(plainName(name)));
}

const plainName = (path: string): string => path.replaceAll(/[^a-zA-Z0-9]+/g, "-").replaceAll(/^-|-$/g, "");
