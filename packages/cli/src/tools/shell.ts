import { type ChildProcess, spawn } from "node:child_process";
import { randomBytes } from "node:crypto";
import { once } from "node:events";
import { closeSync, mkdirSync, openSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import type { Writable } from "node:stream";
import type { ToolProcess } from "holdfast";
import type { ToolContext } from "./context.ts";
import { identify, keepTrack, membersOf, stopGroup } from "./groups.ts";
import { type OutputFiles, outputFiles, outputOf, safeName } from "./outputs.ts";
import { ended, printed } from "./processes.ts";
import { tail } from "./tail.ts";

export const TIMEOUT_SECONDS = 120;
export const TIMEOUT_SECONDS_MAX = 3600;
/** A command that prints without end is ended before it fills the disk. */
const LOG_BYTES_MAX = 256 * 1024 * 1024;

/**
 * Waits for a line on fd 3 before the command ($1) begins. If the agent dies first the pipe is closed, and the command never begins: so the process of every command that began is in the journal (R7b). The status is written
 * to $2.<pid>.exit when it has ended, whoever is there to see it.
 */
const GATED = `
tell() { printf '%s\\n' "$2" > "$1.$$.tmp" && mv -f "$1.$$.tmp" "$1.$$.exit"; }
read -r word <&3 && [ "$word" = begin ] || { tell "$2" not-begun; exit 125; }
exec 3<&-
sh -c "$1"
code=$?
tell "$2" "$code"
exit "$code"
`;

/** No terminal and nobody to answer: programs are told so, or they would wait. */
const UNATTENDED = { TERM: "dumb", PAGER: "cat", GIT_PAGER: "cat", GIT_TERMINAL_PROMPT: "0" };

interface ShellInput {
  readonly command: string;
  readonly timeoutSeconds?: number | undefined;
}

/** Runs the command to its end. Throws, in words, if it was stopped, took too long, or could not begin. */
export async function runShell(
  context: ToolContext,
  call: string,
  { command, timeoutSeconds = TIMEOUT_SECONDS }: ShellInput,
  signal?: AbortSignal,
): Promise<string> {
  if (signal?.aborted) throw new Error("The command was stopped before it began: it did not run.");
  if (command.includes("\0")) throw new Error("A command cannot hold a NUL character. It did not run.");
  mkdirSync(context.outputs, { recursive: true, mode: 0o700 });
  const waiting = await spawnAtGate(context, call, command);
  const { process: started, files } = waiting;
  const stopping = new Stopping(started);
  const tracked = keepTrack(started);
  const following = tail(
    files.log,
    (text) => context.output(call, text),
    (bytes) => {
      if (bytes > LOG_BYTES_MAX) stopping.stop(`printed more than ${LOG_BYTES_MAX / 1024 / 1024} MiB, and was ended`);
    },
  );
  const seconds = Math.min(timeoutSeconds, TIMEOUT_SECONDS_MAX);
  const timer = setTimeout(() => stopping.stop(`took longer than ${seconds} s, and was ended`), seconds * 1000);
  const abort = (): void => stopping.stop("was stopped");
  signal?.addEventListener("abort", abort, { once: true });
  let background: Awaited<ReturnType<typeof membersOf>> = [];
  try {
    const began = await letBegin(context, call, waiting, stopping);
    const { code, by } = await waiting.exit;
    await stopping.done;
    following.end();
    if (!began) throw new Error("The command was stopped before it began: it did not run.");
    if (started.group) background = await membersOf(started.pid);
    const output = outputOf(files);
    if (stopping.why !== null) throw new Error(`The command ${stopping.why}. ${printed(output)}`);
    if (code === null) throw new Error(`The command was ended from outside, by ${by}. ${printed(output)}`);
    return ended(output, { exitCode: code, background: background.length > 0 });
  } finally {
    clearTimeout(timer);
    signal?.removeEventListener("abort", abort);
    following.end();
    if (background.length > 0) tracked.leftBehind(background);
    else tracked.forget();
  }
}

/** Ends the group, once, for the first reason that there is. */
class Stopping {
  readonly #process: ToolProcess;
  why: string | null = null;
  done: Promise<unknown> = Promise.resolve();

  constructor(process: ToolProcess) {
    this.#process = process;
  }

  stop(why: string): void {
    if (this.why !== null) return;
    this.why = why;
    this.done = stopGroup(this.#process);
  }
}

interface AtGate {
  readonly process: ToolProcess;
  readonly files: OutputFiles;
  /** Null where there is none: the command runs already. */
  readonly gate: Writable | null;
  readonly exit: Promise<{ readonly code: number | null; readonly by: string | null }>;
}

/** Durable first, then the gate: else a command could run that nobody finds again. False if it was stopped meanwhile. Throws what the store says: then the command did not run. */
async function letBegin(context: ToolContext, call: string, waiting: AtGate, stopping: Stopping): Promise<boolean> {
  const { process: started, gate } = waiting;
  try {
    await context.process(call, started);
  } catch (error) {
    gate?.destroy();
    await stopGroup(started);
    throw error;
  }
  if (!gate) return true;
  if (stopping.why !== null) {
    gate.destroy();
    return false;
  }
  gate.end("begin\n");
  return true;
}

/** In a process group of its own, so that it can be ended as a whole and outlives the agent. What it prints goes straight to its log: nothing of that is lost with the agent. */
async function spawnAtGate({ outputs, cwd }: ToolContext, call: string, command: string): Promise<AtGate> {
  const isWindows = process.platform === "win32";
  const unnamed = join(outputs, `${safeName(call)}.${randomBytes(6).toString("hex")}.new`);
  const log = openSync(unnamed, "wx", 0o600);
  const env = { ...process.env, ...UNATTENDED };
  const child = isWindows
    ? spawn("cmd", ["/d", "/s", "/c", `"${command}"`], {
        ...{ cwd, env, windowsHide: true, windowsVerbatimArguments: true },
        stdio: ["ignore", log, log],
      })
    : spawn("sh", ["-c", GATED, "holdfast", command, join(outputs, safeName(call))], {
        ...{ cwd, env, detached: true },
        stdio: ["ignore", log, log, "pipe"],
      });
  closeSync(log);
  const exit = exitOf(child);
  try {
    await once(child, "spawn");
    const pid = child.pid!;
    const files = outputFiles(outputs, call, pid);
    // Of an earlier process that had this pid.
    rmSync(files.exit, { force: true });
    renameSync(unnamed, files.log);
    const started = await identify(pid);
    if (started === null) throw new Error("its process could not be identified (is there /proc, or ps?)");
    if (isWindows) void exit.then(({ code }) => writeFileSync(files.exit, `${(code ?? 1) & 255}\n`, { mode: 0o600 }));
    const gate = isWindows ? null : (child.stdio[3] as Writable);
    // A shell that was killed at the gate: its exit says so.
    gate?.on("error", () => gate.destroy());
    return { process: isWindows ? { pid, started } : { pid, started, group: true }, files, gate, exit };
  } catch (error) {
    child.kill("SIGKILL");
    rmSync(unnamed, { force: true });
    const why = error instanceof Error ? error.message : String(error);
    throw new Error(`The command could not begin: ${why}. It did not run.`, { cause: error });
  }
}

function exitOf(child: ChildProcess): AtGate["exit"] {
  return new Promise((resolve) => {
    child.once("exit", (code, by) => resolve({ code, by }));
    child.once("error", (error) => resolve({ code: null, by: error.message }));
  });
}
