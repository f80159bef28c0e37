import { type ErrorCode, HoldfastError } from "holdfast";

/** Translates errors of PostgreSQL and the connection to it. Pure. */

/** Transient SQLSTATEs: the server is away, starting, shutting down or failing over, or two statements conflicted. */
const PASSING_STATES = new Set([
  "40001", // serialization_failure
  "40P01", // deadlock_detected
  "25P04", // transaction_timeout: ended because nobody was waiting any more
  "26000", // invalid_sql_statement_name: the application has deallocated ours; another connection prepares it again
  "25006", // read_only_sql_transaction: a standby that is not yet the primary
  "53300", // too_many_connections
  "55P03", // lock_not_available: another statement holds the row, perhaps an earlier attempt of ours
  "57P01", // admin_shutdown
  "57P02", // crash_shutdown
  "57P03", // cannot_connect_now
  "57P05", // idle_session_timeout: hit a statement that was on its way
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

/** An invalid certificate: retrying does not help. */
const CERTIFICATE = /CERT|^UNABLE_TO_/;

/** Errors of `pg` without a code, when a connection ends during a statement. */
const LOST =
  /Connection terminated|connection (?:error|is closed|ended)|timeout exceeded when trying to connect|timeout expired|Query read timeout|Client has encountered a connection error|not queryable|server closed the connection/i;

/** The driver's word for: no answer in time. */
const GIVEN_UP = "Query read timeout";

/**
 * The server wrote to its own disk, and did not wait until the synchronous standby had it too: a fail-over could lose
 * it.
 */
export class CommitUnconfirmed extends Error {
  constructor() {
    super("the server did not wait for its synchronous standby: somebody cancelled the statement");
  }
}

/** The server, or the route to it, is temporarily away: the same statement may be sent again. */
export function isPassing(error: unknown): boolean {
  const code = codeOf(error);
  // The socket of a local server. Any other missing file stays missing.
  if (code === "ENOENT") return (error as { syscall?: unknown }).syscall === "connect";
  if (code !== undefined) return PASSING_STATES.has(code) || PASSING_ERRNO.has(code) || /^08/.test(code);
  if (error instanceof AggregateError) return error.errors.some(isPassing);
  if (error instanceof CommitUnconfirmed) return true;
  return error instanceof Error && LOST.test(error.message);
}

/** We no longer wait for the answer; the server may still be at work. */
export function isGivenUp(error: unknown): boolean {
  return error instanceof Error && error.message === GIVEN_UP;
}

/** The server refuses to write: a standby, or a role that may only read. */
export function isReadOnly(error: unknown): boolean {
  return codeOf(error) === "25006";
}

/** The server is up, but not ready yet. */
export function isStarting(error: unknown): boolean {
  return codeOf(error) === "57P03";
}

/** Two transactions conflicted, and this one was rolled back: it may run again. */
export function isConflict(error: unknown): boolean {
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

/** `what` failed, without any effect. */
export function databaseFailure(error: unknown, what: string, name: string): HoldfastError {
  const state = codeOf(error) ?? "";
  const said =
    error instanceof AggregateError ? String(error.errors[0]) : error instanceof Error ? error.message : String(error);
  const fail = (code: ErrorCode, why: string, advice: string): HoldfastError =>
    new HoldfastError(
      code,
      `Could not ${what}: ${why} (${name}: ${said}). Nothing was changed, and earlier data is safe. ${advice}`,
      { database: name, state },
      error,
    );
  if (state === "53100") return fail("STORE_FULL", "the database has no space left", "Free some space and try again.");
  if (state === "54000")
    return fail("STORE_FULL", "the database has reached a limit of PostgreSQL", "Its message says which.");
  if (state === "53200")
    return fail("STORE_IO", "the database server is out of memory", "Free some memory on the server and try again.");
  if (state === "53300")
    return fail(
      "STORE_IO",
      "the database server has no connection left",
      'Use fewer workers or "connections", put a pooler in front, or raise "max_connections".',
    );
  if (state.startsWith("53"))
    return fail(
      "STORE_IO",
      "the database server has reached a limit of its configuration",
      "Raise the limit that its message names, and try again.",
    );
  if (/sslmode=verify-ca requires/.test(said))
    return fail(
      "STORE_URL_INVALID",
      '"sslmode=verify-ca" needs a root certificate',
      'Add "sslrootcert" to the address.',
    );
  if ((state === "ENOENT" || state === "EACCES") && !isPassing(error))
    return fail("STORE_URL_INVALID", "a file named in the address cannot be read", "Check its path and permissions.");
  if (CERTIFICATE.test(state) || /does not support SSL/.test(said))
    return fail(
      "STORE_FORBIDDEN",
      "there is no trusted connection",
      'Check "sslmode" and "sslrootcert" in the address (docs/guides/many-machines.md).',
    );
  if (state === "42501" || state.startsWith("28") || /password|SASL|pg_hba/i.test(said))
    return fail(
      "STORE_FORBIDDEN",
      "permission denied",
      "Check the user, the password and its permissions (docs/guides/many-machines.md).",
    );
  if (state === "3D000") return fail("STORE_URL_INVALID", "the database does not exist", "Create it, or use another.");
  if (state === "25006")
    return fail(
      "STORE_IO",
      "the database is read-only: it is a standby, or the role may not write",
      'Use the address of the primary and a role that may write. To read from a standby, add "?direct=none".',
    );
  if (state === "55P03")
    return fail(
      "STORE_IO",
      "another transaction holds the row",
      "Look for one that hangs (pg_locks); if commits wait for a synchronous standby, check the standby.",
    );
  if (isPassing(error)) return fail("STORE_IO", "the database does not answer", "Check the server and the network.");
  return fail("STORE_IO", "the database reported an error", "Check its log.");
}

/** An append got no answer: it is unknown whether it was written. */
export function outcomeUnknown(session: string, durable: number, cause: unknown): HoldfastError {
  const message =
    `The database did not confirm the append. Session ${session} is safe up to record ${durable}; it is unknown whether later records were written. ` +
    "Open the session again to see what is there.";
  return new HoldfastError("SYNC_FAILED", message, { session, durable }, cause);
}

/** After a crash, a fail-over or a restore, the server lacks acknowledged records. */
export function headMovedBack(session: string, expected: number, found: number): HoldfastError {
  const message =
    `The database has session ${session} only up to record ${found}, but record ${expected} was acknowledged: a crash of the server, a fail-over or a restore brought back an older state. Nothing was written after it. ` +
    'Open the session again to continue from what is there. To lose nothing, use durability "power" and a synchronous standby (docs/guides/many-machines.md).';
  return new HoldfastError("FILE_REPLACED", message, { session, expected, found });
}

export function leaseLost(session: string, cause?: unknown): HoldfastError {
  const message =
    `Another worker has taken over session ${session}, or deleted it. Acknowledged records are safe; this append was not written, and this worker can write nothing more to the session. ` +
    "Open the session again to continue here.";
  return new HoldfastError("LEASE_LOST", message, { session }, cause);
}
