import { execFile } from "node:child_process";
import { readdirSync, readFileSync } from "node:fs";
import { setTimeout as passed } from "node:timers/promises";

/** A process, distinguishable from a later one with the same pid. */
interface Process {
  readonly pid: number;
  readonly parent: number;
  readonly group: number;
  /** Its session, where the system tells. */
  readonly session: number | null;
  readonly started: string;
}

const LOOK_MS = 25;
/**
 * How often a running family is looked at. On Linux that takes a few small reads for each process of the family: less
 * than 1 ms for an agent with 7 threads and 3 processes below it. Elsewhere it takes a run of `ps`.
 */
const WATCH_MS = process.platform === "linux" ? 250 : 5_000;
/** How long the kernel may take to remove what was killed. */
const KILLED_MS = 2_000;

/**
 * A process and everything that it started, also what has left its group, or lost its parent. Such processes are found
 * by an environment variable on Linux, and by having been seen as descendants once: a program can clear or overwrite
 * its environment.
 */
export class ProcessFamily {
  readonly #pid: number;
  readonly #mark: string;
  readonly #seen = new Map<string, Process>();
  /** Those that it or one of its processes began, so that nothing else is in them, and that are not empty. */
  #sessions: ReadonlySet<number>;
  #watching: NodeJS.Timeout | null = null;

  /** `mark`: a `NAME=value` in the environment of the process, and of no other. */
  constructor(pid: number, mark: string) {
    this.#pid = pid;
    this.#mark = mark;
    this.#sessions = new Set([pid]);
  }

  /** Remembers what it starts from now on, until it is ended. */
  watch(): void {
    if (process.platform === "win32") return;
    const look = (): void => {
      if (process.platform === "linux") orNull(() => this.#seeChildren());
      else void this.members();
    };
    const own = process.platform === "linux" ? orNull(() => procStat(this.#pid)) : null;
    if (own) this.#seen.set(keyOf(own), own);
    this.#watching ??= setInterval(look, WATCH_MS).unref();
  }

  /** Those below the ones that were seen and still run. Others are looked at only when a session seems to be empty. */
  #seeChildren(): void {
    const running = [...this.#seen.values()].flatMap(({ pid }) => procStat(pid) ?? []);
    const found = new Map(running.map((one) => [keyOf(one), one] as const).filter(([key]) => this.#seen.has(key)));
    for (const { pid } of found.values()) {
      for (const child of childrenOf(pid)) {
        const one = procStat(child);
        // Another process may have its pid by now.
        if (one?.parent === pid) found.set(keyOf(one), one);
      }
    }
    const sessions = new Set([...found.values()].map(sessionOf));
    // Something may be left there that was started since the last look.
    if ([...this.#sessions].some((session) => !sessions.has(session)))
      for (const one of this.#among(procTable(), () => false)) found.set(keyOf(one), one);
    this.#remember(found.values());
  }

  /** Those that run now, except for zombies. Null if that cannot be told: no descriptor is free at the moment. */
  async members(): Promise<readonly Process[] | null> {
    if (process.platform === "win32") return [];
    const table = process.platform === "linux" ? orNull(procTable) : await psTable();
    const found = table && orNull(() => this.#among(table, marked(this.#mark)));
    if (found) this.#remember(found);
    return found;
  }

  #remember(running: Iterable<Process>): void {
    this.#seen.clear();
    const sessions = new Set([this.#pid]);
    for (const one of running) {
      this.#seen.set(keyOf(one), one);
      const session = sessionOf(one);
      // One that another program began is not ours, even if a member is in it.
      if (one.pid === session || this.#sessions.has(session)) sessions.add(session);
    }
    this.#sessions = sessions;
  }

  #among(table: readonly Process[], isMarked: (pid: number) => boolean): readonly Process[] {
    const isMember = (one: Process): boolean =>
      one.pid === this.#pid || this.#sessions.has(sessionOf(one)) || this.#seen.has(keyOf(one)) || isMarked(one.pid);
    const found = new Set(table.filter((one) => one.pid !== process.pid && isMember(one)));
    for (let size = -1; size !== found.size; ) {
      size = found.size;
      const pids = new Set([...found].map(({ pid }) => pid));
      for (const one of table) if (pids.has(one.parent) && one.pid !== process.pid) found.add(one);
    }
    return [...found];
  }

  /** Ends all of them: SIGTERM, and SIGKILL for those that are left. Resolves when none is left. */
  async end(graceMs: number): Promise<void> {
    if (this.#watching) clearInterval(this.#watching);
    this.#watching = null;
    if (process.platform === "win32") {
      await output("taskkill", ["/pid", String(this.#pid), "/t", "/f"]);
      return;
    }
    const told = new Set<string>();
    // Twice in a row: a process that is just becoming another program has no environment for a moment.
    for (const [signal, ms] of [
      ["SIGTERM", graceMs],
      ["SIGKILL", KILLED_MS],
    ] as const) {
      const until = performance.now() + ms;
      for (let empty = 0; ; ) {
        const members = await this.members();
        empty = members?.length === 0 ? empty + 1 : 0;
        if (empty === 2) return;
        for (const one of members ?? []) {
          // SIGKILL again and again: a process may start another while it is being killed.
          if (signal === "SIGKILL" || !told.has(keyOf(one))) send(one, signal);
          told.add(keyOf(one));
        }
        if (performance.now() >= until) break;
        await passed(LOOK_MS);
      }
    }
  }
}

function send({ pid }: Process, signal: NodeJS.Signals): void {
  try {
    process.kill(pid, signal);
  } catch (error) {
    // It has ended, or runs as another user now.
    if (!isErrno(error, ["ESRCH", "EPERM"])) throw error;
  }
}

const keyOf = ({ pid, started }: Process): string => `${pid} ${started}`;
/** Where the system does not tell the session, a part of it. */
const sessionOf = ({ session, group }: Process): number => session ?? group;

/** Null while no descriptor is free: then nothing can be told about any process. */
function orNull<T>(look: () => T): T | null {
  try {
    return look();
  } catch (error) {
    if (!isErrno(error, ["EMFILE", "ENFILE"])) throw error;
    return null;
  }
}

function isErrno(error: unknown, codes: readonly string[]): boolean {
  return codes.includes((error as NodeJS.ErrnoException).code ?? "");
}

/** A file in `/proc`; null if the process has ended, or is another user's. */
function procFile(path: string): string | null {
  try {
    return readFileSync(path, "latin1");
  } catch (error) {
    if (isErrno(error, ["ENOENT", "ESRCH", "EACCES", "EPERM"])) return null;
    throw error;
  }
}

function marked(mark: string): (pid: number) => boolean {
  if (process.platform !== "linux") return () => false;
  return (pid) => procFile(`/proc/${pid}/environ`)?.split("\0").includes(mark) === true;
}

function procTable(): Process[] {
  return readdirSync("/proc").flatMap((name) => (/^\d+$/u.test(name) ? (procStat(Number(name)) ?? []) : []));
}

async function psTable(): Promise<Process[]> {
  const text = await output("ps", ["-A", "-o", "pid=,ppid=,pgid=,stat=,lstart="]);
  return text.split("\n").flatMap((line) => {
    const [, pid, parent, group, state, started] = /^(\d+)\s+(\d+)\s+(\d+)\s+(\S+)\s+(\S.*)$/u.exec(line.trim()) ?? [];
    if (state === undefined || state.startsWith("Z")) return [];
    return [{ pid: Number(pid), parent: Number(parent), group: Number(group), session: null, started: started! }];
  });
}

/** When this process started; null if it does not run. */
export async function startOf(pid: number): Promise<string | null> {
  if (process.platform === "win32") return null;
  if (process.platform === "linux") return procStat(pid)?.started ?? null;
  return (await psTable()).find((one) => one.pid === pid)?.started ?? null;
}

/** Those that its threads have started, and that have not lost it. None if this kernel does not tell. */
function childrenOf(pid: number): number[] {
  let threads: string[];
  try {
    threads = readdirSync(`/proc/${pid}/task`);
  } catch (error) {
    if (isErrno(error, ["ENOENT", "ESRCH"])) return [];
    throw error;
  }
  return threads.flatMap((thread) =>
    (procFile(`/proc/${pid}/task/${thread}/children`) ?? "").split(" ").filter(Boolean).map(Number),
  );
}

function procStat(pid: number): Process | null {
  const stat = procFile(`/proc/${pid}/stat`);
  if (stat === null) return null;
  // The process name, in parentheses, may contain anything.
  const fields = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
  const [state, parent, group, session] = fields;
  if (state === "Z" || state === "X") return null;
  return { pid, parent: Number(parent), group: Number(group), session: Number(session), started: fields[19]! };
}

function output(command: string, given: readonly string[]): Promise<string> {
  // Start times are compared as text.
  const env = { ...process.env, LC_ALL: "C", TZ: "UTC" };
  return new Promise((resolve) => {
    execFile(command, given, { env, maxBuffer: 16 * 1024 * 1024, windowsHide: true }, (_error, stdout) =>
      resolve(stdout),
    );
  });
}
