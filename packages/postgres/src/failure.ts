import { type ErrorCode, HoldfastError } from "holdfast";

/** Errors of PostgreSQL and of the way to it, in our words. Pure. */

/** By SQLSTATE: the server is away, starting, shutting down, failing over, or two statements met; it passes. */
const PASSING_STATES = new Set([
  "40001", // serialization_failure
  "40P01", // deadlock_detected
  "25P04", // transaction_timeout: it was ended because nobody waited any more
  "25006", // read_only_sql_transaction: a standby that is not yet the primary
  "53300", // too_many_connections
  "57P01", // admin_shutdown
  "57P02", // crash_shutdown
  "57P03", // cannot_connect_now
  "57P05", // idle_session_timeout: it met a statement that was on its way
]);

const PASSING_ERRNO = new Set([
  "ECONNREFUSED",
  "ECONNRESET",
  "EPIPE",
  "ETIMEDOUT",
  "ENOTFOUND",
  "EAI_AGAIN",
  "EHOSTUNREACH",
  "ENETUNREACH",
]);

/** A certificate that does not hold: trying again does not help. */
const CERTIFICATE = /CERT|^UNABLE_TO_/;

/** What `pg` says, without a code, when a connection ends under a statement. */
const LOST =
  /Connection terminated|connection (?:error|is closed|ended)|timeout exceeded when trying to connect|timeout expired|Query read timeout|Client has encountered a connection error|not queryable|server closed the connection/i;

/** The way to the server, or the server itself, is not there now: the same statement may be sent again. */
export function isPassing(error: unknown): boolean {
  const code = codeOf(error);
  // The socket of a server on this machine; any other file that is missing stays missing.
  if (code === "ENOENT") return (error as { syscall?: unknown }).syscall === "connect";
  if (code !== undefined) return PASSING_STATES.has(code) || PASSING_ERRNO.has(code) || /^08/.test(code);
  if (error instanceof AggregateError) return error.errors.some(isPassing);
  return error instanceof Error && LOST.test(error.message);
}

/** It is there, and says that it is not ready yet. */
export function isStarting(error: unknown): boolean {
  return codeOf(error) === "57P03";
}

/** Two transactions met, and this one was ended: nothing of it is done, and it may be done again. */
export function haveMet(error: unknown): boolean {
  const code = codeOf(error);
  return code === "40001" || code === "40P01";
}

export function isDuplicate(error: unknown): boolean {
  return codeOf(error) === "23505";
}

export function codeOf(error: unknown): string | undefined {
  if (typeof error !== "object" || error === null || !("code" in error)) return undefined;
  return typeof error.code === "string" ? error.code : undefined;
}

/** `what` was being done when it failed. Nothing of it counts. */
export function databaseFailure(error: unknown, what: string, name: string): HoldfastError {
  const state = codeOf(error) ?? "";
  const said =
    error instanceof AggregateError ? String(error.errors[0]) : error instanceof Error ? error.message : String(error);
  const fail = (code: ErrorCode, why: string, advice: string): HoldfastError =>
    new HoldfastError(
      code,
      `Could not ${what}: ${why} (${name}: ${said}). Nothing of it was done, and nothing before it is affected. ${advice}`,
      { database: name, state },
      error,
    );
  if (state === "53100" || state === "53200" || state === "54000")
    return fail("STORE_FULL", "the database has no space left", "Free some space, and try again.");
  if (/sslmode=verify-ca requires/.test(said))
    return fail(
      "STORE_URL_INVALID",
      '"sslmode=verify-ca" needs to know whom to trust',
      'Add "sslrootcert" to the address.',
    );
  if ((state === "ENOENT" || state === "EACCES") && !isPassing(error))
    return fail(
      "STORE_URL_INVALID",
      "a file that the address names cannot be read",
      "Check its path, and who may read it.",
    );
  if (CERTIFICATE.test(state) || /does not support SSL/.test(said))
    return fail(
      "STORE_FORBIDDEN",
      "there is no connection that can be trusted",
      'Check "sslmode" and "sslrootcert" in the address (docs/guides/many-machines.md).',
    );
  if (state === "42501" || state.startsWith("28") || /password|SASL|pg_hba/i.test(said))
    return fail(
      "STORE_FORBIDDEN",
      "it is not allowed",
      "Check the user, its password, and its rights (docs/guides/many-machines.md).",
    );
  if (state === "3D000") return fail("STORE_URL_INVALID", "there is no such database", "Create it, or name another.");
  if (state === "25006")
    return fail(
      "STORE_IO",
      "the database can only be read, as a standby can",
      'Give the address of the primary; only to read from a standby, add "?direct=none".',
    );
  if (isPassing(error)) return fail("STORE_IO", "the database does not answer", "Check the server and the way to it.");
  return fail("STORE_IO", "the database reported an error", "Look into its log.");
}

/** An append got no answer: whether it is there is not known. */
export function inDoubt(session: string, durable: number, cause: unknown): HoldfastError {
  const message =
    `The database did not answer whether it wrote. Everything of session ${session} up to record ${durable} is safe; what was just under way is in doubt. ` +
    "Open the session again: that shows what is there.";
  return new HoldfastError("SYNC_FAILED", message, { session, durable }, cause);
}

/** A server that took over, or was restored, lacks records that were acknowledged. */
export function wentBack(session: string, expected: number, found: number): HoldfastError {
  const message =
    `The database has session ${session} only up to record ${found}, and record ${expected} had been acknowledged: after a fail-over or a restore it is an older state. This append was not written. ` +
    "Open the session again to go on from what is there; promote a synchronous standby to lose nothing (docs/guides/many-machines.md).";
  return new HoldfastError("FILE_REPLACED", message, { session, expected, found });
}

export function leaseLost(session: string, cause?: unknown): HoldfastError {
  const message =
    `Another worker has taken over session ${session}, or has deleted it: this one may write nothing more to it. What was acknowledged is safe; this append was not written. ` +
    "Open the session again, if it is to go on here.";
  return new HoldfastError("LEASE_LOST", message, { session }, cause);
}
