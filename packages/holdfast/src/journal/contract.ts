import type { ErrorCode, HoldfastError } from "../errors.ts";
import type { JournalRecord, Json, NewRecord } from "./record.ts";
import type { TextTables } from "./texts.ts";

/** A line to copy unchanged into another journal: the record, and its bytes without the newline. */
export interface VerbatimLine {
  readonly record: JournalRecord;
  readonly bytes: Buffer;
}

/**
 * What a store promises, and everything the layers above may know about it. A store keeps records in order and durably;
 * it knows nothing about conversations. Every implementation runs the conformance suite of `@holdfast/testkit`.
 */

/**
 * `power`: an acknowledged append survives a power cut. `process`: it survives SIGKILL; a power cut loses at most the
 * last second.
 */
export type Durability = "power" | "process";

/** What a store can do, declared by the store. The conformance suite skips a case only when a capability is missing. */
export interface Capabilities {
  /** The strongest durability the store offers; `none` for memory. */
  readonly durability: Durability | "none";
  /** What ends a lease: the kernel when its holder dies, a fence after a timeout, or only the process itself. */
  readonly lease: "kernel" | "fenced" | "process";
  /** Supports `appendSync` and `flushSync`. Otherwise they throw NOT_SUPPORTED. */
  readonly sync: boolean;
  /**
   * Several processes can open the store at once. Otherwise one process uses it at a time, as often as it likes, and
   * others are refused with STORE_BUSY.
   */
  readonly shared: boolean;
  /** Can pack old epochs. Otherwise `pack` throws NOT_SUPPORTED. */
  readonly pack: boolean;
}

/**
 * Folds records into the row a list shows. Pure: the row is its only state, so folding can continue from a row found in
 * a journal. The layer above supplies it; the store does not know what a row means.
 */
export interface Summariser {
  /**
   * Returns the row after `record`; `row` is null before the first record. Keeps no reference into the record, which
   * belongs to the caller.
   */
  add(row: Json, record: JournalRecord | (NewRecord & { readonly seq: number; readonly at: string })): Json;
  /**
   * Whether `add` may change the row. Most records of an append do not, and then `add` need not be called. Without this
   * method, it is called for every record.
   */
  concerns?(row: Json, record: NewRecord): boolean;
  /** Should this record carry the row as its `summary`? (`segment` and `closed` always do.) */
  carries(record: NewRecord): boolean;
  /**
   * Returns the usable part of a row found in a journal or a catalogue, which anyone may have written; null if none of
   * it is usable, so that the row is rebuilt from the records. Without this method, a row is used unchecked.
   */
  read?(row: Json): Json;
}

/** The row a record carries; undefined if it carries no usable one. */
export function rowIn(
  { summary }: Pick<JournalRecord, "summary">,
  summariser: Summariser | undefined,
): Json | undefined {
  if (summary === undefined || !summariser?.read) return summary;
  return summariser.read(summary) ?? undefined;
}

export interface Holder {
  readonly pid: number;
  readonly host: string;
  readonly app: string;
  readonly since: string;
}

/**
 * Whether this holder has written to a journal whose newest record is of this time. Opening writes nothing, so a turn
 * that is open in the journal of a holder that has not is not its own: the writer of that turn has died.
 */
export function hasWritten({ since }: Holder, at: string): boolean {
  // A note that cannot be read has no time.
  return Number.isNaN(Date.parse(since)) || since <= at;
}

/** What was wrong with a journal, and what opening it did about it (for a reader: what opening it would do). */
export interface Recovery {
  /** The last writer did not close the journal. */
  readonly unclean: boolean;
  /** Bytes at the end that were never acknowledged and were cut off (for a reader: that a writer will cut off). */
  readonly cutBytes: number;
  /** Where the cut bytes are kept. */
  readonly quarantine?: string;
  /** Damage to data that had been durable: skipped, and kept in place. */
  readonly damaged: Damage[];
  /** Seqs that have no line. */
  readonly missing: readonly { readonly from: number; readonly to: number }[];
}

export interface Damage {
  /** Or the database table or index that disagrees with the journal; then `offset` and `bytes` are 0. */
  readonly segment: string;
  readonly offset: number;
  readonly bytes: number;
  readonly seq?: number;
  /** `foreign` is valid JSON that is not a Holdfast record; everything else is `corrupt`. */
  readonly why: "corrupt" | "foreign";
}

/** The current epoch of a journal, as it is on disk. */
export interface Snapshot {
  readonly id: string;
  readonly records: readonly JournalRecord[];
  readonly recovery: Recovery;
}

export interface Opened extends Snapshot {
  readonly journal: Journal;
}

/** The result of checking the whole journal byte by byte. */
export interface Verification extends Recovery {
  readonly id: string;
  readonly records: number;
  readonly bytes: number;
  readonly segments: number;
  /** A writer holds the lease: it is still writing the unfinished end, which `cutBytes` does not count. */
  readonly beingWritten: boolean;
}

export interface Listed {
  readonly id: string;
  /** When the newest record was written, by its writer's clock. */
  readonly at: string;
  /**
   * The sort key of lists where it differs from `at` because the clock was set back: sorts like `at`, and is later than
   * it.
   */
  readonly stamp?: string;
  /** The newest seq. */
  readonly head: number;
  /** The last writer closed the journal. If false, a writer is active or has died: ask `holder`. */
  readonly closed: boolean;
  /** The summariser's row; without a summariser, the newest row in the journal, or null. */
  readonly summary: Json;
  /**
   * Why the session cannot be read now (it belongs to another user, the disk fails): `code` and `message` of the error
   * that opening it would throw. The rest of the row is what was last known. If nothing was known, `at` is the earliest
   * possible time, `head` is 0 and `summary` is null.
   */
  readonly unreadable?: { readonly code: ErrorCode; readonly message: string };
  /** The current writer, from a store that knows it while listing; null if there is none. If absent, ask `holder`. */
  readonly holder?: Holder | null;
}

/** A session in the trash. */
export interface Trashed {
  readonly id: string;
  /** When it was moved there. */
  readonly trashedAt: string;
  /** As in `Listed`, as far as it is known; null if it cannot be read. */
  readonly summary: Json;
}

export interface ListOptions {
  /** Members of the summary that must have these values. */
  readonly where?: Readonly<Record<string, string | number | boolean | null>>;
  /** Further conditions that a store may use to leave out unwanted sessions where that is cheap. */
  readonly hints?: ListHints;
  readonly limit?: number;
  /** `next` of the previous page. */
  readonly after?: string;
  /**
   * Called with each session of the page, in order. A store that does so need not hold all of them in memory, and
   * leaves them out of `sessions`; one that does not returns them as usual.
   */
  readonly visit?: (listed: Listed) => void;
}

/**
 * A store never leaves out a session that meets all hints. It may return sessions that do not, so the caller checks
 * again.
 */
export interface ListHints {
  /** The newest record was written at or after this time. */
  readonly since?: string;
  /** The newest record was written before this time. */
  readonly until?: string;
  /** These members of the summary are objects with these members. */
  readonly within?: Readonly<Record<string, Readonly<Record<string, string>>>>;
  /** These members of the summary have none of these values. */
  readonly noneOf?: Readonly<Record<string, readonly string[]>>;
  /** At least one of these members exists and is not null, false, 0 or empty. */
  readonly anyOf?: readonly string[];
}

/** Which sessions a worker asks for: those whose last turn did not complete, and may be tried by now. */
export interface DueQuery extends Required<Pick<ListOptions, "where" | "hints" | "limit">> {
  /** The worker's clock. */
  readonly nowMs: number;
  /** Also turns that were ended on purpose. */
  readonly ended: boolean;
  readonly olderThanMs: number;
  readonly youngerThanMs: number;
  readonly backoffMs: number;
  readonly backoffMaxMs: number;
  /** Ids that are left out. */
  readonly skip: readonly string[];
}

export interface WriterOptions {
  /** The name the lease holder goes by; default `holdfast`. */
  readonly app?: string;
  /** Members to add to the `opened` record. */
  readonly opened?: Readonly<Record<string, Json>>;
}

export interface OpenOptions extends WriterOptions {
  /**
   * Called with each record of the current epoch, in order, as soon as it is read and known to count: the caller can
   * work while the rest arrives. A store that calls it returns no `records`; one that does not returns them all. It
   * must not throw or change the record. If `open` rejects, the records it was called with mean nothing.
   */
  readonly onRecord?: (record: JournalRecord) => void;
}

export interface AppendOptions {
  /** Defaults to the store's durability. */
  readonly durability?: Durability;
  /**
   * Idempotency key: appending with the same key again, even after reopening, returns the first seq and writes nothing.
   * All keys of the current epoch are remembered, and the newest 256 from before it.
   */
  readonly key?: string;
}

export interface Appended {
  /** Seq of the unit's first record. */
  readonly seq: number;
  /** Seq of the unit's last record. */
  readonly last: number;
}

/** Records that a journal has written as one unit, or as the first records of a segment. */
export interface Written {
  /** Seq of the first record; the others follow without a gap. */
  readonly seq: number;
  /** When they were written. */
  readonly at: string;
  /**
   * As passed to the journal, or a copy if it wrote them after the call had returned. Its own records are here too:
   * `opened`, `segment` (before the records of an epoch) and `closed`.
   */
  readonly records: readonly NewRecord[];
}

export interface FollowOptions {
  /**
   * A seq or a cursor (`cursorOf`): yields only records after it. Throws CURSOR_STALE if the cursor's record has
   * changed. Default: from the beginning.
   */
  readonly after?: number | string;
  readonly signal?: AbortSignal;
}

/** The right to write to one session, and the means to do so. */
export interface Journal extends AsyncDisposable {
  readonly id: string;
  /** Seq of the newest record written. */
  readonly head: number;
  /** When the newest record was written. All records of a unit share one time. */
  readonly at: string;
  /** Every record up to this seq survives a power cut. */
  readonly durable: number;
  /** Why this journal accepts no more appends; null while it accepts them. */
  readonly failure: HoldfastError | null;
  /**
   * Appends one record, or several as one unit that counts as a whole or not at all. The call passes the bytes to the
   * kernel before it returns, so later changes by the caller do not affect what is stored. Resolves when the durability
   * is reached (P1).
   *
   * Rejects with RECORD_NOT_JSON, RECORD_INVALID (not a record, no kind, a reserved envelope name), RECORD_TOO_LARGE,
   * STORE_FULL or STORE_IO when nothing was written: the journal stays usable. Rejects with SYNC_FAILED, FILE_REPLACED
   * or LEASE_LOST when the outcome is unknown: the journal accepts no more appends until it is reopened (P8). Rejects
   * with JOURNAL_CLOSED after `close`.
   */
  append(records: NewRecord | readonly NewRecord[], options?: AppendOptions): Promise<Appended>;
  /**
   * Like `append`, but the durability is reached when it returns. Throws NOT_SUPPORTED without the capability `sync`.
   */
  appendSync(records: NewRecord | readonly NewRecord[], options?: AppendOptions): Appended;
  /**
   * When this resolves, everything written so far survives a power cut, and the store has it now. Rejects like
   * `append`.
   */
  flush(): Promise<void>;
  flushSync(): void;
  /**
   * Starts a new epoch atomically: before, the old records are current; after, the new ones. `build` is called once,
   * synchronously, at that instant, so it sees every earlier append. Its first record must be of kind `epoch`, or the
   * call fails with RECORD_INVALID. Durable when it resolves, regardless of the durability setting. If it rejects with
   * STORE_FULL, the old epoch continues. With a `key` that was used before, `build` is not called.
   */
  epoch(build: () => readonly NewRecord[], options?: Pick<AppendOptions, "key">): Promise<Appended>;
  /** Yields every record once, in order; this writer's own records once they are acknowledged. */
  follow(options?: FollowOptions): AsyncIterable<JournalRecord>;
  /**
   * Calls `listener` with everything this journal writes from now on, its own records included: in order, as soon as it
   * is written, and before the append that wrote it resolves. A refused append is not reported; one whose outcome is
   * unknown may be. The listener must not call the journal. Returns a function that unsubscribes.
   */
  onWritten(listener: (written: Written) => void): () => void;
  /** Calls `listener` as soon as the journal fails in the background. Returns a function that unsubscribes. */
  onFailure(listener: (error: HoldfastError) => void): () => void;
  /**
   * Syncs, writes `closed` if this writer wrote anything, and releases the lease. If the sync fails, it releases the
   * lease and rejects.
   */
  close(): Promise<void>;
}

export interface JournalStore extends AsyncDisposable {
  readonly url: string;
  readonly capabilities: Capabilities;
  /** Human-readable warnings: what this location cannot guarantee, for example on a network file system. */
  readonly warnings: readonly string[];
  /**
   * Where the layer above may keep its own search index. The index is derived and may be deleted at any time. Null: in
   * memory only.
   */
  readonly searchFile: string | null;
  /** The same, in the store's own tables, shared by all its clients. */
  readonly texts?: TextTables | null;
  /**
   * Creates a session that starts with `records`, which are encoded inside the call. When this resolves, the session
   * survives a power cut. Throws ID_INVALID, SESSION_EXISTS.
   */
  create(id: string, records: readonly NewRecord[], options?: WriterOptions): Promise<Journal>;
  /**
   * Takes the lease, heals, and returns the records of the current epoch, all durable (except a final `closed`). Throws
   * SESSION_NOT_FOUND, SESSION_BUSY { holder, sameProcess }, FORMAT_NEWER.
   */
  open(id: string, options?: OpenOptions): Promise<Opened>;
  /** Reads the current epoch without taking the lease; writes nothing. */
  read(id: string): Promise<Snapshot>;
  /** Yields all records from seq `from` (default 1) to the current end, complete units only; writes nothing. */
  history(id: string, from?: number): AsyncIterable<JournalRecord>;
  /** Yields records as they arrive, until the signal fires, the session is deleted or the store is closed. */
  follow(id: string, options?: FollowOptions): AsyncIterable<JournalRecord>;
  has(id: string): Promise<boolean>;
  /** The current writer. A probe: it never waits and never disturbs the writer. */
  holder(id: string): Promise<Holder | null>;
  /**
   * Lists sessions by last write, newest first, even if a clock was wrong in between; ties are ordered by id. (If two
   * processes write to two sessions at the same time, either session may come first.) Reads no transcripts (P7). A
   * session that cannot be read does not stop the others from being listed (P9).
   */
  list(options?: ListOptions): Promise<{ readonly sessions: readonly Listed[]; readonly next?: string }>;
  /**
   * For workers, in a store that can do better than to list every unfinished session: sessions that are due, the
   * longest due first, and of those that are not due yet at least the next one. It may return others too, and the
   * caller checks again. Optional.
   */
  due?(query: DueQuery): Promise<readonly Listed[]>;
  /** Moves the session to the trash, under the lease. Throws SESSION_BUSY, SESSION_NOT_FOUND. */
  delete(id: string): Promise<void>;
  /** The sessions in the trash, the last one deleted first. Several of them may have the same id. Optional. */
  trashed?(): Promise<readonly Trashed[]>;
  /**
   * Takes a session out of the trash, under the lease: the last one deleted with this id. Durable when it resolves.
   * Optional. Throws SESSION_NOT_FOUND (also if `gc` has begun to remove it), SESSION_EXISTS, SESSION_BUSY.
   */
  restore?(id: string): Promise<void>;
  /** Reads everything and reports; heals nothing. */
  verify(id: string): Promise<Verification>;
  /** Compresses everything before the current epoch, under the lease. */
  pack(id: string): Promise<{ readonly segments: number; readonly bytesBefore: number; readonly bytesAfter: number }>;
  /**
   * Creates a session with exactly these lines, keeping their seqs, times and checksums: a copy of a session from
   * elsewhere. The session is complete and durable when this resolves, and does not exist before; leftovers of a failed
   * attempt do no harm. Optional. Throws ID_INVALID, SESSION_EXISTS, SESSION_BUSY, RECORD_INVALID.
   */
  adopt?(id: string, lines: AsyncIterable<readonly VerbatimLine[]>): Promise<void>;
  /**
   * Removes what has been in the trash for longer than `graceMs` (default: one week), and leftovers of unfinished work.
   */
  gc(options?: { readonly graceMs?: number }): Promise<{ readonly removed: readonly string[] }>;
  /** Closes every journal this store has open. */
  close(): Promise<void>;
}
