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
  #watching: NodeJS.Timeout | null = null;

  /** `mark`: a `NAME=value` in the environment of the process, and of no other. */
  constructor(pid: number, mark: string) {
    this.#pid = pid;
    this.#mark = mark;
  }

  /** Remembers what it starts from now on, until it is ended. */
  watch(): void {
    if (process.platform === "win32") return;
    const own = process.platform === "linux" ? procStat(this.#pid) : null;
    if (own) this.#seen.set(keyOf(own), own);
    const look = (): void => {
      if (process.platform === "linux") this.#seeChildren();
      else void this.members();
    };
    this.#watching ??= setInterval(look, WATCH_MS).unref();
  }

  /** Those below the ones that were seen and still run, without a look at any other process. */
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
    this.#seen.clear();
    for (const [key, one] of found) this.#seen.set(key, one);
  }

  /** Those that run now, except for zombies. */
  async members(): Promise<readonly Process[]> {
    if (process.platform === "win32") return [];
    const table = await processTable();
    const isMarked = marked(this.#mark);
    // It is the leader of its group and its session.
    const isMember = (one: Process): boolean =>
      [one.pid, one.group, one.session].includes(this.#pid) || this.#seen.has(keyOf(one)) || isMarked(one.pid);
    const found = new Set(table.filter((one) => one.pid !== process.pid && isMember(one)));
    for (let size = -1; size !== found.size; ) {
      size = found.size;
      const pids = new Set([...found].map(({ pid }) => pid));
      for (const one of table) if (pids.has(one.parent) && one.pid !== process.pid) found.add(one);
    }
    for (const one of found) this.#seen.set(keyOf(one), one);
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
    for (const [signal, ms] of [
      ["SIGTERM", graceMs],
      ["SIGKILL", KILLED_MS],
    ] as const) {
      const until = performance.now() + ms;
      let members = await this.members();
      if (signal === "SIGTERM") send(members, signal);
      while (members.length > 0) {
        // Again and again: a process may start another while it is being killed.
        if (signal === "SIGKILL") send(members, signal);
        if (performance.now() >= until) break;
        await passed(LOOK_MS);
        members = await this.members();
      }
      if (members.length === 0) return;
    }
  }
}

function send(processes: readonly Process[], signal: NodeJS.Signals): void {
  for (const { pid } of processes) {
    try {
      process.kill(pid, signal);
    } catch (error) {
      // It has ended, or runs as another user now.
      const { code } = error as NodeJS.ErrnoException;
      if (code !== "ESRCH" && code !== "EPERM") throw error;
    }
  }
}

const keyOf = ({ pid, started }: Process): string => `${pid} ${started}`;

function marked(mark: string): (pid: number) => boolean {
  if (process.platform !== "linux") return () => false;
  return (pid) => {
    try {
      return readFileSync(`/proc/${pid}/environ`, "latin1").split("\0").includes(mark);
    } catch {
      // Another user's, or ended.
      return false;
    }
  };
}

async function processTable(): Promise<Process[]> {
  if (process.platform === "linux")
    return readdirSync("/proc").flatMap((name) => (/^\d+$/u.test(name) ? (procStat(Number(name)) ?? []) : []));
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
  return (await processTable()).find((one) => one.pid === pid)?.started ?? null;
}

/** Those that its threads have started, and that have not lost it. */
function childrenOf(pid: number): number[] {
  const reading = <T>(read: () => T[]): T[] => {
    try {
      return read();
    } catch {
      // It has ended, or this kernel does not tell.
      return [];
    }
  };
  return reading(() => readdirSync(`/proc/${pid}/task`)).flatMap((thread) =>
    reading(() => readFileSync(`/proc/${pid}/task/${thread}/children`, "utf8").split(" "))
      .filter((one) => one !== "")
      .map(Number),
  );
}

function procStat(pid: number): Process | null {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, "utf8");
    // The process name, in parentheses, may contain anything.
    const fields = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
    const [state, parent, group, session] = fields;
    if (state === "Z" || state === "X") return null;
    return { pid, parent: Number(parent), group: Number(group), session: Number(session), started: fields[19]! };
  } catch {
    // It has ended.
    return null;
  }
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
