import { isHoldfastError } from "holdfast";
import type { Problem } from "../schemas/problem.ts";
import { RequestError, serverCodes } from "./request-error.ts";

/** The status of each code of the library and of the agent that a request can meet. Any other code is 500. */
const STATUS: Readonly<Record<string, number>> = {
  ALREADY_ANSWERED: serverCodes.ALREADY_ANSWERED,
  ATTRIBUTE_INVALID: 422,
  CALL_IN_DOUBT: 409,
  CALL_TAKEN: 409,
  CALL_UNKNOWN: 409,
  CALLS_OPEN: 409,
  CURSOR_STALE: 410,
  DIALECT_UNKNOWN: 422,
  DRAFT_DISCARDED: 409,
  FILE_REPLACED: 503,
  FOLDER_UNKNOWN: 422,
  FORMAT_NEWER: 422,
  FORMAT_UNKNOWN: 400,
  ID_INVALID: 404,
  JOURNAL_CLOSED: 503,
  JOURNAL_UNREADABLE: 422,
  KEY_TAKEN: 409,
  LEASE_LOST: 503,
  MESSAGE_ID_TAKEN: 409,
  MESSAGE_NOT_JSON: 422,
  MESSAGE_UNFIT: 422,
  MESSAGE_UNKNOWN: 404,
  MODEL_UNKNOWN: 422,
  NOT_SUPPORTED: 501,
  NOTHING_TO_COMPACT: 409,
  NOTHING_TO_RESUME: 409,
  PROMPT_KNOWN: 409,
  QUERY_INVALID: 400,
  QUEUE_UNKNOWN: 404,
  RECORD_INVALID: 422,
  RECORD_NOT_JSON: 422,
  RECORD_TOO_LARGE: 413,
  SESSION_BUSY: 409,
  SESSION_CLOSED: 409,
  SESSION_EXISTS: 409,
  SESSION_FOREIGN: 409,
  SESSION_NOT_FOUND: 404,
  STEP_IN_DOUBT: 409,
  STEP_LIMIT: 409,
  STEP_SPLIT: 409,
  STEP_TAKEN: 409,
  STEP_VALUE_LOST: 409,
  STOPPED: 409,
  STORE_BUSY: 503,
  STORE_CLOSED: 503,
  STORE_FORBIDDEN: 503,
  STORE_FULL: 507,
  STORE_IO: 503,
  SYNC_FAILED: 503,
  TURN_ENDED: 409,
  TURN_HANDED_OVER: 503,
  TURN_OPEN: 409,
  TURN_UNANSWERED: 409,
  UNDO_TOO_LATE: 409,
  USAGE: 422,
};

interface ErrorWithCode extends Error {
  readonly code: string;
  readonly facts?: Readonly<Record<string, unknown>>;
}

/**
 * An error as a problem document. Errors that are not ours say nothing of what is inside this process: `isUnexpected`
 * tells the caller to log them.
 */
export function problemOf(error: unknown): { readonly problem: Problem; readonly isUnexpected: boolean } {
  if (error instanceof RequestError) return { problem: make(error.status, error), isUnexpected: false };
  if (isHoldfastError(error) || isCommandError(error)) {
    const status = STATUS[error.code] ?? (error.code.startsWith("MODEL_") ? 422 : 500);
    return { problem: make(status, error), isUnexpected: false };
  }
  const detail = "The server failed unexpectedly. Everything recorded so far is safe. Its log says what happened.";
  return { problem: make(500, { code: "UNEXPECTED", message: detail }), isUnexpected: true };
}

/** Recognized by name: the class belongs to the command. */
function isCommandError(error: unknown): error is ErrorWithCode {
  return error instanceof Error && error.name === "CommandError" && "code" in error && typeof error.code === "string";
}

function make(status: number, { code, message, facts }: Pick<ErrorWithCode, "code" | "message" | "facts">): Problem {
  const title = code.toLowerCase().replaceAll("_", " ");
  const type = `urn:holdfast:error:${code}`;
  const known = facts && Object.keys(facts).length > 0 ? { facts } : {};
  return { type, title: title[0]!.toUpperCase() + title.slice(1), status, code, detail: message, ...known };
}
