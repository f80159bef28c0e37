/**
 * Exit codes. docs/CLI.md and `holdfast --help` show the same table. A process that receives a signal ends by that
 * signal.
 */
export const EXIT = {
  done: 0,
  /** The turn failed, or a check found something wrong. */
  failed: 1,
  /** Invalid argument or configuration; nothing was touched. */
  usage: 2,
  /** No such session, or no store. */
  notFound: 3,
  /** Another process has the session open. */
  busy: 4,
  /** Store error: disk full, permission denied, read-only, damaged, newer format, unknown dialect. */
  store: 5,
  /** Model error: no key, unknown model, no answer. */
  model: 6,
  /** The turn ended but calls were denied, or it is waiting for approval. */
  denied: 7,
} as const;

/** A user error or an environment problem; the message says what to do. Shown without a stack trace. */
export class CommandError extends Error {
  override readonly name = "CommandError";
  readonly exitCode: number;
  readonly code: string;

  constructor(exitCode: number, code: string, message: string, cause?: unknown) {
    super(message, cause === undefined ? undefined : { cause });
    this.exitCode = exitCode;
    this.code = code;
  }
}

export const exitCodes: readonly (readonly [code: number, meaning: string])[] = [
  [EXIT.done, "done"],
  [EXIT.failed, "the turn failed, or a check found something wrong"],
  [EXIT.usage, "invalid argument or configuration; nothing was touched"],
  [EXIT.notFound, "session or store not found"],
  [EXIT.busy, "session in use by another process"],
  [EXIT.store, "store error: disk full, permission denied, read-only, damaged, newer format, unknown dialect"],
  [EXIT.model, "model error: no key, unknown model, no answer"],
  [EXIT.denied, "the turn ended, but calls were denied because no rule allowed them"],
];
