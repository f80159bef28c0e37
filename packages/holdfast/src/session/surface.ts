import type { TrySuspension } from "../admit/suspension.ts";
import type { PromptOptions, StateOptions } from "../admit/to-records.ts";
import type { Queued } from "../conversation/prompt-queue.ts";
import type { Attributes, Link } from "../conversation/records/attributes.ts";
import type { Dialect, Entry, Metadata } from "../dialects/dialect.ts";
import type { DialectName } from "../dialects/index.ts";
import type { HoldfastError } from "../errors.ts";
import type { JournalRecord, Json } from "../journal/record.ts";
import type { SyncOptions } from "../sync/given-array.ts";
import type { OpenCall } from "../view/interruption.ts";
import type { Reading } from "../view/reading.ts";
import type { ResumeOptions } from "../view/repairs.ts";
import type { Answer } from "./prompts/answer.ts";
import type { Probe, SettleOptions } from "./turn/probe.ts";
import type { CloseOptions, Turn } from "./turn/surface.ts";

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
  /** `store.retry` for this session: durable when it resolves. Throws TURN_OPEN, SESSION_CLOSED, store errors. */
  retryTurn(): Promise<boolean>;
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
