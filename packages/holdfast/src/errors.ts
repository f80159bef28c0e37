import { constants } from "node:os";
import type { Json } from "./journal/record.ts";

/**
 * What an error means for a program that works on a turn.
 * - `store`: nothing more can be recorded, or it is in doubt whether something was.
 * - `misuse`: the program uses Holdfast incorrectly, and would be refused again.
 * - `refusal`: the program or its model can act on it: there is no such session, or it is in use.
 */
export type ErrorKind = "store" | "misuse" | "refusal";

/** Every code that Holdfast throws, and its kind. docs/ERRORS.md has an entry for each; a test keeps them equal. */
const KINDS = {
  ATTRIBUTE_INVALID: "refusal",
  CALLS_OPEN: "misuse",
  CALL_IN_DOUBT: "refusal",
  CALL_TAKEN: "misuse",
  CALL_UNKNOWN: "misuse",
  CURSOR_STALE: "refusal",
  DIALECT_UNKNOWN: "refusal",
  DRAFT_DISCARDED: "misuse",
  FILE_REPLACED: "store",
  FORMAT_NEWER: "refusal",
  ID_INVALID: "refusal",
  JOURNAL_CLOSED: "store",
  JOURNAL_UNREADABLE: "refusal",
  KEY_TAKEN: "misuse",
  LEASE_LOST: "store",
  LIBRARY_REPLACED: "store",
  MESSAGE_ID_TAKEN: "misuse",
  MESSAGE_NOT_JSON: "misuse",
  MESSAGE_UNFIT: "misuse",
  MESSAGE_UNKNOWN: "refusal",
  NOTHING_TO_RESUME: "refusal",
  NOT_SUPPORTED: "misuse",
  PATH_UNSAFE: "refusal",
  PROMPT_KNOWN: "refusal",
  QUERY_INVALID: "refusal",
  QUEUE_UNKNOWN: "refusal",
  RECORD_INVALID: "misuse",
  RECORD_NOT_JSON: "misuse",
  RECORD_TOO_LARGE: "refusal",
  SERVER_UNSUPPORTED: "refusal",
  SESSION_BUSY: "refusal",
  SESSION_CLOSED: "store",
  SESSION_EXISTS: "refusal",
  SESSION_NOT_FOUND: "refusal",
  STEP_IN_DOUBT: "refusal",
  STEP_LIMIT: "refusal",
  STEP_SPLIT: "misuse",
  STEP_TAKEN: "misuse",
  STEP_VALUE_LOST: "refusal",
  STORE_BUSY: "refusal",
  STORE_CLOSED: "store",
  STORE_FORBIDDEN: "store",
  STORE_FULL: "store",
  STORE_IO: "store",
  STORE_URL_INVALID: "refusal",
  SYNC_FAILED: "store",
  SYNC_FOREIGN: "misuse",
  SYNC_REWRITE: "misuse",
  TOOL_MISSING: "refusal",
  TRANSACTION_ROLLED_BACK: "refusal",
  TURN_ENDED: "misuse",
  TURN_HANDED_OVER: "store",
  TURN_OPEN: "misuse",
  TURN_UNANSWERED: "refusal",
  UNDO_TOO_LATE: "refusal",
} as const satisfies Readonly<Record<string, ErrorKind>>;

/** One of the codes that docs/ERRORS.md lists. */
export type ErrorCode = keyof typeof KINDS;

/** Every code that Holdfast throws, in alphabetical order. */
export const errorCodes: readonly ErrorCode[] = Object.keys(KINDS) as ErrorCode[];

/**
 * The only error class. `code` is stable and documented in docs/ERRORS.md; `facts` are small values for programs (path,
 * offset, limit, holder); the message says what happened, whether data is safe, and what to do next.
 */
export class HoldfastError extends Error {
  override readonly name = "HoldfastError";
  readonly code: ErrorCode;
  readonly facts: Readonly<Record<string, Json>>;

  constructor(code: ErrorCode, message: string, facts: Record<string, Json> = {}, cause?: unknown) {
    // A quoted id or path may be cut, or may not be valid Unicode in the first place; what is read and logged must be.
    super(message.toWellFormed(), cause === undefined ? undefined : { cause });
    this.code = code;
    this.facts = Object.freeze(facts);
  }
}

/**
 * Whether it is a HoldfastError, with one of these codes if any are given. Recognized by name, not by class: a process
 * may load the library twice (in a bundle, and as a dependency of a store package), and each copy must recognize the
 * other's errors.
 */
export function isHoldfastError(error: unknown, ...codes: ErrorCode[]): error is HoldfastError {
  if (!(error instanceof Error) || error.name !== "HoldfastError" || !("code" in error)) return false;
  return codes.length === 0 || codes.includes(error.code as ErrorCode);
}

/**
 * The kind of the error; null if it is not Holdfast's. An agent must stop at `store` and `misuse`: if they were
 * reported to the model as a tool's error, every retry would fail again. An unknown code, from a newer version, is
 * `misuse`.
 */
export function errorKind(error: unknown): ErrorKind | null {
  if (!isHoldfastError(error)) return null;
  return Object.hasOwn(KINDS, error.code) ? KINDS[error.code] : "misuse";
}

/**
 * The name of a system error (`ENOSPC`), or undefined. Some have no name in libuv, a used-up quota among them: Node
 * calls those UNKNOWN, with their number, and Deno has the number in its message alone.
 */
export function errnoOf(error: unknown): string | undefined {
  if (typeof error !== "object" || error === null) return undefined;
  const { code, errno, message } = error as { code?: unknown; errno?: unknown; message?: unknown };
  if (typeof code === "string" && code !== "UNKNOWN") return code;
  const found = typeof errno === "number" ? -errno : Number(/\(os error (\d+)\)/.exec(String(message))?.[1]);
  const named = Object.entries(constants.errno).find(([, number]) => number === found);
  return named?.[0] ?? (typeof code === "string" ? code : undefined);
}
