import type { Appended, AppendOptions } from "../admit/to-records.ts";
import type { Link } from "../conversation/attributes.ts";
import type { Queued } from "../conversation/conversation.ts";
import type { ToolProcess } from "../conversation/records.ts";
import type { Usage } from "../conversation/usage.ts";
import type { Dialect, Entry, Metadata, Outcome } from "../dialects/dialect.ts";
import type { DialectName } from "../dialects/index.ts";
import type { HoldfastError } from "../errors.ts";
import type { Durability, Recovery, Verification } from "../journal/contract.ts";
import type { JournalRecord, Json } from "../journal/record.ts";
import type { ListQuery, Summary } from "../listing/query.ts";
import type { SearchHit } from "../search/search-index.ts";
import type { SyncOptions } from "../sync/given-array.ts";
import type { OpenCall } from "../view/interruption.ts";
import type { Reading } from "../view/reading.ts";
import type { ResumeOptions } from "../view/repairs.ts";

export type { Appended, AppendOptions } from "../admit/to-records.ts";
export type { Attributes, Link } from "../conversation/attributes.ts";
export type { Queued } from "../conversation/conversation.ts";
export type { DraftContent } from "../conversation/draft-state.ts";
export type { ToolProcess } from "../conversation/records.ts";
export type { Cost, Usage } from "../conversation/usage.ts";
export type { ListQuery, Summary } from "../listing/query.ts";
export type { SearchHit } from "../search/search-index.ts";
export type { SyncOptions } from "../sync/given-array.ts";
export type { Interruption, OpenCall } from "../view/interruption.ts";
export type { Reading } from "../view/reading.ts";
export type { ResumeOptions } from "../view/repairs.ts";

export interface StoreOptions {
  /** What every append waits for. `power` (the default) survives a power cut, `process` survives SIGKILL (P1). */
  readonly durability?: Durability;
  /**
   * Runs over the texts of every record before it is written, synchronously. `"credentials"` knows the common shapes of keys and tokens. Off by default: what is redacted
   * cannot be brought back, and signed reasoning behind it is no longer sent (R1).
   */
  readonly redact?: "credentials" | ((text: string) => string);
  /** Dialects of the application's own, so that sessions in them can be listed, searched and read. */
  // biome-ignore lint/suspicious/noExplicitAny: the type of the messages is the application's to say.
  readonly dialects?: readonly Dialect<any>[];
  /** What this program calls itself, in leases and in sessions that do not say otherwise. */
  readonly app?: string;
}

/** Where sessions live. `openStore` makes one. */
export interface Store extends AsyncDisposable {
  /** The address that this store was opened by. */
  readonly url: string;
  /** What this place cannot promise (a network file system), in words for a person. */
  readonly warnings: readonly string[];
  /**
   * A new session. It is there after a power cut when this resolves, and is listed from its first turn on.
   * Throws DIALECT_UNKNOWN, ATTRIBUTE_INVALID, STORE_FULL, STORE_IO, STORE_FORBIDDEN, STORE_CLOSED.
   */
  create<M = unknown>(options: CreateOptions<M>): Promise<Session<M>>;
  /**
   * Opens a session for writing: takes the lease, heals what a crash left behind, and says what was in flight (`interruption`). What it shows is durable. It writes nothing to the journal by itself.
   * Throws SESSION_NOT_FOUND, SESSION_BUSY { holder, sameProcess }, DIALECT_UNKNOWN, FORMAT_NEWER, ID_INVALID, and what the disk says.
   */
  resume<M = unknown>(id: string, options?: OpenOptions<M>): Promise<Session<M>>;
  /**
   * The latest session that fits and is not in use, opened as by `resume`; null if there is none. One that was interrupted, or waits for a person, comes before those that were finished. One that cannot be opened is passed
   * over: `onPassedOver` is told, or else a warning is emitted; if no other fits, its error is thrown.
   */
  resumeLatest<M = unknown>(
    query: { readonly cwd?: string; readonly app?: string },
    options?: OpenOptions<M> & { readonly onPassedOver?: (id: string, error: HoldfastError) => void },
  ): Promise<Session<M> | null>;
  /** The session that this process has open through this store, to come back to it after a swap; null if it has not. */
  // biome-ignore lint/suspicious/noExplicitAny: the type of the messages is the application's to say.
  live(id: string): Session<any> | null;
  /** The conversation as it stands, without the lease; writes nothing. Throws SESSION_NOT_FOUND, DIALECT_UNKNOWN, FORMAT_NEWER. */
  read<M = unknown>(id: string): Promise<Reading<M>>;
  /** Newest first, a page at a time, also if a clock was wrong. Reads no transcripts (P7). One that cannot be read is marked, and keeps no other from being listed (P9). Throws CURSOR_STALE for an `after` that no list gave out. */
  list(query?: ListQuery): Promise<{ readonly sessions: Summary[]; readonly next?: string }>;
  /**
   * Full text, over titles and the texts of messages: all the words must be there; the last one may be the beginning of a word. Newest sessions first. A hit in a title has the message `""`.
   * Of a message its first eight million characters are searched. `onIncomplete` is told of sessions with a longer one (`why` is null), and of those that cannot be read, with the reason; others are searched all the same (P9).
   */
  search(
    text: string,
    query?: ListQuery,
    options?: {
      readonly onIncomplete?: (
        session: string,
        why: { readonly code: string; readonly message: string } | null,
      ) => void;
    },
  ): AsyncIterable<SearchHit>;
  has(id: string): Promise<boolean>;
  /** Every record once, in order, as it is written, by whatever process. Ends when the signal fires, the session is deleted, or the store is closed. */
  follow(id: string, after?: number, options?: { readonly signal?: AbortSignal }): AsyncIterable<JournalRecord>;
  /**
   * A new session that begins with the conversation of another, up to and with the step of the message `at` (default: all of it). Message ids are kept. The source may be live, and is not touched.
   * Durable when it resolves. Throws SESSION_NOT_FOUND, MESSAGE_UNKNOWN.
   */
  fork<M = unknown>(
    id: string,
    options?: { readonly at?: string; readonly title?: string } & OpenOptions<M>,
  ): Promise<Session<M>>;
  /** To the trash. SESSION_BUSY while anybody has it open. */
  delete(id: string): Promise<void>;
  /** Reads every byte, reports, heals nothing. */
  verify(id: string): Promise<Verification>;
  /** Heals what a crash left behind, as `resume` does, and says what was found: without looking at the conversation, so in any dialect. SESSION_BUSY. */
  heal(id: string): Promise<Recovery>;
  /** All records from seq `from` (default 1) on, of earlier epochs too, to the end as it is now; writes nothing. */
  history(id: string, from?: number): AsyncIterable<JournalRecord>;
  /** Compresses what lies before the current epoch. SESSION_BUSY while anybody has it open, NOT_SUPPORTED where the store cannot. */
  pack(id: string): Promise<{ readonly segments: number; readonly bytesBefore: number; readonly bytesAfter: number }>;
  /** Removes for good what has been in the trash for longer than `graceMs` (default a week), and what unfinished work left behind. Answers the ids. */
  gc(options?: { readonly graceMs?: number }): Promise<{ readonly removed: readonly string[] }>;
  /** Closes every session that is open through this store, as `session.close` does. */
  close(): Promise<void>;
}

export interface OpenOptions<M> {
  /** The dialect of the messages, for one that is not built in. */
  readonly dialect?: Dialect<M>;
  /** What the holder of the lease calls itself. */
  readonly app?: string;
  /** This agent records every start of a tool (`turn.tool`, `turn.toolStarted`): then a call without a start is known never to have run (R5). */
  readonly intents?: boolean;
  /** Streamed text waits at most this long before it is written. Default 200. */
  readonly draftMs?: number;
  /** Nor does more than this wait (it is counted in characters). Default 8192. */
  readonly draftBytes?: number;
}

export interface CreateOptions<M> extends Omit<OpenOptions<M>, "dialect"> {
  readonly dialect: DialectName | Dialect<M>;
  /** Without one, lists show the beginning of the first prompt. */
  readonly title?: string;
  /** The folder that the agent works in; lists and `resumeLatest` find it by its real path. */
  readonly cwd?: string;
  /** At most 16,384 characters together, names and values. */
  readonly labels?: Record<string, string>;
  /** The session, and the call in it, that this one works for. */
  readonly parent?: Link;
}

/** One conversation, open for writing. Everything that it records is durable when the promise resolves, unless a call says otherwise. */
export interface Session<M> extends Reading<M>, AsyncDisposable {
  /** The open one; null between turns. */
  readonly turn: Turn<M> | null;
  /**
   * Begins a turn. What the interrupted turn before it left open is closed honestly, in the same unit as the prompt (P3, P5): all of it is durable, or nothing of it happened. A queued prompt is taken from the queue in that unit too.
   * With an id that is the open turn's prompt already, it answers that turn (a retry); with that of an interrupted turn's, it resumes it. Throws TURN_OPEN, MESSAGE_UNFIT, MESSAGE_NOT_JSON, MESSAGE_ID_TAKEN, QUEUE_UNKNOWN, SESSION_CLOSED, and what the store says.
   */
  startTurn(prompt: M | M[] | Queued<M>, options?: AppendOptions): Promise<Turn<M>>;
  /** Goes on with the last turn. Throws NOTHING_TO_RESUME if it completed or there is none, TURN_OPEN. */
  resumeTurn(options?: ResumeOptions): Promise<Turn<M>>;
  /**
   * Ends the interrupted turn as completed, without asking the model again: for a turn that was cut off behind its answer
   * (`interruption.answered`). Throws TURN_UNANSWERED if the answer is missing, NOTHING_TO_RESUME, TURN_OPEN.
   */
  endTurn(): Promise<void>;
  /**
   * For agents that keep an array of messages: records what is new in it, opens a turn at a prompt, and ends the turn at an answer without calls (R14). Calls are serialised. An array that no longer begins with what is
   * recorded becomes a new epoch, or is SYNC_REWRITE (see `rewrite`). A message that is changed in place is noticed back to the last one of the assistant's, at most eight messages. Throws SYNC_FOREIGN for messages of another session, RECORD_INVALID for options that it does not know.
   */
  sync(messages: readonly M[], options?: SyncOptions<M>): Promise<{ appended: string[]; epoch: boolean }>;
  /** A JSON merge patch of a message's metadata. Hiding reaches the model at the start of the next turn. Throws MESSAGE_UNKNOWN. */
  patch(id: string, metadata: Metadata): Promise<void>;
  /**
   * Shows these messages instead of those; the originals stay in `entries`, marked. Reaches the model at the next turn, or at once with `now`. Works on whole steps: throws STEP_SPLIT, MESSAGE_UNKNOWN, MESSAGE_UNFIT, MESSAGE_NOT_JSON.
   */
  edit(ids: string[], shown: M[], options: { reason: string; now?: boolean }): Promise<void>;
  /**
   * Begins a new epoch with this conversation, at one instant: before it the old one counts, after it the new one. An `Entry` keeps its id, turn and metadata. Queue, open turn, title, usage and notes live on.
   * What was on its way when it was called is kept too, at the end. Throws CALLS_OPEN if a call would be dropped whose tool is running, STEP_SPLIT, MESSAGE_UNFIT, MESSAGE_NOT_JSON.
   */
  replace(items: (M | Entry<M>)[], options: { reason: "compaction" | "clear" | "rewind" | "import" }): Promise<void>;
  /** Undoes the last `replace`, also after a restart, until the next turn starts. What was recorded since stays. Throws UNDO_TOO_LATE. */
  undo(): Promise<void>;
  /** A prompt that waits. Give the item to `startTurn`, or to `turn.append` to steer: it is delivered once. Throws MESSAGE_UNFIT, MESSAGE_NOT_JSON, MESSAGE_ID_TAKEN. */
  enqueue(prompt: M, options?: AppendOptions): Promise<Queued<M>>;
  /** Withdraws it. Throws QUEUE_UNKNOWN. */
  dequeue(id: string): Promise<void>;
  /** Anything of the application's own. The last of each name is in `attributes.notes`, over epochs too. */
  note(name: string, value: Json): Promise<void>;
  /** Throws ATTRIBUTE_INVALID. */
  rename(title: string): Promise<void>;
  /** Every record once, in order, from the beginning or after a seq; goes on until the signal fires or the session is closed. */
  follow(options?: { after?: number; signal?: AbortSignal }): AsyncIterable<JournalRecord>;
  /** Everything written so far, drafts too, survives a power cut when this resolves; with redaction, except what may be the beginning of a secret in a stream. */
  flush(): Promise<void>;
  /** The same, when it returns. NOT_SUPPORTED where the store cannot. */
  flushSync(): void;
  /**
   * Ends the writer. What was called before it is still done; what is called after it is SESSION_CLOSED. An open turn is recorded as aborted by "close"; tools are not waited for. A second call answers the
   * first. If it rejects, that could not be recorded or is in doubt: the lease is given back all the same.
   */
  close(): Promise<void>;
}

/** For `turn.append` and `draft.commit`. */
export interface AnswerOptions extends AppendOptions {
  /**
   * Also ends the turn as completed, in one unit with the message: after a crash both are there, or neither is. For the
   * final answer. If the unit finds no space, the turn stays open.
   */
  readonly end?: boolean;
}

/** One prompt, and all that the agent does about it. It belongs to its session, whatever the user has switched to meanwhile. */
export interface Turn<M> extends AsyncDisposable {
  readonly number: number;
  readonly prompt: Entry<M>;
  /** Calls that wait to be run. */
  readonly open: readonly OpenCall[];
  /** Fires on `abort`, `fail`, `close` and when the store fails: give it to the model and the tools. */
  readonly signal: AbortSignal;
  /**
   * Records finished messages: all items of one response together, as one unit and one step (R3). They stand where they are recorded: between the request and an answer that was not streamed into a draft, record nothing (R1). Durable when it resolves, so that the calls are on disk before any tool runs.
   * Throws TURN_ENDED, MESSAGE_UNFIT, MESSAGE_NOT_JSON, MESSAGE_ID_TAKEN, QUEUE_UNKNOWN, RECORD_TOO_LARGE, and what the store says.
   */
  append(message: M | M[] | Queued<M>, options?: AnswerOptions): Promise<Appended>;
  /**
   * A message that is being streamed. Open it before the model is asked: what is recorded while it answers (steering, results) stands behind the answer, which had not seen it (R1). A second one discards the first: that is all a
   * retry needs. Throws TURN_ENDED.
   */
  draft(): Draft<M>;
  /**
   * Records the start, runs the tool, records its outcome (R5, R6). What the tool throws is its outcome. Rejects only if the store failed (then `run` was not called, or its outcome is in doubt), or if there is nothing to run: CALL_UNKNOWN, CALL_TAKEN, TURN_ENDED, SESSION_CLOSED.
   * It also rejects with what Holdfast itself throws inside the tool and a model cannot act on (`errorKind` is `store` or
   * `misuse`: a call that is unknown, a failed store). Then `signal` fires, and no other tool of the turn starts.
   * After an abort it answers an error, and `run` is not called. If its outcome finds no space (STORE_FULL), `toolEnded` can record it later.
   */
  tool<T>(callId: string, run: (signal: AbortSignal) => T | Promise<T>, options?: ToolOptions): Promise<Outcome<T>>;
  /** The start alone, durable when it resolves: run the tool only then. CALL_UNKNOWN unless the call is recorded or name and input are given; CALL_TAKEN if it runs, has its result, or was not approved; TURN_ENDED. */
  toolStarted(callId: string, options?: ToolOptions): Promise<void>;
  /**
   * The started call runs in this process: `process` of the call says so after a crash. Durable when it resolves; a later one takes the place of an earlier. CALL_UNKNOWN if no such tool was started by this turn, or it has ended.
   * Also after the turn's end.
   */
  toolProcess(callId: string, process: ToolProcess): Promise<void>;
  /** The outcome alone; also after the turn's end. `shown`: what the model is to see of it. CALL_UNKNOWN. */
  toolEnded(callId: string, outcome: Outcome, shown?: M): Promise<void>;
  /** Adds up, per turn and per session; also after the turn's end. */
  usage(usage: Usage): Promise<void>;
  /** The turn waits for a person, perhaps until another process resumes it (R7). */
  suspend(why: { reason: string; calls?: string[] }): Promise<void>;
  /** The turn completed. To end it in one unit with its answer, give that `{ end: true }`. */
  end(): Promise<void>;
  /** What was produced stays; then the marker that says who stopped it. A second end of any kind does nothing. */
  abort(why: { by: string; reason?: string }): Promise<void>;
  fail(error: unknown): Promise<void>;
}

export interface ToolOptions {
  /** "safe": running it twice does no harm. Recorded at the start, where tomorrow's tool registry cannot change it. */
  readonly replay?: "never" | "safe";
  /** The session that does the work. */
  readonly child?: string;
  /** For a tool that starts before its call is recorded (R9). */
  readonly name?: string;
  readonly input?: unknown;
}

export interface Delta {
  /** Which part of the message it belongs to: parallel tool inputs interleave. */
  readonly part?: number;
  readonly text?: string;
  readonly reasoning?: string;
  readonly call?: { readonly id: string; readonly name: string };
  /** A piece of the input of the part's call. */
  readonly input?: string;
}

export interface Draft<M> {
  /** The id that the message will have. */
  readonly id: string;
  /** Never throws, and never waits; a failed write fires `turn.signal`. What was pushed longer than `draftMs` ago survives SIGKILL; with redaction, but for what may be the beginning of a secret. */
  push(delta: Delta): void;
  /** The finished message, durable when it resolves, in the place of the draft. Throws as `turn.append` does, and DRAFT_DISCARDED. If it finds no space, the draft goes on. */
  commit(message: M | M[], options?: AnswerOptions): Promise<Appended>;
  /** Its words never come back. */
  discard(reason?: string): Promise<void>;
}
