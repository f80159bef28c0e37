import { writeSync } from "node:fs";

/**
 * What a process under test tells the laboratory, one line of JSON each, on file descriptor 3. A line is handed to the kernel inside the
 * call, so that SIGKILL takes nothing that was said: `attempt` before the thing is tried, `ack` after its promise has resolved.
 */
export type LabEvent =
  /** Everything is loaded; the store is about to be opened. */
  | { readonly e: "ready" }
  /** A journal was opened, or made. What the store said about the state that it was found in. */
  | {
      readonly e: "opened";
      readonly made: boolean;
      readonly head: number;
      readonly unclean: boolean;
      readonly cutBytes: number;
      readonly quarantine?: string;
      readonly damaged: number;
    }
  | ({ readonly e: "attempt" } & Attempt)
  /** Without seqs where the store does not say them (`create`). */
  | { readonly e: "ack"; readonly id: number; readonly seq?: number; readonly last?: number }
  /** The store said no, and that nothing was written. */
  | { readonly e: "refused"; readonly id: number; readonly code: string; readonly message: string }
  /** The store said that it does not know. */
  | { readonly e: "doubt"; readonly id: number; readonly code: string; readonly message: string }
  | { readonly e: "closed" }
  /** A step of the disk that the laboratory waits for. The process stands still there, unless the point only announces. */
  | { readonly e: "at"; readonly point: string }
  /** A record that a follower was given. */
  | { readonly e: "seen"; readonly seq: number; readonly crc: string; readonly id: number; readonly part: number }
  /** The answer to a question that the job was started for. */
  | { readonly e: "answer"; readonly value: unknown }
  /** The job has ended in order. */
  | { readonly e: "done" }
  /** The job met an error that it did not expect. */
  | { readonly e: "failed"; readonly message: string };

/** One thing that a process tries to store: `parts` records that count together or not at all. */
export interface Attempt {
  /** Names the content. The same id again is the same content again (a retry with its key). */
  readonly id: number;
  readonly kind: "create" | "append" | "epoch";
  readonly parts: number;
  /** Length of the text in each of its records. */
  readonly chars: number;
  readonly key?: string;
}

const PIPE_FD = 3;

/** The child's side. Dies quietly when the laboratory is gone: nobody is left to hear. */
export const tell = (event: LabEvent): void => tellLine(event);

/** The same for programs with events of their own. */
export function tellLine(event: { readonly e: string }): void {
  try {
    writeSync(PIPE_FD, `${JSON.stringify(event)}\n`);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== "EPIPE") throw error;
    process.exit(1);
  }
}

/** The parent's side: whole lines out of what comes. A line that death cut short was never said. */
export class Lines<E = LabEvent> {
  #rest = "";

  take(chunk: string): E[] {
    const lines = (this.#rest + chunk).split("\n");
    this.#rest = lines.pop() ?? "";
    return lines.map((line) => JSON.parse(line) as E);
  }
}
