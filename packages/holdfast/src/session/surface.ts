import type { TrySuspension } from "../admit/suspension.ts";
import type { PromptOptions, StateOptions } from "../admit/to-records.ts";
import type { Queued } from "../conversation/prompt-queue.ts";
import type { Attributes, Link } from "../conversation/records/attributes.ts";
import type { Dialect, Entry, Metadata } from "../dialects/dialect.ts";
import type { DialectMessages, DialectName } from "../dialects/index.ts";
import type { HoldfastError } from "../errors.ts";
import type { Durability, Holder, Recovery, Verification } from "../journal/contract.ts";
import type { JournalRecord, Json } from "../journal/record.ts";
import type { ListQuery, Summary, TrashedSession } from "../listing/query.ts";
import type { SearchHit } from "../search/search-index.ts";
import type { SyncOptions } from "../sync/given-array.ts";
import type { OpenCall } from "../view/interruption.ts";
import type { Reading } from "../view/reading.ts";
import type { ResumeOptions } from "../view/repairs.ts";
import type { Answer } from "./prompts/answer.ts";
import type { Probe, SettleOptions } from "./turn/probe.ts";
import type { CloseOptions, Turn } from "./turn/surface.ts";

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

/** Options that name a built-in dialect, which gives the type of the messages. */
export type Named<D extends DialectName, Options> = Omit<Options, "dialect"> & { readonly dialect: D };

/** Options of `store.read`. */
export interface ReadOptions<M> {
  /**
   * The name of a built-in dialect gives the type of the messages; a session in another one is refused
   * (DIALECT_UNKNOWN). A dialect object of your own overrides what the journal says.
   */
  readonly dialect?: DialectName | Dialect<M>;
  /**
   * Shows the conversation as it was at the record with this seq, for example before a compaction or rewind replaced it
   * (the record before an `epoch`). Reads the journal from its beginning. Default: the newest record.
   */
  readonly until?: number;
}

/** Options of `store.resume`. */
export interface OpenOptions<M> extends Omit<ReadOptions<M>, "until"> {
  /** The name that the lease holder is recorded under. */
  readonly app?: string;
  /** How long streamed text may wait before it is written, in milliseconds. Default 200. */
  readonly draftMs?: number;
  /** How much streamed text may wait before it is written, in characters. Default 8192. */
  readonly draftChars?: number;
}

/** Options of `store.resumeLatest`. */
export interface LatestOptions<M> extends OpenOptions<M> {
  readonly onPassedOver?: (id: string, error: HoldfastError) => void;
}

/** Options of `store.fork`. */
export interface ForkOptions<M> extends OpenOptions<M> {
  readonly at?: string;
  readonly title?: string;
  /** The folder that the agent works in from now on. Default: the source's. */
  readonly cwd?: string;
  /** Added to the labels of the source, or in place of those with the same name. */
  readonly labels?: Record<string, string>;
}

/** Options of `store.record`. */
export type RecordOptions<M> = Pick<OpenOptions<M>, "app" | "dialect">;

/** Options of `store.create`. */
export interface CreateOptions<M> extends Omit<OpenOptions<M>, "dialect"> {
  readonly dialect: DialectName | Dialect<M>;
  /**
   * A UUID in lower case, in place of a new one: of several processes that create the session, one succeeds, and the
   * others get SESSION_EXISTS. Derive it from what must exist once, with `idFrom`.
   */
  readonly id?: string;
  /** Without a title, lists show the beginning of the first prompt. */
  readonly title?: string;
  /** The folder that the agent works in. Lists and `resumeLatest` match it by its real path. */
  readonly cwd?: string;
  /** At most 16,384 characters in total, names and values together. */
  readonly labels?: Record<string, string>;
  /** The session, and the call in it, that this session works for. */
  readonly parent?: Link;
}

/** A conversation open for writing. Unless stated otherwise, records are durable when the promise resolves. */
export interface Session<M> extends Reading<M>, AsyncDisposable {
  /** The open turn; null between turns. */
  readonly turn: Turn<M> | null;
  /**
   * Starts a turn. In the same unit as the prompt, closes whatever an interrupted turn left open, saying how far it got
   * (P3, P5), and takes a queued prompt from the queue: all of it is durable, or none of it happened.
   * With the id of the open turn's prompt, returns that turn (a retry); with an interrupted turn's, resumes it. So it
   * does with the `key` of a prompt, in every epoch. A prompt in the queue is delivered from there; if its turn is over
   * or waits for a person, it throws PROMPT_KNOWN { turn } (see `answer`). Throws TURN_OPEN, KEY_TAKEN,
   * MESSAGE_UNFIT, MESSAGE_NOT_JSON, MESSAGE_ID_TAKEN, QUEUE_UNKNOWN, SESSION_CLOSED, store errors.
   */
  startTurn(prompt: M | M[] | Queued<M>, options?: PromptOptions & StateOptions): Promise<Turn<M>>;
  /** `store.answer` for this session. Throws SESSION_CLOSED, also when it is closed meanwhile. */
  answer(key: string, options?: { readonly signal?: AbortSignal }): Promise<Answer<M> | null>;
  /**
   * Asks what happened to the interrupted turn's calls whose outcome is unknown, all at once: `probes` has a function
   * for each tool name. Records what is found, so that `interruption`, the model and people are told. What nobody can
   * tell stays as it was. Call it before `resumeTurn` or `startTurn`; until it is done, they wait. `close` ends the
   * questions. Throws TURN_OPEN, RECORD_INVALID, SESSION_CLOSED, store errors.
   */
  settleCalls(probes: Readonly<Record<string, Probe>>, options?: SettleOptions): Promise<void>;
  /** Continues the last turn. Throws NOTHING_TO_RESUME if it completed or there is none, TURN_OPEN. */
  resumeTurn(options?: ResumeOptions): Promise<Turn<M>>;
  /**
   * Completes an interrupted turn that has its answer (`interruption.answered`), without asking the model again; a turn
   * that is open ends with `turn.end`. Throws TURN_UNANSWERED if the answer is missing, NOTHING_TO_RESUME, TURN_OPEN.
   */
  completeTurn(): Promise<void>;
  /**
   * For agents that keep an array of messages: records the messages that are new, opens a turn at a prompt, and ends
   * the turn at an answer without calls (R14). Calls are serialized. An array that no longer starts with the recorded
   * conversation starts a new epoch or throws SYNC_REWRITE (see `rewrite`). What is new follows in appends of its own:
   * a kill in between can leave neither the old end nor the new one. A message changed in place is detected back to the
   * assistant's last message, at most eight messages.
   * Throws SYNC_FOREIGN for messages of another session, RECORD_INVALID for invalid options.
   */
  sync(messages: readonly M[], options?: SyncOptions): Promise<{ appended: string[]; epoch: boolean }>;
  /**
   * Applies a JSON merge patch to the metadata; the message itself stays as it is. Hides a message from the next turn
   * on; to take it away at once, use `edit` with `now`. Throws MESSAGE_UNKNOWN.
   */
  patch(id: string, metadata: Metadata): Promise<void>;
  /**
   * Shows these messages in place of the given ones, which stay in `entries`, marked. The model sees the change from
   * the next turn on, or at once with `now`. Throws STEP_SPLIT for part of a step, MESSAGE_UNKNOWN, MESSAGE_UNFIT,
   * MESSAGE_NOT_JSON.
   */
  edit(ids: string[], shown: M[], options: { reason: string; now?: boolean }): Promise<void>;
  /**
   * Starts a new epoch with this conversation, atomically. An `Entry` keeps its id, turn and metadata. The queue, open
   * turn, title, usage and notes are kept, and so, at the end, are messages still being written at the call. Throws
   * CALLS_OPEN if it would drop a call whose tool is running, STEP_SPLIT, MESSAGE_UNFIT, MESSAGE_NOT_JSON.
   */
  replace(items: (M | Entry<M>)[], options: { reason: "compaction" | "clear" | "rewind" | "import" }): Promise<void>;
  /**
   * Undoes the last `replace`, also after a restart, until the next turn. Keeps later records. Throws UNDO_TOO_LATE.
   */
  undo(): Promise<void>;
  /**
   * Queues a prompt. Pass the returned item to `startTurn`, or to `turn.append` to steer: it is delivered once. With
   * the `key` of a prompt that waits, returns that one. Throws PROMPT_KNOWN { turn } if the prompt with this key has
   * its turn already, KEY_TAKEN, MESSAGE_UNFIT, MESSAGE_NOT_JSON, MESSAGE_ID_TAKEN.
   */
  enqueue(prompt: M, options?: PromptOptions): Promise<Queued<M>>;
  /** Withdraws a queued prompt. Throws QUEUE_UNKNOWN. */
  dequeue(id: string): Promise<void>;
  /** Records application data. The latest value for each name is in `attributes.notes`, across epochs. */
  note(name: string, value: Json): Promise<void>;
  /**
   * Makes a call that is recorded once, however often it is repeated with the same key, also after a crash and in
   * another process. `work` makes one call of this session or its turn; the key is recorded in one unit with what that
   * writes. If the key is known, `work` is not called: also if it rejected after it had written something. `content`:
   * what the call is about, as text. The journal holds a digest of it, so that a key is not used for two different
   * calls. All keys of the current epoch are remembered, and the newest 256 from before it. `streams`: the call pushes
   * text into a draft, and flushes it. Calls with one key wait for one another, and so do those that stream. Throws
   * KEY_TAKEN (used with different content), RECORD_INVALID (also for a call inside the `work` of another one of this
   * session), what `work` throws.
   */
  once(
    key: string,
    content: string,
    work: () => Promise<unknown>,
    options?: { readonly streams?: boolean },
  ): Promise<Once>;
  /** Throws ATTRIBUTE_INVALID. */
  rename(title: string): Promise<void>;
  /** Yields each record once, in order, after seq `after`, until the signal fires or the session is closed. */
  follow(options?: { after?: number; signal?: AbortSignal }): AsyncIterable<JournalRecord>;
  /**
   * Once this resolves, everything written so far survives a power cut, drafts included (with redaction, except the end
   * of a stream that could be the start of a secret). Rejects if a piece of the open draft is missing.
   */
  flush(): Promise<void>;
  /** Like `flush`, but done when it returns. Throws NOT_SUPPORTED if the store cannot write synchronously. */
  flushSync(): void;
  /**
   * Closes the writer. Earlier calls still complete; later ones throw SESSION_CLOSED. An open turn is recorded as
   * aborted by "close"; tools are not waited for. With `handOver`, the turn goes on in the next process: until it is
   * handed over, calls that do not begin anything still work. A second call returns the first call's promise. If it
   * rejects, that record failed or is in doubt; the lease is released either way. Throws RECORD_INVALID for options,
   * and then closes nothing.
   */
  close(options?: CloseOptions): Promise<void>;
}

/** How a turn ended. */
export interface TurnEnd {
  readonly outcome: "completed" | "aborted" | "failed";
  /** Who aborted it. */
  readonly by?: string;
  readonly reason?: string;
  /** Why it failed. */
  readonly error?: string;
}

/** A session that this process only writes to. Each call is durable when it resolves. */
export interface Recorder<M> extends AsyncDisposable {
  readonly id: string;
  /** As they were when it was opened. */
  readonly attributes: Attributes;
  /** How many turns the session has. */
  readonly turns: number;
  /** The number of the open turn; null if there is none. */
  readonly turn: number | null;
  /**
   * Records the prompt. If an earlier process died in the middle of a turn, that turn and its calls are closed in the
   * same unit. Throws TURN_OPEN, MESSAGE_UNFIT, MESSAGE_NOT_JSON, RECORD_TOO_LARGE, SESSION_CLOSED, store errors.
   */
  startTurn(prompt: M): Promise<void>;
  /** Records messages of the open turn, several as one unit. Throws TURN_ENDED, and what `startTurn` throws. */
  append(messages: M | M[]): Promise<void>;
  /** Ends the open turn in any of the ways in which a turn ends, in one unit with its last messages. */
  endTurn(how: TurnEnd, last?: M[]): Promise<void>;
  /**
   * A try of the interrupted turn begins. Resolves with how many there were since the last progress, this one included.
   * Throws NOTHING_TO_RESUME, TURN_OPEN, and what `note` throws.
   */
  claimTurn(worker?: string): Promise<number>;
  /**
   * Continues the interrupted turn with a message that asks for it. Its open calls end in the same unit, as failed,
   * with the words for each. Throws NOTHING_TO_RESUME, and what `startTurn` throws.
   */
  resumeTurn(prompt: M, words: (call: OpenCall) => string): Promise<void>;
  /**
   * The turn, open or interrupted, pauses (`until`), waits for a person, or is parked after that many tries.
   * `attempts`: those that still count when it is tried again. Throws NOTHING_TO_RESUME, and what `note` throws.
   */
  suspendTurn(why: TrySuspension): Promise<void>;
  note(name: string, value: Json): Promise<void>;
  /** Adds these labels, or replaces those with the same names. Throws ATTRIBUTE_INVALID, and what `note` throws. */
  setLabels(labels: Record<string, string>): Promise<void>;
  /** Reads the whole session from the journal. */
  read(): Promise<Reading<M>>;
  /** Records an open turn as aborted by "close", and releases the lease. */
  close(): Promise<void>;
}

/** Where a call with a key is recorded. */
export interface Once {
  /** The seq of its first record. */
  readonly seq: number;
  /** The seq of its last record. */
  readonly last: number;
  /** It was recorded before: this call did nothing. */
  readonly repeated: boolean;
}
