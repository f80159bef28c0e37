import { type ChildProcess, spawn } from "node:child_process";
import { randomBytes } from "node:crypto";
import { once } from "node:events";
import { closeSync, existsSync, lstatSync, mkdirSync, openSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import type { Writable } from "node:stream";
import { setTimeout as passed } from "node:timers/promises";
import type { EditorTerminals } from "@holdfast/server/internal/contract";
import type { ToolProcess } from "holdfast";
import { defined } from "../../defined.ts";
import { runInEditor } from "./editor-terminal.ts";
import type { Environment } from "./environment.ts";
import { type OutputFiles, outputFiles, outputOf, safeName } from "./output-files.ts";
import { tail } from "./output-tail.ts";
import { identify, keepTrack, membersOf, stopGroup } from "./process-groups.ts";
import { endedResult, LEFT, printedResult } from "./surviving-commands.ts";

export const TIMEOUT_SECONDS = 120;
export const TIMEOUT_SECONDS_MAX = 3600;
/** A command that prints without end is stopped before it fills the disk. */
const LOG_BYTES_MAX = 256 * 1024 * 1024;

/**
 * Waits for a line on fd 3 before it runs the command ($1). If the agent dies first, the pipe closes and the command
 * never starts: so the process of every command that started is in the journal (R7b). When the command ends, writes its
 * status to $2.<pid>.exit, even if the agent is gone. `set -C` makes it create the file, so it never writes through a
 * link.
 */
const GATED = `
tell() { rm -f "$1.$$.tmp"; (umask 077; set -C; printf '%s\\n' "$2" > "$1.$$.tmp") && mv -f "$1.$$.tmp" "$1.$$.exit"; }
read -r word <&3 && [ "$word" = begin ] || { tell "$2" not-begun; exit 125; }
exec 3<&-
sh -c -- "$1"
code=$?
tell "$2" "$code"
exit "$code"
`;

/** How long a shell may take to notice that its gate is closed. */
const AT_GATE_MS = 2000;

/** There is no terminal and nobody to answer: without these, programs would wait for input. */
const UNATTENDED = { TERM: "dumb", PAGER: "cat", GIT_PAGER: "cat", GIT_TERMINAL_PROMPT: "0" };

interface ShellInput {
  readonly command: string;
  readonly timeoutSeconds?: number | undefined;
}

/** What the shell tool knows about the agent that runs it. */
export interface ShellContext {
  /** The agent's working folder; an absolute, real path. */
  readonly cwd: string;
  /**
   * The folder for complete outputs: `<call>.<pid>.log`, and `.exit` once the command has ended. Created with mode 0700
   * on demand.
   */
  readonly outputs: string;
  /** Durably records the process group of a call. The command starts only afterwards (R7b). */
  readonly process: (call: string, process: ToolProcess) => Promise<void>;
  /** Receives what a running command prints, for display. */
  readonly output: (call: string, text: string) => void;
  /** The environment for commands (`commandEnvironment`). */
  readonly env: Environment;
  /** The terminals of the user's editor: commands run there. */
  readonly terminals?: EditorTerminals | null;
}

/**
 * Runs a command until it ends. Throws an error worded for the model if it was stopped, timed out or could not start.
 */
export async function runShell(
  context: ShellContext,
  call: string,
  { command, timeoutSeconds = TIMEOUT_SECONDS }: ShellInput,
  signal?: AbortSignal,
): Promise<string> {
  if (signal?.aborted) throw new Error("The command was stopped before it started: it did not run.");
  if (command.includes("\0")) throw new Error("A command cannot contain a NUL character. It did not run.");
  const seconds = Math.min(timeoutSeconds, TIMEOUT_SECONDS_MAX);
  // On Windows the editor's terminals would have all of the user's environment.
  if (context.terminals && process.platform !== "win32")
    return runInEditor(context, context.terminals, call, { command, seconds, ...defined({ signal }) });
  const waiting = await spawnAtGate(context, call, command);
  const { process: started, files } = waiting;
  const stopping = new GroupStop(waiting);
  const tracked = keepTrack(started);
  const following = tail(
    files.log,
    (text) => context.output(call, text),
    (bytes) => {
      if (bytes > LOG_BYTES_MAX) stopping.stop(`printed more than ${LOG_BYTES_MAX / 1024 / 1024} MiB and was stopped`);
    },
  );
  const timer = setTimeout(() => stopping.stop(`took longer than ${seconds} s and was stopped`), seconds * 1000);
  const abort = (): void => stopping.stop("was stopped");
  signal?.addEventListener("abort", abort, { once: true });
  // The signal may have fired while the shell was starting, before the listener was added.
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

/** Ends the group once, and keeps the first reason. */
class GroupStop {
  readonly #process: ToolProcess;
  /**
   * At the gate, the shell exits by itself when the gate closes. It must live to record that the command never started.
   */
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

  begin(): void {
    this.#isAtGate = false;
  }
}

interface AtGate {
  readonly process: ToolProcess;
  readonly files: OutputFiles;
  /** Null on Windows, which has no gate: the command is already running. */
  readonly gate: Writable | null;
  readonly exit: Promise<{ readonly code: number | null; readonly by: string | null }>;
}

/**
 * Records the process durably before it opens the gate: otherwise a command could run that nobody can find again.
 * Returns false if it was stopped in the meantime. Throws the store's error: then the command did not run.
 */
async function letBegin(context: ShellContext, call: string, waiting: AtGate, stopping: GroupStop): Promise<boolean> {
  const { process: started, gate } = waiting;
  try {
    await context.process(call, started);
  } catch (error) {
    gate?.destroy();
    // Give the shell time to record that the command never started: its process may be in the journal despite the error
    // (a failed sync), which would look as if the command had run.
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

/** Throws an error worded for the model if the process could not be started: then the command did not run. */
async function spawnAtGate(context: ShellContext, call: string, command: string): Promise<AtGate> {
  const unnamed = join(context.outputs, `${safeName(call)}.${randomBytes(6).toString("hex")}.new`);
  let child: ChildProcess | null = null;
  try {
    mkdirSync(context.outputs, { recursive: true, mode: 0o700 });
    // Checked when the session was opened, and again here, because the files created next are found by name.
    if (lstatSync(context.outputs).isSymbolicLink()) throw new Error(`${context.outputs} is a symbolic link`);
    child = spawnInto(unnamed, context, call, command);
    const exit = exitOf(child);
    await once(child, "spawn");
    return await nameOutputs(child, unnamed, outputFiles(context.outputs, call, child.pid!), exit);
  } catch (error) {
    child?.kill("SIGKILL");
    if (child) rmSync(unnamed, { force: true });
    const said = error instanceof Error ? error.message : String(error);
    // If the working folder is gone, the system reports that the program does not exist.
    const why = existsSync(context.cwd) ? said : `the folder ${context.cwd} no longer exists`;
    throw new Error(`The command could not start: ${why}. It did not run.`, { cause: error });
  }
}

/**
 * Starts the command in its own process group, so that it can be ended as a whole and outlives the agent. Its output
 * goes straight to the log, so none is lost if the agent dies.
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

/** Names the log after the pid, and identifies the process by its start time. */
async function nameOutputs(
  child: ChildProcess,
  log: string,
  files: OutputFiles,
  exit: AtGate["exit"],
): Promise<AtGate> {
  const pid = child.pid!;
  // Left by an earlier process with this pid.
  rmSync(files.exit, { force: true });
  renameSync(log, files.log);
  const started = await identify(pid);
  if (started === null) throw new Error("its process could not be identified (is there /proc, or ps?)");
  if (process.platform === "win32") {
    void exit.then(({ code }) => writeFileSync(files.exit, `${(code ?? 1) & 255}\n`, { mode: 0o600 }));
    return { process: { pid, started }, files, gate: null, exit };
  }
  const gate = child.stdio[3] as Writable;
  // The shell was killed at the gate: its exit status says so.
  gate.on("error", () => gate.destroy());
  return { process: { pid, started, group: true }, files, gate, exit };
}

function exitOf(child: ChildProcess): AtGate["exit"] {
  return new Promise((resolve) => {
    child.once("exit", (code, by) => resolve({ code, by }));
    child.once("error", (error) => resolve({ code: null, by: error.message }));
  });
}
