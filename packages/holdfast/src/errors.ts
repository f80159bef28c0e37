import type { Json } from "./journal/record.ts";

/** Every code that Holdfast throws. docs/ERRORS.md has an entry for each, and a test keeps the two lists equal. */
export const errorCodes = [
  "ATTRIBUTE_INVALID",
  "CALLS_OPEN",
  "CALL_TAKEN",
  "CALL_UNKNOWN",
  "CURSOR_STALE",
  "DIALECT_UNKNOWN",
  "DRAFT_DISCARDED",
  "FILE_REPLACED",
  "FORMAT_NEWER",
  "ID_INVALID",
  "JOURNAL_CLOSED",
  "JOURNAL_UNREADABLE",
  "LEASE_LOST",
  "MESSAGE_ID_TAKEN",
  "MESSAGE_NOT_JSON",
  "MESSAGE_UNFIT",
  "MESSAGE_UNKNOWN",
  "NOTHING_TO_RESUME",
  "NOT_SUPPORTED",
  "PATH_UNSAFE",
  "QUERY_INVALID",
  "QUEUE_UNKNOWN",
  "RECORD_INVALID",
  "RECORD_NOT_JSON",
  "RECORD_TOO_LARGE",
  "SESSION_BUSY",
  "SESSION_CLOSED",
  "SESSION_EXISTS",
  "SESSION_NOT_FOUND",
  "STEP_SPLIT",
  "STORE_CLOSED",
  "STORE_FORBIDDEN",
  "STORE_FULL",
  "STORE_IO",
  "STORE_URL_INVALID",
  "SYNC_FAILED",
  "SYNC_FOREIGN",
  "SYNC_REWRITE",
  "TURN_ENDED",
  "TURN_OPEN",
  "UNDO_TOO_LATE",
] as const;

export type ErrorCode = (typeof errorCodes)[number];

/**
 * The one error class. `code` is stable and documented in docs/ERRORS.md; `facts` are small values for programs (path,
 * offset, limit, holder); the message says what happened, whether data is safe, and what to do next.
 */
export class HoldfastError extends Error {
  override readonly name = "HoldfastError";
  readonly code: ErrorCode;
  readonly facts: Readonly<Record<string, Json>>;

  constructor(code: ErrorCode, message: string, facts: Record<string, Json> = {}, cause?: unknown) {
    // An id or a path that is quoted may be cut, or may not be Unicode in the first place: what is read and logged is.
    super(message.toWellFormed(), cause === undefined ? undefined : { cause });
    this.code = code;
    this.facts = Object.freeze(facts);
  }
}

/**
 * Is it a HoldfastError, of one of these codes if any are given? Known by its name and not by its class: a process may have the library twice (in a bundle, and beneath a store that is a package of its own), and an error of the one
 * is an error for the other.
 */
export function isHoldfastError(error: unknown, ...codes: ErrorCode[]): error is HoldfastError {
  if (!(error instanceof Error) || error.name !== "HoldfastError" || !("code" in error)) return false;
  return codes.length === 0 || codes.includes(error.code as ErrorCode);
}

/** The `code` of a system error (`ENOSPC`), or undefined. */
export function errnoOf(error: unknown): string | undefined {
  if (typeof error !== "object" || error === null || !("code" in error)) return undefined;
  return typeof error.code === "string" ? error.code : undefined;
}
