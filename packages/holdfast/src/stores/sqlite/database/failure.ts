import { dirname } from "node:path";
import { descriptorFailure } from "../../../disk/descriptors.ts";
import { diskFailure, isFull } from "../../../disk/failure.ts";
import { growthFailure } from "../../../disk/growth.ts";
import { nodeDisk, whyNotWritable } from "../../../disk/node-disk.ts";
import { SQLITE, sqliteCode, sqliteErrcode } from "../../../disk/sqlite-error.ts";
import { type ErrorCode, errnoOf, HoldfastError } from "../../../errors.ts";
import type { Ledger } from "../../../journal/ledger.ts";

/**
 * I/O errors after which no commit can be in the file: SQLite writes the commit frame last, and none of these errors
 * comes after it. READ, SHORT_READ, WRITE, NOMEM, RDLOCK, LOCK.
 */
const NOTHING_WRITTEN = new Set([2, 1, 3, 12, 9, 15].map((detail) => SQLITE.IOERR | (detail << 8)));

const CHECK_OWNER = "Check the owner and the mode of the file and of its folder.";
const TOO_MANY_OPEN =
  'If this process has too many files open, close sessions you do not need, or raise the limit ("ulimit -n"). Then try again.';

const REFUSALS: ReadonlySet<ErrorCode> = new Set(["STORE_FORBIDDEN", "STORE_FULL", "STORE_IO"]);

/** Another program has the database open. */
export function isBusy(error: unknown): boolean {
  const code = sqliteCode(error);
  return code === SQLITE.BUSY || code === SQLITE.PROTOCOL;
}

export function isIoError(error: unknown): boolean {
  return sqliteCode(error) === SQLITE.IOERR;
}

/** Something in the database file is not as SQLite wrote it. */
export function isCorrupt(error: unknown): boolean {
  const code = sqliteCode(error);
  return code === SQLITE.CORRUPT || code === SQLITE.TOOBIG;
}

/** The result, or null if its page is damaged. */
export function orNull<T>(read: () => T): T | null {
  try {
    return read();
  } catch (error) {
    if (!isCorrupt(error)) throw error;
    return null;
  }
}

/** An error that `isCorrupt` recognises, from code other than SQLite. */
export function corrupt(message: string): Error {
  return Object.assign(new Error(message), { errcode: SQLITE.CORRUPT });
}

/** After such an error the append had no effect, and the journal stays usable. */
export function isRefusal(failure: HoldfastError): boolean {
  return REFUSALS.has(failure.code);
}

/**
 * Translates an error of SQLite or of the system: `what` was being done, `safety` says what is and is not affected.
 * Returns anything else unchanged.
 */
export function sqliteFailure(error: unknown, what: string, path: string, safety: string): unknown {
  return isSqliteError(error) ? inWords(error, what, path, safety) : diskFailure(error, what, path, safety);
}

export function isSqliteError(error: unknown): error is Error {
  return sqliteCode(error) !== undefined;
}

/** A commit may be in the file. So it may if the runtime does not say which I/O error it was. */
function isInDoubt(errcode: number): boolean {
  return (errcode & 0xff) === SQLITE.IOERR && !NOTHING_WRITTEN.has(errcode);
}

function inWords(error: Error, what: string, path: string, safety: string): HoldfastError {
  const errcode = sqliteErrcode(error) ?? SQLITE.ERROR;
  const { message } = error;
  const fail = (ours: ErrorCode, why: string, advice: string): HoldfastError =>
    new HoldfastError(
      ours,
      `Could not ${what}: ${why} (SQLite ${errcode}: ${message}; ${path}). ${safety} ${advice}`,
      { path, sqlite: errcode },
      error,
    );
  const reason = reasonFor(errcode, path);
  if (reason !== null) return diskFailure(reason, what, path, safety);
  switch (errcode & 0xff) {
    case SQLITE.FULL:
      return fail("STORE_FULL", "there is no space left", "Free some space, and try again.");
    case SQLITE.CANTOPEN:
      return isWritable(path)
        ? fail("STORE_IO", "SQLite could not open one of its files", TOO_MANY_OPEN)
        : fail("STORE_FORBIDDEN", "permission denied", CHECK_OWNER);
    case SQLITE.PERM:
    case SQLITE.READONLY:
    case SQLITE.AUTH:
      return fail("STORE_FORBIDDEN", "permission denied", CHECK_OWNER);
    case SQLITE.NOTADB:
      return fail("STORE_URL_INVALID", "the file is not an SQLite database", "Use another file.");
    case SQLITE.ERROR:
    case SQLITE.CORRUPT:
    case SQLITE.TOOBIG:
      return fail(
        "JOURNAL_UNREADABLE",
        "the database file is damaged",
        "Copy the file first; then `sqlite3 <file> .recover` recovers what can be recovered.",
      );
    case SQLITE.IOERR:
      if (!isInDoubt(errcode)) return fail("STORE_IO", "the disk reported an error", "Check the disk.");
      return fail(
        "SYNC_FAILED",
        "the disk did not confirm the write, so it is in doubt",
        "Check the disk, and look again.",
      );
    case SQLITE.BUSY:
    case SQLITE.PROTOCOL:
      return fail("STORE_IO", "another program keeps the database busy", "Try again, or stop that program.");
    default:
      return fail("STORE_IO", "SQLite reported an error", "Check the disk, and reopen the session.");
  }
}

function isWritable(path: string): boolean {
  return whyNotWritable(path) === null && whyNotWritable(dirname(path)) === null;
}

/** The system's own error, where SQLite has one word for several, and it can still be found out; otherwise null. */
function reasonFor(errcode: number, path: string): unknown {
  if ((errcode & 0xff) === SQLITE.CANTOPEN) return descriptorFailure();
  // A used-up quota and a maximum file size, but not a full disk.
  if (errcode !== SQLITE.IOERR_WRITE) return null;
  const reason = growthFailure(nodeDisk, path);
  return isFull(reason) ? reason : null;
}

/**
 * An error of an append or a new epoch. If it is not certain that nothing was written, it counts as a failed sync (S9).
 */
export function writeFailure(error: Error, session: string, ledger: Ledger, path: string): HoldfastError {
  const errcode = sqliteErrcode(error) ?? SQLITE.ERROR;
  if ((errcode & 0xff) === SQLITE.CONSTRAINT) return seqTaken(session, ledger, error);
  if (isInDoubt(errcode)) return syncFailed(session, ledger, error);
  return inWords(
    error,
    "append to the journal",
    path,
    "Nothing of this append was written, and nothing before it is affected.",
  );
}

/** The disk did not confirm a sync: what was not durable before is in doubt. */
export function syncFailed(session: string, ledger: Ledger, cause: unknown): HoldfastError {
  const { durable, head } = ledger;
  const doubt =
    head > durable
      ? `Records ${durable + 1} to ${head} of session ${session} are in doubt, and a power cut could lose them; everything up to ${durable} is safe.`
      : `Everything of session ${session} up to ${durable} is safe; an append that was in progress is in doubt.`;
  return new HoldfastError(
    "SYNC_FAILED",
    `The disk did not confirm the write. ${doubt} Reopen the session: that rewrites the log, and shows what is there.`,
    { session, durable, from: durable + 1, to: head, errno: errnoOf(cause) ?? null },
    cause,
  );
}

/** A row with our next seq already exists, and we did not write it. */
function seqTaken(session: string, ledger: Ledger, cause: unknown): HoldfastError {
  const message =
    `Another process has written record ${ledger.head + 1} of session ${session}, although this process holds its lease. ` +
    "Acknowledged records are safe; this append was not written. Reopen the session.";
  return new HoldfastError("LEASE_LOST", message, { session, seq: ledger.head + 1 }, cause);
}
