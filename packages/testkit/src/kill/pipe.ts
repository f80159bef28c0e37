import { writeSync } from "node:fs";

/**
 * What a process under test reports to the laboratory, one line of JSON each, on its own descriptor. Each line reaches
 * the kernel inside the call, so SIGKILL loses nothing that was reported: `attempt` before the attempt, `ack` after its
 * promise has resolved.
 */
export type LabEvent =
  /** Everything is loaded; the store is about to be opened. */
  | { readonly e: "ready" }
  /** A journal was opened or created. What the store reported about the state it found. */
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
  /** Without seqs where the store does not report them (`create`). */
  | { readonly e: "ack"; readonly id: number; readonly seq?: number; readonly last?: number }
  /** The store refused, and said that nothing was written. */
  | { readonly e: "refused"; readonly id: number; readonly code: string; readonly message: string }
  /** The store said that it does not know. */
  | { readonly e: "doubt"; readonly id: number; readonly code: string; readonly message: string }
  | { readonly e: "closed" }
  /** A disk step that the laboratory waits for. The process pauses there, unless the point only announces. */
  | { readonly e: "at"; readonly point: string }
  /** A record that a follower got. */
  | { readonly e: "seen"; readonly seq: number; readonly crc: string; readonly id: number; readonly part: number }
  /** The answer to a question that the job was started for. */
  | { readonly e: "answer"; readonly value: unknown }
  /** The job has ended in order. */
  | { readonly e: "done" }
  /** The job met an unexpected error. */
  | { readonly e: "failed"; readonly message: string };

/** One attempt to store something: `parts` records, all or nothing. */
export interface Attempt {
  /** Identifies the content. The same id means the same content (a retry with its key). */
  readonly id: number;
  readonly kind: "create" | "append" | "epoch";
  readonly parts: number;
  /** The length of the text in each of its records. */
  readonly chars: number;
  readonly key?: string;
}

/**
 * The name of the variable with the descriptor for reports. Default: 3. On runtimes other than Node it is 1, because
 * Deno writes to no other descriptor that it inherits.
 */
export const REPORTS_FD = "HOLDFAST_REPORTS_FD";

const PIPE_FD = Number(process.env[REPORTS_FD] ?? 3);

/** The child's side. Exits silently when the laboratory is gone. */
export const tell = (event: LabEvent): void => tellLine(event);

/** The same for programs with their own events. */
export function tellLine(event: { readonly e: string }): void {
  try {
    writeSync(PIPE_FD, `${JSON.stringify(event)}\n`);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== "EPIPE") throw error;
    process.exit(1);
  }
}

/** The parent's side: splits the input into complete lines. A line cut short by death was never reported. */
export class Lines<E = LabEvent> {
  #rest = "";

  take(chunk: string): E[] {
    const lines = (this.#rest + chunk).split("\n");
    this.#rest = lines.pop() ?? "";
    return lines.map((line) => JSON.parse(line) as E);
  }
}
