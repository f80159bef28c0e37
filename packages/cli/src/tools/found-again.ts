import { setTimeout as passed } from "node:timers/promises";
import type { ToolProcess } from "holdfast";
import { exitOf, outputFiles, outputOf } from "./outputs.ts";
import { isRunning, membersOf } from "./processes.ts";

/** A command whose agent died: what is known of it now (R7b). */
export interface Found {
  /** `not-begun`: it is known that the command never ran. `unknown`: it began and was killed, or its traces are gone: nobody can say how far it came. */
  readonly state: "running" | "ended" | "not-begun" | "unknown";
  readonly running: boolean;
  /** Of one that has ended. */
  readonly exitCode?: number;
  /** What it has printed, bounded for the model. */
  readonly output: string;
  /** What it left running in the background. */
  readonly background: boolean;
}

/**
 * Looks for the command of a call by the process that was recorded for it. Without one, the command never began: it waits until its process is recorded (shell.ts). On Windows there is no such gate, so then nothing is known.
 */
export async function findAgain(outputs: string, call: string, recorded: ToolProcess | undefined): Promise<Found> {
  if (!recorded) {
    const state = process.platform === "win32" ? "unknown" : "not-begun";
    return { state, running: false, output: "", background: false };
  }
  const files = outputFiles(outputs, call, recorded.pid);
  // In this order: one that ends in between has written its status by the time that it is seen to be gone.
  const running = await isRunning(recorded);
  const exit = exitOf(files);
  if (exit === "not-begun") return { state: "not-begun", running: false, output: "", background: false };
  const output = outputOf(files);
  // The status is there before the wrapper itself has ended.
  if (exit !== null) {
    const background = (await membersOf(recorded.pid)).some(({ pid }) => pid !== recorded.pid);
    return { state: "ended", running: false, exitCode: exit, output, background };
  }
  return { state: running ? "running" : "unknown", running, output, background: false };
}

/** Until the command has ended. Rejects with the signal's reason if that fires first: the command goes on. */
export async function waitFor(
  outputs: string,
  call: string,
  recorded: ToolProcess,
  { signal, lookMs = 100 }: { readonly signal?: AbortSignal; readonly lookMs?: number } = {},
): Promise<Found> {
  for (;;) {
    signal?.throwIfAborted();
    const found = await findAgain(outputs, call, recorded);
    if (!found.running) return found;
    await passed(lookMs, undefined, signal ? { signal } : {}).catch((error: unknown) => {
      signal?.throwIfAborted();
      throw error;
    });
  }
}

/** What the model is told of it: the very text that it would have been answered with. Null where nothing can be said. */
export function resultOf({ state, exitCode = 0, output, background }: Found): string | null {
  if (state !== "ended") return null;
  return ended(output, { exitCode, background });
}

/** A command that has ended by itself. */
export function ended(output: string, { exitCode, background }: { exitCode: number; background: boolean }): string {
  const notes = [
    ...(exitCode === 0 ? [] : [`exit status ${exitCode}`]),
    ...(output === "" ? ["no output"] : []),
    ...(background ? ["processes that it started in the background still run, until the agent ends"] : []),
  ];
  if (notes.length === 0) return output;
  const lineEnd = output === "" || output.endsWith("\n") ? "" : "\n";
  return `${output}${lineEnd}[${notes.join("; ")}]`;
}
