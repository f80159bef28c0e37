import type { AppStateChanges } from "../../admit/app-state.ts";
import type { SuspendOptions } from "../../admit/suspension.ts";
import type { Appended, AppendOptions, StateOptions } from "../../admit/to-records.ts";
import type { AcceptedRequest } from "../../conversation/draft-state.ts";
import type { Queued } from "../../conversation/prompt-queue.ts";
import type { ToolProcess } from "../../conversation/records/records.ts";
import type { Usage } from "../../conversation/records/usage.ts";
import type { Entry, Outcome } from "../../dialects/dialect.ts";
import type { OpenCall } from "../../view/interruption.ts";
import type { Probe, ProbeOptions } from "./probe.ts";
import type { StepStart, StepStartOptions } from "./steps.ts";
import type { ToolCall } from "./tool-call.ts";

/** How a session, or each session of a store, is closed. */
export interface CloseOptions {
  /**
   * The next process continues the open turn, as if nothing had happened. From the call on the turn begins nothing:
   * requests to the model and starts of tools are refused with TURN_HANDED_OVER. The answer that is streaming and the
   * tools that run may complete, and are recorded; then the turn is handed over. If that takes longer than `withinMs`,
   * it is handed over all the same: the text so far is kept, and of the tools that still run only the start is known.
   */
  readonly handOver?: boolean;
  /** In milliseconds. Default: 8 seconds, because Docker kills a process after ten. */
  readonly withinMs?: number;
}

/** Options of `turn.append` and `draft.commit`. */
export interface AnswerOptions extends AppendOptions, StateOptions {
  /** For the final answer: ends the turn as completed, in one unit with it. Without space, the turn stays open. */
  readonly end?: boolean;
}

/**
 * One prompt and everything the agent does about it. It stays with its session if the user switches to another.
 * It ends once: with `end` (completed; `{ end: true }` does the same in one unit with the answer), `abort` (somebody
 * stopped it) or `fail` (an error did). A later end of any kind has no effect. `suspend` leaves it to be resumed.
 */
export interface Turn<M> extends AsyncDisposable {
  readonly number: number;
  readonly prompt: Entry<M>;
  /** Calls that are waiting to run. */
  readonly open: readonly OpenCall[];
  /** Fires on `abort`, `fail`, `close`, and when the store fails. Pass it to the model and the tools. */
  readonly signal: AbortSignal;
  /**
   * Fires when the session is being closed with `handOver`. A loop need not listen: its next request or tool is refused
   * with TURN_HANDED_OVER, and it ends; `fail` with that error is no failure. Listen to end a pause early.
   */
  readonly handOver: AbortSignal;
  /**
   * Records finished messages. Pass all items of one response together: they form one unit and one step (R3). Messages
   * keep the position in which they are recorded, except that the answer to an open `request` is placed where it was
   * requested (R1). Durable when it resolves, so calls are on disk before any tool runs. Throws
   * TURN_ENDED, MESSAGE_UNFIT, MESSAGE_NOT_JSON, MESSAGE_ID_TAKEN, QUEUE_UNKNOWN, RECORD_TOO_LARGE, store errors.
   */
  append(message: M | M[] | Queued<M>, options?: AnswerOptions): Promise<Appended>;
  /**
   * Call it to ask the model: it returns the messages to send and the draft of the answer, both as of this instant.
   * Anything recorded while the model answers (steering, results) is placed after the answer, which had not seen it
   * (R1). An assistant message that is appended takes the draft's place. A second request discards the draft of the
   * first, so a retry needs nothing else. Records nothing. Throws TURN_ENDED, SESSION_CLOSED, MESSAGE_UNFIT.
   */
  request(): TurnRequest<M>;
  /**
   * Records the start, runs the tool, records its outcome (R5, R6). Whatever the tool throws is its outcome. Rejects if
   * the store failed (then `run` was not called, or its outcome is in doubt) or there is nothing to run: CALL_UNKNOWN,
   * CALL_TAKEN, TURN_ENDED, SESSION_CLOSED.
   * Also rejects with errors that Holdfast throws inside the tool and a model cannot act on (`errorKind` is `store` or
   * `misuse`: a failed store, an unknown call). Then `signal` fires, and no other tool of the turn starts.
   * After an abort it returns an error without calling `run`. After STORE_FULL, `toolEnded` can record the outcome
   * later.
   * A call that an earlier process started, with an unknown outcome, is settled first. It runs again if `replay` is
   * "safe" now and was when it started. Otherwise its `probe` is asked: a known outcome is recorded and returned, and
   * what has not taken effect runs. If nobody can tell, the model is told so, and the outcome is the error
   * CALL_IN_DOUBT; without a probe, `tool` rejects with it.
   */
  tool<T>(
    callId: string,
    run: (signal: AbortSignal, call: ToolCall) => T | Promise<T>,
    options?: ToolOptions<T>,
  ): Promise<Outcome<T>>;
  /**
   * Records only the start. Durable when it resolves: run the tool only then. Throws CALL_UNKNOWN unless the call is
   * recorded or name and input are given; CALL_TAKEN if it is running, has its result, or was not approved;
   * CALL_IN_DOUBT if an earlier process started it and it is not safe to repeat (see `tool`, and
   * `session.settleCalls`); TURN_ENDED.
   */
  toolStarted(callId: string, options?: ToolStartOptions): Promise<ToolCall>;
  /**
   * Records the process that a started call runs in, for `process` of the call after a crash. Durable when it resolves;
   * a later one replaces an earlier one. Also after the turn ends. Throws CALL_UNKNOWN if this turn runs no such tool.
   */
  toolProcess(callId: string, process: ToolProcess): Promise<void>;
  /**
   * Records only the start of a step of a call that this turn runs: run it if the answer says so. "unknown": an earlier
   * run started it, and it is not safe to repeat; settle it with `stepEnded`, or with `didNotHappen` here. For a tool
   * that is not a function here: others use `step` of their call. Throws like that, and CALL_UNKNOWN.
   */
  stepStarted(callId: string, step: string, options?: StepStartOptions): Promise<StepStart>;
  /**
   * Records only the outcome of a step that `stepStarted` let run. `source`: who says so, if the step did not itself.
   * Throws CALL_UNKNOWN, RECORD_INVALID if the step is not running.
   */
  stepEnded(callId: string, step: string, outcome: Outcome, source?: string): Promise<void>;
  /**
   * Records only the outcome, also after the turn ends. `shown`: what the model sees instead. During a hand-over, the
   * error TURN_HANDED_OVER is no outcome: what the tool works with is handed over too, and so is the call. Throws
   * CALL_UNKNOWN.
   */
  toolEnded(callId: string, outcome: Outcome, shown?: M, options?: StateOptions): Promise<void>;
  /** Adds to the usage of the turn and the session; also allowed after the turn ends. */
  usage(usage: Usage): Promise<void>;
  /**
   * Records that the turn waits for a person (R7); or with `until`, that it sleeps until then and continues by itself,
   * in any process. Throws RECORD_INVALID, TURN_ENDED, store errors.
   */
  suspend(why: SuspendOptions): Promise<void>;
  /** Completes the turn. */
  end(): Promise<void>;
  /** Keeps what was produced and records who stopped the turn. */
  abort(why: { by: string; reason?: string }): Promise<void>;
  /** Keeps what was produced and records the error. */
  fail(error: unknown): Promise<void>;
}

/** What the model is asked with, and the draft of its answer. */
export interface TurnRequest<M> {
  /**
   * The messages at the time of the request, accepted by the provider unchanged (P4). The array is the caller's:
   * changes to it have no effect on the session. The messages in it are frozen.
   */
  readonly messages: M[];
  /** Push the answer into it as it streams, if it does, and commit it when it is complete. */
  readonly draft: Draft<M>;
  /**
   * The provider has accepted this request already, before the turn was interrupted: fetch the answer by the handle
   * instead of sending the messages, and commit it to the draft. It is placed where it was requested, before messages
   * that were recorded since. If it cannot be fetched, call `request` again: then this is null. Also null if nothing
   * was accepted, or if the messages have changed since, such as by words about the interruption.
   */
  readonly accepted: AcceptedRequest | null;
}

export interface ToolOptions<T = unknown> extends ProbeOptions {
  /**
   * "safe": running the tool twice does no harm. Recorded at the start: a call runs again only if the recorded rule and
   * this one agree.
   */
  readonly replay?: "never" | "safe";
  /** What is recorded in one unit with the outcome (see `append`). If it throws, the outcome is recorded alone. */
  readonly appState?: (outcome: Outcome<T>) => AppStateChanges | undefined;
  /** Finds out what happened to the call, if an earlier process started it. */
  readonly probe?: Probe<T>;
  /** What to note of the world before the tool runs, recorded with the start: `before` of the call after a crash. */
  readonly before?: unknown;
  /** The session that does the work. */
  readonly child?: string;
  /** For a tool that starts before its call is recorded (R9). */
  readonly name?: string;
  readonly input?: unknown;
}

/** Options of `turn.toolStarted`. */
export interface ToolStartOptions extends Omit<ToolOptions, "probe" | "probeMs" | "appState"> {
  /** The program can ask what happened to the call after a crash (`session.settleCalls`). */
  readonly probe?: Probe | boolean;
}

export interface Delta {
  /** The part of the message that it belongs to: parallel tool inputs interleave. */
  readonly part?: number;
  readonly text?: string;
  readonly reasoning?: string;
  readonly call?: { readonly id: string; readonly name: string };
  /** A piece of the input of this part's call. */
  readonly input?: string;
}

export interface Draft<M> {
  /** The id that the message will have. */
  readonly id: string;
  /**
   * Never throws and never waits; a failed write fires `turn.signal`. Anything pushed more than `draftMs` ago survives
   * SIGKILL, except, with redaction, text that could be the start of a secret.
   */
  push(delta: Delta): void;
  /**
   * For a provider that keeps the answer (a response in the background, a batch): records that it has accepted the
   * request, and the handle to fetch the answer by. Call it as soon as you know the handle. Durable when it resolves;
   * a later one replaces an earlier one. Throws RECORD_INVALID, RECORD_NOT_JSON, RECORD_TOO_LARGE (16 KB),
   * DRAFT_DISCARDED, TURN_ENDED, store errors.
   */
  accepted(handle: unknown): Promise<void>;
  /**
   * Records the finished message in place of the draft. Durable when it resolves. Throws like `turn.append`, and
   * DRAFT_DISCARDED. If there is no space for the message, the draft stays open.
   */
  commit(message: M | M[], options?: AnswerOptions): Promise<Appended>;
  /**
   * Discards the draft: its text never reappears. The request is over: an answer appended later goes where it is
   * appended. To send the request again, use `restart`.
   */
  discard(reason?: string): Promise<void>;
  /**
   * For a request that is sent again with the same messages, after its stream broke off: discards this draft, and
   * returns another with the same place in the conversation. Throws DRAFT_DISCARDED if it was discarded or committed.
   */
  restart(): Draft<M>;
}
