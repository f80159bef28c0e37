import { execFile } from "node:child_process";
import { readdirSync, readFileSync } from "node:fs";
import { setTimeout as passed } from "node:timers/promises";
import type { ToolProcess } from "holdfast";

/** How long a group gets to exit before it is killed. */
const GRACE_MS = 3000;
const LOOK_MS = 25;

/** A process, distinguishable from any other with the same pid, past or future. */
interface Member {
  readonly pid: number;
  readonly group: number;
  readonly started: string;
}

/**
 * When this process started, in a form that no later process with the same pid shares; null if it is not running or
 * cannot be determined.
 */
export async function identify(pid: number): Promise<string | null> {
  if (!Number.isSafeInteger(pid) || pid <= 0) return null;
  if (process.platform === "linux") return procStat(pid)?.started ?? null;
  return (await table()).find((one) => one.pid === pid)?.started ?? null;
}

/** Whether the recorded process itself is running, not a later one with the same pid. */
export async function isRunning(recorded: ToolProcess): Promise<boolean> {
  return (await identify(recorded.pid)) === recorded.started;
}

/** The running members of a process group, without zombies. */
export async function membersOf(group: number): Promise<Member[]> {
  return (await table()).filter((one) => one.group === group);
}

/**
 * Ends the recorded process and its group: SIGTERM, then SIGKILL for what is left after the grace period. Does so only
 * if the recorded process or one of `known` (other members) is still running: otherwise the group may be someone
 * else's. Returns whether there was anything to end.
 */
export async function stopGroup(
  recorded: ToolProcess,
  { known = [], graceMs = GRACE_MS }: { readonly known?: readonly Member[]; readonly graceMs?: number } = {},
): Promise<boolean> {
  const { pid } = recorded;
  const isOurs = async (): Promise<boolean> => {
    if (await isRunning(recorded)) return true;
    const members = await membersOf(pid);
    return members.some((one) => known.some((other) => other.pid === one.pid && other.started === one.started));
  };
  if (pid <= 1 || !(await isOurs())) return false;
  // Taken before the first signal: these members identify the group once its leader has exited.
  const before = await membersOf(pid);
  await send(recorded, "SIGTERM");
  const end = performance.now() + graceMs;
  let left = await stillThere(recorded, before);
  while (left.length > 0 && performance.now() < end) {
    await passed(LOOK_MS);
    left = await stillThere(recorded, left);
  }
  if (left.length === 0) return true;
  await send(recorded, "SIGKILL");
  for (let tries = 0; left.length > 0 && tries < 200; tries++) {
    await passed(LOOK_MS);
    left = await stillThere(recorded, left);
  }
  return true;
}

/** The group's current members; empty if none of the earlier members is among them. */
async function stillThere({ pid, group }: ToolProcess, before: readonly Member[]): Promise<Member[]> {
  const now = group ? await membersOf(pid) : (await table()).filter((one) => one.pid === pid);
  const isContinued = now.some((one) => before.some((other) => other.pid === one.pid && other.started === one.started));
  return isContinued ? now : [];
}

async function send({ pid, group }: ToolProcess, signal: "SIGTERM" | "SIGKILL"): Promise<void> {
  if (process.platform === "win32") {
    await output("taskkill", ["/pid", String(pid), "/t", "/f"]);
    return;
  }
  try {
    process.kill(group ? -pid : pid, signal);
  } catch (error) {
    // It has already exited.
    if (!(error instanceof Error && "code" in error && error.code === "ESRCH")) throw error;
  }
}

interface OwnCommand {
  readonly process: ToolProcess;
  /** What the command left running in the background. */
  known: readonly Member[];
}

const ours = new Set<OwnCommand>();

/** Registers a process for `endProcesses`. */
export function keepTrack(process: ToolProcess): { leftBehind(known: readonly Member[]): void; forget(): void } {
  const started: OwnCommand = { process, known: [] };
  ours.add(started);
  return {
    leftBehind: (known) => {
      started.known = known;
    },
    forget: () => {
      ours.delete(started);
    },
  };
}

/**
 * Ends every process group that this agent started and that is still running, including what commands left in the
 * background. Called when the agent itself ends: SIGTERM, SIGHUP, close.
 */
export async function endProcesses(options: { readonly graceMs?: number } = {}): Promise<void> {
  const all = [...ours];
  for (const one of all) ours.delete(one);
  await Promise.all(all.map(({ process, known }) => stopGroup(process, { ...options, known })));
}

async function table(): Promise<Member[]> {
  if (process.platform === "linux") {
    return readdirSync("/proc").flatMap((name) => (/^\d+$/u.test(name) ? (procStat(Number(name)) ?? []) : []));
  }
  if (process.platform === "win32") return windowsTable();
  const text = await output("ps", ["-A", "-o", "pid=,pgid=,stat=,lstart="]);
  return text.split("\n").flatMap((line) => {
    const [, pid, group, state, started] = /^(\d+)\s+(\d+)\s+(\S+)\s+(\S.*)$/u.exec(line.trim()) ?? [];
    if (state === undefined || state.startsWith("Z")) return [];
    return [{ pid: Number(pid), group: Number(group), started: started! }];
  });
}

/** Windows has no process groups: each process counts as its own group. */
async function windowsTable(): Promise<Member[]> {
  const command =
    'Get-Process | ForEach-Object { try { "$($_.Id) $($_.StartTime.ToUniversalTime().Ticks)" } catch {} }';
  const text = await output("powershell", ["-NoProfile", "-NonInteractive", "-Command", command]);
  return text.split("\n").flatMap((line) => {
    const [, pid, started] = /^(\d+) (\d+)\s*$/u.exec(line) ?? [];
    return pid && started ? [{ pid: Number(pid), group: Number(pid), started }] : [];
  });
}

function output(command: string, given: readonly string[]): Promise<string> {
  // Start times are compared as text, so the locale and the time zone are fixed.
  const env = { ...process.env, LC_ALL: "C", TZ: "UTC" };
  return new Promise((resolve) => {
    execFile(command, given, { env, maxBuffer: 16 * 1024 * 1024, windowsHide: true }, (_error, stdout) =>
      resolve(stdout),
    );
  });
}

let bootId: string | null = null;

/** Identifies a process by boot and start tick, because pids are soon reused. Null if it has exited. */
function procStat(pid: number): Member | null {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, "utf8");
    // The process name, in parentheses, may contain anything.
    const fields = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
    const [state, , group] = fields;
    if (state === "Z" || state === "X") return null;
    bootId ??= readFileSync("/proc/sys/kernel/random/boot_id", "utf8").trim();
    return { pid, group: Number(group), started: `${bootId}/${fields[19]}` };
  } catch (error) {
    if (error instanceof Error && "code" in error) return null;
    throw error;
  }
}
