/**
 * What the command ends with; the same table stands in docs/CLI.md and in `holdfast --help`. A process that is ended by
 * a signal ends by that signal.
 */
export const EXIT = {
  done: 0,
  /** The turn failed, or a check found something wrong. */
  failed: 1,
  /** A wrong argument; nothing was touched. */
  usage: 2,
  /** No such session, or no store at all. */
  notFound: 3,
  /** Another process has the session. */
  busy: 4,
  /** The store could not: full, forbidden, read-only, damaged, of a newer format, in an unknown dialect. */
  store: 5,
  /** The model could not be asked: no key, unknown name, no answer. */
  model: 6,
  /** The turn ended, but calls were denied because no rule allowed them. */
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

/** What each exit code means. */
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
