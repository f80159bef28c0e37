import { type ChildProcess, spawn } from "node:child_process";
import { randomBytes } from "node:crypto";
import { once } from "node:events";
import { closeSync, existsSync, lstatSync, mkdirSync, openSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import type { Writable } from "node:stream";
import { setTimeout as passed } from "node:timers/promises";
import type { ToolProcess } from "holdfast";
import type { Environment } from "./environment.ts";
import { type OutputFiles, outputFiles, outputOf, safeName } from "./output-files.ts";
import { tail } from "./output-tail.ts";
import { identify, keepTrack, membersOf, stopGroup } from "./process-groups.ts";
import { endedResult, LEFT, printedResult } from "./surviving-commands.ts";

export const TIMEOUT_SECONDS = 120;
export const TIMEOUT_SECONDS_MAX = 3600;
/** A command that prints without end is ended before it fills the disk. */
const LOG_BYTES_MAX = 256 * 1024 * 1024;

/**
 * Waits for a line on fd 3 before the command ($1) begins. If the agent dies first the pipe is closed, and the command
 * never begins: so the process of every command that began is in the journal (R7b). The status is written
 * to $2.<pid>.exit when it has ended, whoever is there to see it; into a file that it makes itself (`set -C`), not
 * through a link that lies there.
 */
const GATED = `
tell() { rm -f "$1.$$.tmp"; (set -C; printf '%s\\n' "$2" > "$1.$$.tmp") && mv -f "$1.$$.tmp" "$1.$$.exit"; }
read -r word <&3 && [ "$word" = begin ] || { tell "$2" not-begun; exit 125; }
exec 3<&-
sh -c -- "$1"
code=$?
tell "$2" "$code"
exit "$code"
`;

/** How long a shell may take to notice that its gate is closed. */
const AT_GATE_MS = 2000;

/** No terminal and nobody to answer: programs are told so, or they would wait. */
const UNATTENDED = { TERM: "dumb", PAGER: "cat", GIT_PAGER: "cat", GIT_TERMINAL_PROMPT: "0" };

interface ShellInput {
  readonly command: string;
  readonly timeoutSeconds?: number | undefined;
}

/** What the shell tool may know of the agent that runs it. */
export interface ShellContext {
  /** The folder that the agent works in; an absolute, real path. */
  readonly cwd: string;
  /**
   * Where the whole output of a command is kept: `<call>.<pid>.log`, and `.exit` when it has ended. Made with 0700 on
   * demand.
   */
  readonly outputs: string;
  /** Records the process group of a call, durably; the command begins only after it (R7b). */
  readonly process: (call: string, process: ToolProcess) => Promise<void>;
  /** What a running command prints, for people. */
  readonly output: (call: string, text: string) => void;
  /** The variables of its commands (`commandEnvironment`). */
  readonly env: Environment;
}

/** Runs the command to its end. Throws, in words, if it was stopped, took too long, or could not begin. */
export async function runShell(
  context: ShellContext,
  call: string,
  { command, timeoutSeconds = TIMEOUT_SECONDS }: ShellInput,
  signal?: AbortSignal,
): Promise<string> {
  if (signal?.aborted) throw new Error("The command was stopped before it started: it did not run.");
  if (command.includes("\0")) throw new Error("A command cannot contain a NUL character. It did not run.");
  const waiting = await spawnAtGate(context, call, command);
  const { process: started, files } = waiting;
  const stopping = new Stopping(waiting);
  const tracked = keepTrack(started);
  const following = tail(
    files.log,
    (text) => context.output(call, text),
    (bytes) => {
      if (bytes > LOG_BYTES_MAX) stopping.stop(`printed more than ${LOG_BYTES_MAX / 1024 / 1024} MiB and was stopped`);
    },
  );
  const seconds = Math.min(timeoutSeconds, TIMEOUT_SECONDS_MAX);
  const timer = setTimeout(() => stopping.stop(`took longer than ${seconds} s and was stopped`), seconds * 1000);
  const abort = (): void => stopping.stop("was stopped");
  signal?.addEventListener("abort", abort, { once: true });
  // It may have fired while the shell was started, and does not tell it twice.
  if (signal?.aborted) abort();
  let background: Awaited<ReturnType<typeof membersOf>> = [];
  try {
    const began = await letBegin(context, call, waiting, stopping);
    const { code, by } = await waiting.exit;
    await stopping.done;
    following.end();
    if (!began) throw new Error("The command was stopped before it started: it did not run.");
    if (started.group) background = await membersOf(started.pid);
    const output = outputOf(files);
    if (stopping.why !== null) throw new Error(`The command ${stopping.why}. ${printedResult(output)}`);
    const left = background.length > 0 ? ` ${LEFT}` : "";
    if (code === null) throw new Error(`The command was killed by ${by}.${left} ${printedResult(output)}`);
    return endedResult(output, { exitCode: code, background: background.length > 0 });
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
  /** At the gate it ends by itself when that is closed, and writes down that it never began: it must live to do so. */
  #isAtGate: boolean;
  why: string | null = null;
  done: Promise<unknown> = Promise.resolve();

  constructor({ process, gate }: AtGate) {
    this.#process = process;
    this.#isAtGate = gate !== null;
  }

  stop(why: string): void {
    if (this.why !== null) return;
    this.why = why;
    if (!this.#isAtGate) this.done = stopGroup(this.#process);
  }

  /** It begins now. */
  begin(): void {
    this.#isAtGate = false;
  }
}

interface AtGate {
  readonly process: ToolProcess;
  readonly files: OutputFiles;
  /** Null where there is none: the command runs already. */
  readonly gate: Writable | null;
  readonly exit: Promise<{ readonly code: number | null; readonly by: string | null }>;
}

/**
 * Durable first, then the gate: else a command could run that nobody finds again. False if it was stopped meanwhile.
 * Throws what the store says: then the command did not run.
 */
async function letBegin(context: ShellContext, call: string, waiting: AtGate, stopping: Stopping): Promise<boolean> {
  const { process: started, gate } = waiting;
  try {
    await context.process(call, started);
  } catch (error) {
    gate?.destroy();
    // It writes down that it never began, and ends by itself: its process may be recorded after all (a sync that
    // failed), and would look as if it had.
    if (gate) await Promise.race([waiting.exit, passed(AT_GATE_MS, undefined, { ref: false })]);
    await stopGroup(started);
    throw error;
  }
  if (!gate) return true;
  if (stopping.why !== null) {
    gate.destroy();
    return false;
  }
  stopping.begin();
  gate.end("begin\n");
  return true;
}

/** Throws, in words, if there is no such process in the end: then the command did not run. */
async function spawnAtGate(context: ShellContext, call: string, command: string): Promise<AtGate> {
  const unnamed = join(context.outputs, `${safeName(call)}.${randomBytes(6).toString("hex")}.new`);
  let child: ChildProcess | null = null;
  try {
    mkdirSync(context.outputs, { recursive: true, mode: 0o700 });
    // Looked at when the session was opened, and again here: what is written next is found by its name.
    if (lstatSync(context.outputs).isSymbolicLink()) throw new Error(`${context.outputs} is a symbolic link`);
    child = spawnInto(unnamed, context, call, command);
    const exit = exitOf(child);
    await once(child, "spawn");
    return await nameOutputs(child, unnamed, outputFiles(context.outputs, call, child.pid!), exit);
  } catch (error) {
    child?.kill("SIGKILL");
    if (child) rmSync(unnamed, { force: true });
    const said = error instanceof Error ? error.message : String(error);
    // Of a folder that is gone, the system says that there is no such program.
    const why = existsSync(context.cwd) ? said : `the folder ${context.cwd} no longer exists`;
    throw new Error(`The command could not start: ${why}. It did not run.`, { cause: error });
  }
}

/**
 * In a process group of its own, so that it can be ended as a whole and outlives the agent. What it prints goes
 * straight to its log: nothing of that is lost with the agent.
 */
function spawnInto(
  file: string,
  { outputs, cwd, env: given }: ShellContext,
  call: string,
  command: string,
): ChildProcess {
  const log = openSync(file, "wx", 0o600);
  const env = { ...given, ...UNATTENDED };
  try {
    if (process.platform === "win32") {
      const options = { cwd, env, windowsHide: true, windowsVerbatimArguments: true };
      return spawn("cmd", ["/d", "/s", "/c", `"${command}"`], { ...options, stdio: ["ignore", log, log] });
    }
    const words = ["-c", GATED, "holdfast", command, join(outputs, safeName(call))];
    return spawn("sh", words, { cwd, env, detached: true, stdio: ["ignore", log, log, "pipe"] });
  } catch (error) {
    rmSync(file, { force: true });
    throw error;
  } finally {
    closeSync(log);
  }
}

/** Its files are found by its pid, and itself by the time of its start. */
async function nameOutputs(
  child: ChildProcess,
  log: string,
  files: OutputFiles,
  exit: AtGate["exit"],
): Promise<AtGate> {
  const pid = child.pid!;
  // Of an earlier process that had this pid.
  rmSync(files.exit, { force: true });
  renameSync(log, files.log);
  const started = await identify(pid);
  if (started === null) throw new Error("its process could not be identified (is there /proc, or ps?)");
  if (process.platform === "win32") {
    void exit.then(({ code }) => writeFileSync(files.exit, `${(code ?? 1) & 255}\n`, { mode: 0o600 }));
    return { process: { pid, started }, files, gate: null, exit };
  }
  const gate = child.stdio[3] as Writable;
  // A shell that was killed at the gate: its exit says so.
  gate.on("error", () => gate.destroy());
  return { process: { pid, started, group: true }, files, gate, exit };
}

function exitOf(child: ChildProcess): AtGate["exit"] {
  return new Promise((resolve) => {
    child.once("exit", (code, by) => resolve({ code, by }));
    child.once("error", (error) => resolve({ code: null, by: error.message }));
  });
}
