import type { Dialect } from "../dialects/dialect.ts";
import type { DialectMessages, DialectName } from "../dialects/index.ts";
import type { Durability, Holder, Recovery, Verification } from "../journal/contract.ts";
import type { JournalRecord } from "../journal/record.ts";
import type { ListQuery, Summary, TrashedSession } from "../listing/query.ts";
import type { SearchHit } from "../search/search-index.ts";
import type { Reading } from "../view/reading.ts";
import type { Answer } from "./prompts/answer.ts";
import type {
  CreateOptions,
  ForkOptions,
  LatestOptions,
  Named,
  Once,
  OpenOptions,
  ReadOptions,
  Recorder,
  RecordOptions,
  Session,
} from "./surface.ts";
import type { CloseOptions } from "./turn/surface.ts";
import type { ClaimOptions, ClaimResult, Finish, WorkOptions } from "./work/surface.ts";

export interface StoreOptions {
  /** What every append waits for. `power` (the default) survives a power cut; `process` survives SIGKILL (P1). */
  readonly durability?: Durability;
  /**
   * Redacts the texts of every record before it is written, synchronously. `"credentials"` recognizes common keys and
   * tokens. Off by default: redaction is irreversible, and signed reasoning after it is no longer sent (R1).
   */
  readonly redact?: "credentials" | ((text: string) => string);
  /** The application's own dialects, so that sessions in them can be listed, searched and read. */
  // biome-ignore lint/suspicious/noExplicitAny: the type of the messages is the application's to say.
  readonly dialects?: readonly Dialect<any>[];
  /** This program's name, recorded in leases and in sessions that do not set their own. */
  readonly app?: string;
  /**
   * Your promise that this program starts every tool through `turn.tool` or `turn.toolStarted`. Each session records it
   * for as long as this store has it open. Only then is a call without a recorded start known never to have run (R5).
   */
  readonly recordsToolStarts?: boolean;
}

/** Where sessions live. Open one with `openStore`. */
export interface Store extends AsyncDisposable {
  /** The address that this store was opened with. */
  readonly url: string;
  /** What this location cannot guarantee (for example, a network file system), in human-readable form. */
  readonly warnings: readonly string[];
  /**
   * Creates a session. It survives a power cut once this resolves, and is listed from its first turn on. The name of a
   * built-in dialect also gives the type of the messages; `create<MessageParam>(…)` narrows it to an SDK's own type.
   * Throws DIALECT_UNKNOWN, ATTRIBUTE_INVALID, ID_INVALID, SESSION_EXISTS, STORE_FULL, STORE_IO, STORE_FORBIDDEN,
   * STORE_CLOSED, LIBRARY_REPLACED.
   */
  create<D extends DialectName>(
    options: Named<D, CreateOptions<DialectMessages[D]>>,
  ): Promise<Session<DialectMessages[D]>>;
  create<M = unknown>(options: CreateOptions<M>): Promise<Session<M>>;
  /**
   * Opens a session for writing: takes the lease, repairs what a crash left behind, and reports what was in flight
   * (`interruption`). Everything it shows is durable. It appends nothing to the journal by itself. Throws
   * SESSION_NOT_FOUND, SESSION_BUSY { holder, sameProcess }, DIALECT_UNKNOWN, FORMAT_NEWER, ID_INVALID, store errors.
   */
  resume<D extends DialectName>(
    id: string,
    options: Named<D, OpenOptions<DialectMessages[D]>>,
  ): Promise<Session<DialectMessages[D]>>;
  resume<M = unknown>(id: string, options?: OpenOptions<M>): Promise<Session<M>>;
  /**
   * Resumes the latest matching session that is not in use, as `resume` does; null if there is none. Interrupted
   * sessions and those waiting for a person come before the others (finished, or stopped with `turn.abort`). One that
   * cannot be opened is skipped and reported to `onPassedOver`, or else as a warning; if no other matches, it throws.
   */
  resumeLatest<D extends DialectName>(
    query: { readonly cwd?: string; readonly app?: string } | undefined,
    options: Named<D, LatestOptions<DialectMessages[D]>>,
  ): Promise<Session<DialectMessages[D]> | null>;
  resumeLatest<M = unknown>(
    query?: { readonly cwd?: string; readonly app?: string },
    options?: LatestOptions<M>,
  ): Promise<Session<M> | null>;
  /** The session that this process has open through this store, for switching back to it; null if it is not open. */
  /**
   * Claims the session that has been due longest, opens it, and calls `finish`, which should finish its turn
   * (`session.resumeTurn`). Due are turns that were cut off or handed over, and those suspended `until` a time that has
   * come. Closes the session afterwards. Any number of workers can do this at once, in any process: no two get the same
   * session. A turn whose `finish` throws, or whose worker dies, is tried again after a pause, and parked after
   * `maxTries` without progress. Calls with an unknown outcome are `finish`'s to settle, as in any resumed turn. Null
   * if nothing is due.
   *
   * Leaves out turns that wait for a person, and sessions with a parent: their parent's turn resumes them. Throws
   * QUERY_INVALID, store errors.
   */
  claimNext<M = unknown>(options: ClaimOptions<M>, finish: Finish<M>): Promise<ClaimResult | null>;
  /**
   * Claims and finishes sessions until the signal fires; then hands over those that are under way. Between looks it
   * waits; nothing else in the library does anything by itself. Throws QUERY_INVALID, STORE_CLOSED, what `onResult` and
   * `onError` throw.
   */
  work<M = unknown>(options: WorkOptions<M>, finish: Finish<M>): Promise<void>;
  /**
   * When `claimNext` should be called next, for an alarm or a queue: in the past if a session is due now; null if none
   * is known. A turn that is cut off later is due at once.
   */
  nextDue<M = unknown>(options?: ClaimOptions<M>): Promise<Date | null>;
  /**
   * Lets workers try the parked turn of a session again, with all their tries. False if it is not parked. Throws like
   * `resume`.
   */
  retry(id: string, options?: OpenOptions<unknown>): Promise<boolean>;
  // biome-ignore lint/suspicious/noExplicitAny: the type of the messages is the application's to say.
  live(id: string): Session<any> | null;
  /**
   * Reads the conversation without the lease; writes nothing. Throws SESSION_NOT_FOUND, DIALECT_UNKNOWN, FORMAT_NEWER.
   */
  read<D extends DialectName>(
    id: string,
    options: Named<D, ReadOptions<DialectMessages[D]>>,
  ): Promise<Reading<DialectMessages[D]>>;
  read<M = unknown>(id: string, options?: ReadOptions<M>): Promise<Reading<M>>;
  /**
   * Where `session.once` recorded the call with this key, in whichever process; null if it did not. What it returns is
   * durable. Throws KEY_TAKEN if the call had different content, SESSION_NOT_FOUND, and SESSION_BUSY if another process
   * has the session open and the call is so recent that it may not be durable yet.
   */
  once(id: string, key: string, content: string): Promise<Omit<Once, "repeated"> | null>;
  /**
   * The answer to the prompt that was given this `key` (`startTurn`, `enqueue`); null if none was, or it was withdrawn.
   * Waits until the turn is over, whichever process works on it. A turn that was interrupted, or waits for a person,
   * may never be finished: pass a `signal`. An answer of an earlier epoch is read from the history. Throws the signal's
   * reason, SESSION_NOT_FOUND, DIALECT_UNKNOWN, store errors.
   */
  answer<D extends DialectName>(
    id: string,
    key: string,
    options: { readonly dialect: D; readonly signal?: AbortSignal },
  ): Promise<Answer<DialectMessages[D]> | null>;
  answer<M = unknown>(
    id: string,
    key: string,
    options?: Pick<ReadOptions<M>, "dialect"> & { readonly signal?: AbortSignal },
  ): Promise<Answer<M> | null>;
  /**
   * Lists sessions newest first, page by page, even if a clock was wrong. Reads no transcripts (P7). Marks unreadable
   * sessions and still lists the others (P9). Throws CURSOR_STALE if `after` did not come from a list.
   */
  list(query?: ListQuery): Promise<{ readonly sessions: Summary[]; readonly next?: string }>;
  /**
   * Full-text search over titles and message texts, newest sessions first. Every word must match; the last one may be a
   * prefix. A hit in a title has the message `""`. Searches the first eight million characters of each message:
   * `onIncomplete` receives sessions with a longer one (`why` is null) and unreadable sessions, with the reason (P9). A
   * PostgreSQL store first indexes what is new, for the first search all its sessions, which can take minutes: if there
   * is much, `onProgress` is told how many are done. With `partial`, the search does not wait for that, and yields what
   * it finds so far. Indexing continues in the background; if the process ends, another one continues it.
   */
  search(
    text: string,
    query?: ListQuery,
    options?: {
      readonly onIncomplete?: (
        session: string,
        why: { readonly code: string; readonly message: string } | null,
      ) => void;
      readonly onProgress?: (progress: { readonly done: number; readonly total: number }) => void;
      readonly partial?: boolean;
    },
  ): AsyncIterable<SearchHit>;
  has(id: string): Promise<boolean>;
  /** The process that has the session open for writing now; null if none has. */
  holder(id: string): Promise<Holder | null>;
  /**
   * Yields each record once, in order, by any process. Ends on the signal, on deletion, or when the store closes.
   * `after`: a seq, or a cursor for a position that was given away (`Reading.cursor`, `cursorOf`). Throws CURSOR_STALE
   * if the cursor's record is no longer in the journal: start again from the beginning.
   */
  follow(
    id: string,
    after?: number | string,
    options?: { readonly signal?: AbortSignal },
  ): AsyncIterable<JournalRecord>;
  /**
   * Creates a session that starts with another session's conversation, up to and including the step that contains the
   * message `at` (default: the whole conversation). Message ids are kept. The source may be in use, and is not changed.
   * Durable when it resolves. Throws SESSION_NOT_FOUND, MESSAGE_UNKNOWN.
   */
  fork<D extends DialectName>(
    id: string,
    options: Named<D, ForkOptions<DialectMessages[D]>>,
  ): Promise<Session<DialectMessages[D]>>;
  fork<M = unknown>(id: string, options?: ForkOptions<M>): Promise<Session<M>>;
  /**
   * Creates a session, or opens the one with this id, only to write to it. Nothing of the conversation stays in memory,
   * however long the session gets: for proxies and loggers. Throws like `create` and `resume`.
   */
  record<M = unknown>(target: string | CreateOptions<M>, options?: RecordOptions<M>): Promise<Recorder<M>>;
  /** Moves a session to the trash. Throws SESSION_BUSY while any process has it open. */
  delete(id: string): Promise<void>;
  /**
   * The sessions in the trash, the last one deleted first. Throws NOT_SUPPORTED if the store cannot restore sessions.
   */
  trashed(): Promise<TrashedSession[]>;
  /**
   * Takes a session out of the trash: the last one deleted with this id. Throws SESSION_NOT_FOUND if there is none,
   * SESSION_EXISTS, SESSION_BUSY, NOT_SUPPORTED.
   */
  restore(id: string): Promise<void>;
  /** Reads every byte and reports what it finds. Repairs nothing. */
  verify(id: string): Promise<Verification>;
  /** Repairs what a crash left behind, as `resume` does, in any dialect, and reports it. Throws SESSION_BUSY. */
  heal(id: string): Promise<Recovery>;
  /** Yields all records from seq `from` (default 1) to the current end, earlier epochs included; writes nothing. */
  history(id: string, from?: number): AsyncIterable<JournalRecord>;
  /** Compresses everything before the current epoch. Throws SESSION_BUSY, or NOT_SUPPORTED if the store cannot. */
  pack(id: string): Promise<{ readonly segments: number; readonly bytesBefore: number; readonly bytesAfter: number }>;
  /** Permanently removes what was in the trash longer than `graceMs` (default: a week), and leftovers. Returns ids. */
  gc(options?: { readonly graceMs?: number }): Promise<{ readonly removed: readonly string[] }>;
  /**
   * Closes every session that is open through this store, as `session.close` does. A recorder hands nothing over: its
   * turn is recorded as aborted by "close". Throws RECORD_INVALID, before anything is closed, and store errors.
   */
  close(options?: CloseOptions): Promise<void>;
}
