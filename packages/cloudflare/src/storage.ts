import { type ErrorCode, HoldfastError } from "holdfast";

/** What the store uses of a Durable Object's `ctx`. The object's class must have an SQLite database. */
export interface DurableObjectContext {
  readonly id: { toString(): string };
  readonly storage: DurableObjectStorage;
}

export interface DurableObjectStorage {
  readonly sql: {
    exec(query: string, ...values: SqlValue[]): SqlCursor;
  };
  transactionSync<T>(work: () => T): T;
  sync(): Promise<void>;
}

export type SqlValue = string | number | null | ArrayBuffer | ArrayBufferView;
export type SqlRow = Readonly<Record<string, string | number | null | ArrayBuffer>>;

export interface SqlCursor extends Iterable<SqlRow> {
  toArray(): SqlRow[];
}

const FAILURES: readonly (readonly [found: RegExp, code: ErrorCode, advice: string])[] = [
  [/SQLITE_(?:FULL|TOOBIG)/, "STORE_FULL", "Delete sessions that are not needed, and remove them with gc."],
  [/not backed by SQL|SQL is not enabled/i, "NOT_SUPPORTED", "Declare the class of the object in new_sqlite_classes."],
  [/^/, "STORE_IO", "Try again."],
];

/**
 * An error of the database in our words. A statement that throws, and a transaction in which one does, has changed
 * nothing.
 */
export function storageFailure(error: unknown, url: string): unknown {
  if (error instanceof HoldfastError || !(error instanceof Error)) return error;
  const [, code, advice] = FAILURES.find(([found]) => found.test(error.message))!;
  const message = `The database of ${url} reported: ${error.message}. Nothing was written. ${advice}`;
  return new HoldfastError(code, message, { url }, error);
}

/** The write of something was not confirmed. Cloudflare restarts the object then. */
export function syncFailed(session: string, url: string, cause: unknown): HoldfastError {
  const message =
    `The database of ${url} did not confirm its last writes to session ${session}, so they are in doubt. ` +
    "What was acknowledged before is safe. Open the session again, in the object that Cloudflare starts next.";
  return new HoldfastError("SYNC_FAILED", message, { session, url }, cause);
}
