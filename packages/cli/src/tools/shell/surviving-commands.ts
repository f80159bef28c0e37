import { setTimeout as passed } from "node:timers/promises";
import type { CallFacts, OpenCall, ToolProcess } from "holdfast";
import { defined } from "../../defined.ts";
import { outcomeUnknownText } from "../results/outcome-words.ts";
import { exitOf, filesOfProcess, outputOf } from "./output-files.ts";
import { isRunning, membersOf } from "./process-groups.ts";

export { endProcesses, identify, isRunning, stopGroup } from "./process-groups.ts";

/** What is known about a command whose agent died (R7b). */
export interface FoundCommand {
  /**
   * `not-begun`: the command certainly never ran. `unknown`: it was killed as well, or its traces are gone, so how far
   * it got is unknown.
   */
  readonly kind: "running" | "ended" | "not-begun" | "unknown";
  readonly running: boolean;
  readonly pid?: number;
  /** Set if it has ended. */
  readonly exitCode?: number;
  /** What it has printed so far, shortened for the model. */
  readonly output: string;
  /**
   * For the model. If the command has ended: exactly the result that the call would have returned. Otherwise, what is
   * known about it.
   */
  readonly shown: string;
}

/**
 * Finds the command of a call by its recorded process. Without a record the command never started, because it waits for
 * the record (shell.ts); except on Windows, which has no such gate. `isOurs: false` means that this user's agent did
 * not start the process, whatever the journal says: then only the files that the command left are examined.
 */
export async function findCommand(
  outputs: string,
  call: string,
  recorded: ToolProcess | undefined,
  { isOurs = true }: { readonly isOurs?: boolean } = {},
): Promise<FoundCommand> {
  if (!recorded) {
    return process.platform === "win32"
      ? { kind: "unknown", running: false, output: "", shown: LOST }
      : { kind: "not-begun", running: false, output: "", shown: NOT_BEGUN };
  }
  if (recorded.started === EDITOR_TERMINAL) return { kind: "unknown", running: false, output: "", shown: IN_EDITOR };
  const { pid } = recorded;
  const files = filesOfProcess(outputs, call, pid);
  // In this order: a command that ends in between has written its status before its process disappears.
  const running = isOurs && (await isRunning(recorded));
  const exitCode = exitOf(files);
  if (exitCode === "not-begun") return { kind: "not-begun", running: false, pid, output: "", shown: NOT_BEGUN };
  const output = outputOf(files);
  if (exitCode !== null) {
    // The status appears just before the wrapper exits. Wait for that: until then, its own helpers (mv) are in the
    // group.
    for (let tries = 0; isOurs && tries < 200 && (await isRunning(recorded)); tries++) await passed(5);
    const background = isOurs && (await membersOf(pid)).some((one) => one.pid !== pid);
    return {
      kind: "ended",
      running: false,
      pid,
      exitCode,
      output,
      shown: endedResult(output, { exitCode, background }),
    };
  }
  if (!isOurs) return { kind: "unknown", running: false, pid, output, shown: `${FOREIGN} ${printedResult(output)}` };
  // The shell alone may have been killed, for example by the OOM killer.
  const isLeft = !running && recorded.group === true && (await membersOf(pid)).length > 0;
  const words = running ? RUNNING : isLeft ? `${LOST} ${LEFT}` : LOST;
  return { kind: running ? "running" : "unknown", running, pid, output, shown: `${words} ${printedResult(output)}` };
}

/**
 * Whether the files tell anything about this call. `isOwn`: this agent wrote the session. It never runs a command
 * before its process is recorded; of another program's call without one, nothing is known.
 */
export function isLookedFor({ name, state, process }: OpenCall, isOwn: boolean): boolean {
  return name === "shell" && state === "outcome-unknown" && (process !== undefined || isOwn);
}

/** People are shown the last lines. */
const PRINTED_CHARS_MAX = 2_000;

/** What that says about its call. */
export function commandFacts({ kind, pid, running, exitCode, output, shown }: FoundCommand): CallFacts {
  if (kind === "not-begun") return { neverBegan: true };
  const printed = running && output !== "" ? output.slice(-PRINTED_CHARS_MAX) : undefined;
  const process = pid === undefined ? {} : { process: { pid, running, ...defined({ exitCode, printed }) } };
  // If it has not ended, how far it got is unknown, but not what it printed.
  return { ...process, ...(kind === "ended" ? { outcome: { value: shown } } : { report: shown }) };
}

const NOT_BEGUN = "The command never started: the agent died first. It is safe to run it.";
const RUNNING = "The agent died while the command was running, and the command is still running.";
const LOST = outcomeUnknownText("the agent died, and the command ended without a record of how far it got");

/** Instead of the start time of a process that only the editor knows. No process has it, so none is ever stopped. */
export const EDITOR_TERMINAL = "in a terminal of the editor";
const IN_EDITOR = `${outcomeUnknownText("the agent died while the command ran in a terminal of the editor")} It may still be running there.`;

const FOREIGN = outcomeUnknownText(
  "the agent died; the journal names a process that this user's agent did not start, so it was not examined",
);

const STOPPED =
  "The command was still running when its agent died, and the user stopped it. It may have done part of its work.";

/** A command that was stopped at the user's request after its agent had died. */
export function asStopped(found: FoundCommand): FoundCommand {
  return found.kind === "unknown" ? { ...found, shown: `${STOPPED} ${printedResult(found.output)}` } : found;
}

/** For a command whose shell is gone. */
export const LEFT = "Processes of its group may still be running.";

/**
 * Waits until the command has ended. Rejects with the signal's reason if the signal fires first; the command runs on.
 */
export async function waitForCommand(
  outputs: string,
  call: string,
  recorded: ToolProcess,
  { signal, lookMs = 100 }: { readonly signal?: AbortSignal; readonly lookMs?: number } = {},
): Promise<FoundCommand> {
  for (;;) {
    signal?.throwIfAborted();
    const found = await findCommand(outputs, call, recorded);
    if (!found.running) return found;
    await passed(lookMs, undefined, defined({ signal })).catch((error: unknown) => {
      signal?.throwIfAborted();
      throw error;
    });
  }
}

/** The result of a command that ended by itself. */
export function endedResult(
  output: string,
  { exitCode, background }: { exitCode: number; background: boolean },
): string {
  const notes = [
    ...(exitCode === 0 ? [] : [`exit status ${exitCode}`]),
    ...(output === "" ? ["no output"] : []),
    ...(background ? ["processes it started in the background keep running until the agent ends"] : []),
  ];
  if (notes.length === 0) return output;
  const lineEnd = output === "" || output.endsWith("\n") ? "" : "\n";
  return `${output}${lineEnd}[${notes.join("; ")}]`;
}

export function printedResult(output: string): string {
  return output === "" ? "It printed nothing." : `It printed:\n${output}`;
}
