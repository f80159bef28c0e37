import { execFile } from "node:child_process";
import { readdirSync, readFileSync } from "node:fs";
import { setTimeout as passed } from "node:timers/promises";

/** A process, distinguishable from a later one with the same pid. */
interface Process {
  readonly pid: number;
  readonly parent: number;
  readonly group: number;
  readonly started: string;
}

const LOOK_MS = 25;
/** How long the kernel may take to remove what was killed. */
const KILLED_MS = 2_000;

/**
 * A process and everything that it started, also what has left its group, or lost its parent. Such processes are found
 * by an environment variable on Linux; elsewhere, those that were seen as descendants once.
 */
export class ProcessFamily {
  readonly #pid: number;
  readonly #mark: string;
  readonly #seen = new Map<string, Process>();

  /** `mark`: a `NAME=value` in the environment of the process, and of no other. */
  constructor(pid: number, mark: string) {
    this.#pid = pid;
    this.#mark = mark;
  }

  /** Those that run now, except for zombies. */
  async members(): Promise<readonly Process[]> {
    if (process.platform === "win32") return [];
    const table = await processTable();
    const isMarked = marked(this.#mark);
    const isMember = (one: Process): boolean =>
      one.pid === this.#pid || one.group === this.#pid || this.#seen.has(keyOf(one)) || isMarked(one.pid);
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
    return [{ pid: Number(pid), parent: Number(parent), group: Number(group), started: started! }];
  });
}

/** When this process started; null if it does not run. */
export async function startOf(pid: number): Promise<string | null> {
  if (process.platform === "win32") return null;
  return (await processTable()).find((one) => one.pid === pid)?.started ?? null;
}

function procStat(pid: number): Process | null {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, "utf8");
    // The process name, in parentheses, may contain anything.
    const fields = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
    const [state, parent, group] = fields;
    if (state === "Z" || state === "X") return null;
    return { pid, parent: Number(parent), group: Number(group), started: fields[19]! };
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
