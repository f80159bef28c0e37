import type { ErrorCode, HoldfastError } from "../errors.ts";
import type { VerbatimLine } from "./lines/verbatim.ts";
import type { JournalRecord, Json, NewRecord } from "./record.ts";
import type { TextTables } from "./texts.ts";

/**
 * What a store promises, and all that the layers above may know of one. A store keeps records, in order, safely; it knows
 * nothing of conversations. Every implementation runs the conformance suite of `@holdfast/testkit`.
 */

/** `power`: survives a power cut when acknowledged. `process`: survives SIGKILL; a power cut costs at most the last second. */
export type Durability = "power" | "process";

/** What a store can do, stated by itself. The conformance suite skips a case only on the strength of this. */
export interface Capabilities {
  /** The strongest durability that the store keeps; `none` for memory. */
  readonly durability: Durability | "none";
  /** Who ends a lease: the kernel with its holder, a fence after a time, or only the process itself. */
  readonly lease: "kernel" | "fenced" | "process";
  /** `appendSync` and `flushSync` exist. Else they throw NOT_SUPPORTED. */
  readonly sync: boolean;
  /** Several processes can open the store at the same time. */
  readonly shared: boolean;
  /** Old epochs can be packed. Else `pack` throws NOT_SUPPORTED. */
  readonly pack: boolean;
}

/**
 * Folds records into the row that a list shows. Pure: the row is all its state, so that a row found in a journal can be
 * carried on from there. Given by the layer above; the store does not know what a row means.
 */
export interface Summariser {
  /** The row after `record`; `row` is null before the first record. It keeps no reference into the record, which is its owner's. */
  add(row: Json, record: JournalRecord | (NewRecord & { readonly seq: number; readonly at: string })): Json;
  /** Is the row to be written into this record, as its `summary`? (`segment` and `closed` always carry it.) */
  carries(record: NewRecord): boolean;
  /**
   * What can be used of a row that was found in a journal or a catalogue, which anybody may have written; null if nothing can: then the records tell. Without this, a row is taken as it is.
   */
  read?(row: Json): Json;
}

/** The row that a record carries; undefined if it carries none that can be used. */
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

/** What was wrong with a journal, and what opening it did (or, for a reader, would do) about it. */
export interface Recovery {
  /** The last writer did not close the journal. */
  readonly unclean: boolean;
  /** Bytes at the end that were never acknowledged, and were cut off (by a reader: that a writer will cut off). */
  readonly cutBytes: number;
  /** Where the cut bytes are kept. */
  readonly quarantine?: string;
  /** Damage to what had been durable: skipped and kept in place. */
  readonly damaged: Damage[];
  /** Seqs that no line is there for. */
  readonly missing: readonly { readonly from: number; readonly to: number }[];
}

export interface Damage {
  /** Or the table or index of a database, where that does not say what the journal says; then `offset` and `bytes` are 0. */
  readonly segment: string;
  readonly offset: number;
  readonly bytes: number;
  readonly seq?: number;
  /** `foreign` is valid JSON that is no record of ours; everything else is `corrupt`. */
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

/** The whole journal, looked at byte by byte. */
export interface Verification extends Recovery {
  readonly id: string;
  readonly records: number;
  readonly bytes: number;
  readonly segments: number;
  /** A writer holds the lease: an unfinished end is being written, and is not counted in `cutBytes`. */
  readonly beingWritten: boolean;
}

export interface Listed {
  readonly id: string;
  /** When the newest record was written, by the clock of its writer. */
  readonly at: string;
  /** What lists are ordered by, where that is not `at`, because the clock was set back: it sorts as `at` does, and is later than that. */
  readonly stamp?: string;
  /** The newest seq. */
  readonly head: number;
  /** The last writer ended in order. If not, a writer is at work or has died: ask `holder`. */
  readonly closed: boolean;
  /** What the summariser made of the records; without one, the newest that stands in the journal, or null. */
  readonly summary: Json;
  /**
   * Why nothing can be told of the session now (it belongs to another user, the disk fails): `code` and `message` of the error that opening it would give. The rest of the row is what was known before, if anything was:
   * else `at` is the beginning of time, `head` 0, and `summary` null.
   */
  readonly unreadable?: { readonly code: ErrorCode; readonly message: string };
  /** Who writes to it now, by a store that knows it while it lists; null: nobody. Where it is missing, `holder` tells. */
  readonly holder?: Holder | null;
}

export interface ListOptions {
  /** Members of the summary that must have these values. */
  readonly where?: Readonly<Record<string, string | number | boolean | null>>;
  /** What else is wanted: a store that can leave out by this what nobody wants, cheaply, does. */
  readonly hints?: ListHints;
  readonly limit?: number;
  /** The `next` of the page before. */
  readonly after?: string;
}

/** A store leaves out nothing that fits all of them; whether it leaves out what does not is its own affair, so whoever asks looks again. */
export interface ListHints {
  /** The newest record was written at this time, or later. */
  readonly since?: string;
  /** It was written before this time. */
  readonly until?: string;
  /** Members of the summary that are objects, and have these members. */
  readonly within?: Readonly<Record<string, Readonly<Record<string, string>>>>;
  /** Members of the summary that have none of these values. */
  readonly noneOf?: Readonly<Record<string, readonly string[]>>;
  /** At least one of these members is there, and neither null, false, 0, nor empty. */
  readonly anyOf?: readonly string[];
}

export interface WriterOptions {
  /** What the holder of the lease calls itself; default `holdfast`. */
  readonly app?: string;
  /** Members that the `opened` record is to carry. */
  readonly opened?: Readonly<Record<string, Json>>;
}

export interface AppendOptions {
  /** Default: the store's. */
  readonly durability?: Durability;
  /** The same key again, also after reopening, answers the first seq and writes nothing. Remembered for the current epoch, and 256 keys beyond. */
  readonly key?: string;
}

export interface Appended {
  /** Seq of the first record of the unit. */
  readonly seq: number;
  /** Seq of its last record. */
  readonly last: number;
  /** When it was written, by a store that writes later than inside the call. */
  readonly at?: string;
}

export interface FollowOptions {
  /** A seq, or a cursor (`cursorOf`): only records after it. A cursor whose record has changed is CURSOR_STALE. Default: from the beginning. */
  readonly after?: number | string;
  readonly signal?: AbortSignal;
}

/** The right to write to one session, and the way to do it. */
export interface Journal extends AsyncDisposable {
  readonly id: string;
  /** Seq of the newest record written. */
  readonly head: number;
  /** When the newest record was written. All records of a unit have one time. */
  readonly at: string;
  /** Every record up to this seq survives a power cut. */
  readonly durable: number;
  /** Why this journal takes no more appends; null while it does. */
  readonly failure: HoldfastError | null;
  /**
   * Appends one record, or several as one unit that counts together or not at all. The bytes are handed to the kernel
   * inside the call; what the caller changes later changes nothing stored. Resolves when the durability is reached (P1).
   * Rejects with RECORD_NOT_JSON, RECORD_INVALID (no record at all, no kind, a name of the envelope), RECORD_TOO_LARGE, STORE_FULL and STORE_IO with nothing written: the journal goes on. SYNC_FAILED,
   * FILE_REPLACED, LEASE_LOST: in doubt; the journal takes no more appends until it is reopened (P8). JOURNAL_CLOSED.
   */
  append(records: NewRecord | readonly NewRecord[], options?: AppendOptions): Promise<Appended>;
  /** The same, with the durability reached when it returns. NOT_SUPPORTED without the capability `sync`. */
  appendSync(records: NewRecord | readonly NewRecord[], options?: AppendOptions): Appended;
  /** Everything written so far survives a power cut when this resolves. */
  flush(): Promise<void>;
  flushSync(): void;
  /**
   * Begins a new epoch, at one instant: before it the old records are current, after it the new ones. `build` is called
   * once, synchronously, at that instant, so that it sees every append that came before; its first record is of kind `epoch`.
   * Else it is RECORD_INVALID. Durable when it resolves, whatever the durability. If it rejects with STORE_FULL the old epoch goes on.
   */
  epoch(build: () => readonly NewRecord[]): Promise<Appended>;
  /** Gives out every record once, in order: those of this writer when they are acknowledged. */
  follow(options?: FollowOptions): AsyncIterable<JournalRecord>;
  /** Calls back at once when the journal fails in the background. Returns the way to stop that. */
  onFailure(listener: (error: HoldfastError) => void): () => void;
  /** Syncs, writes `closed` if this writer wrote anything, and gives the lease back (also when the sync fails, and then rejects). */
  close(): Promise<void>;
}

export interface JournalStore extends AsyncDisposable {
  readonly url: string;
  readonly capabilities: Capabilities;
  /** What this place cannot promise (a network file system), in words for a person. */
  readonly warnings: readonly string[];
  /** Where the layer above may keep an index of its own, which is derived: it may be deleted at any time. Null: nowhere but in memory. */
  readonly searchFile: string | null;
  /** The same, in tables of the store's own that all who open it share. */
  readonly texts?: TextTables | null;
  /** A new session that begins with `records`, encoded inside the call. It is there after a power cut when this resolves. ID_INVALID, SESSION_EXISTS. */
  create(id: string, records: readonly NewRecord[], options?: WriterOptions): Promise<Journal>;
  /** Takes the lease, heals, and returns the records of the current epoch, all durable (but for a final `closed`). SESSION_NOT_FOUND, SESSION_BUSY { holder, sameProcess }, FORMAT_NEWER. */
  open(id: string, options?: WriterOptions): Promise<Opened>;
  /** The current epoch, without the lease; writes nothing. */
  read(id: string): Promise<Snapshot>;
  /** All records from seq `from` (default 1) on, complete units only, to the end as it is now; writes nothing. */
  history(id: string, from?: number): AsyncIterable<JournalRecord>;
  /** Records as they come, until the signal fires, the session is deleted or the store is closed. */
  follow(id: string, options?: FollowOptions): AsyncIterable<JournalRecord>;
  has(id: string): Promise<boolean>;
  /** Who writes to it now. A probe: it never waits, and disturbs nobody. */
  holder(id: string): Promise<Holder | null>;
  /**
   * Newest first: by which session was written to last, also if a clock was wrong meanwhile, and sessions of the same instant by id. (Of sessions that two processes write at the same time, either may come first.) Reads no
   * transcripts (P7). One session that cannot be read does not keep the others from being listed (P9).
   */
  list(options?: ListOptions): Promise<{ readonly sessions: readonly Listed[]; readonly next?: string }>;
  /** To the trash, under the lease. SESSION_BUSY, SESSION_NOT_FOUND. */
  delete(id: string): Promise<void>;
  /** Reads everything, reports, heals nothing. */
  verify(id: string): Promise<Verification>;
  /** Compresses what lies before the current epoch, under the lease. */
  pack(id: string): Promise<{ readonly segments: number; readonly bytesBefore: number; readonly bytesAfter: number }>;
  /**
   * A new session that holds exactly these lines, with the seqs, times and checksums that they have: a copy of one that is elsewhere. It is there, whole and durable, when this resolves, and not at all before; what an
   * attempt that came to nothing has left is in nobody's way. A store may not have this. ID_INVALID, SESSION_EXISTS, SESSION_BUSY, RECORD_INVALID.
   */
  adopt?(id: string, lines: AsyncIterable<readonly VerbatimLine[]>): Promise<void>;
  /** Removes what has been in the trash for longer than `graceMs` (default a week), and what unfinished work left behind. */
  gc(options?: { readonly graceMs?: number }): Promise<{ readonly removed: readonly string[] }>;
  /** Closes every journal that this store has open. */
  close(): Promise<void>;
}
