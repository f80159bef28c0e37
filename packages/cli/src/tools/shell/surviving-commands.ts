import { setTimeout as passed } from "node:timers/promises";
import type { ToolProcess } from "holdfast";
import { defined } from "../../defined.ts";
import { exitOf, filesOfProcess, outputOf } from "./output-files.ts";
import { isRunning, membersOf } from "./process-groups.ts";

export { endProcesses, identify, isRunning, stopGroup } from "./process-groups.ts";

/** A command whose agent died: what is known of it now (R7b). */
export interface FoundCommand {
  /**
   * `not-begun`: it is known that the command never ran. `unknown`: it was killed too, or its traces are gone: nobody
   * can say how far it came.
   */
  readonly kind: "running" | "ended" | "not-begun" | "unknown";
  readonly running: boolean;
  readonly pid?: number;
  /** Of one that has ended. */
  readonly exitCode?: number;
  /** What it has printed so far, bounded for the model. */
  readonly output: string;
  /**
   * For the model. Of one that has ended: the very text that the call would have been answered with. Otherwise what is
   * known, in words.
   */
  readonly shown: string;
}

/** What people are told of it. */
export type ProcessStatus = Pick<FoundCommand, "kind" | "running" | "pid" | "exitCode">;

/**
 * Looks for the command of a call by the process that was recorded for it. Without one, the command never began: it
 * waits until its process is recorded (shell.ts). On Windows there is no such gate, so then nothing is known.
 * `isOurs: false`: this user's agent did not start that process, whatever the journal says. Then only what the command
 * left behind is looked at.
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
  const { pid } = recorded;
  const files = filesOfProcess(outputs, call, pid);
  // In this order: one that ends in between has written its status by the time that it is seen to be gone.
  const running = isOurs && (await isRunning(recorded));
  const exitCode = exitOf(files);
  if (exitCode === "not-begun") return { kind: "not-begun", running: false, pid, output: "", shown: NOT_BEGUN };
  const output = outputOf(files);
  if (exitCode !== null) {
    // The status is there a moment before the wrapper itself has ended: what is in its group then is its own.
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
  // Its shell alone may have been killed, by the system that was short of memory.
  const isLeft = !running && recorded.group === true && (await membersOf(pid)).length > 0;
  const words = running ? RUNNING : isLeft ? `${LOST} ${LEFT}` : LOST;
  return { kind: running ? "running" : "unknown", running, pid, output, shown: `${words} ${printedResult(output)}` };
}

const NOT_BEGUN = "The command never started: the agent died first. It is safe to run it.";
const RUNNING = "The agent died while the command was running, and the command is still running.";
const LOST =
  "The command started and ended without a record of how far it got. Check what it has done before you repeat it.";

const FOREIGN =
  "The journal says that the command started, in a process that this agent did not start. Whether it is still running is unknown. Check what it has done before you repeat it.";

/** Of a command whose shell is gone. */
export const LEFT = "Processes of its group may still be running.";

/** Until the command has ended. Rejects with the signal's reason if that fires first: the command goes on. */
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

/** A command that has ended by itself. */
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
