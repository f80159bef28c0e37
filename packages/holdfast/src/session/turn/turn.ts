import { asMessageError, reading, textIn, wordsOf } from "../../admit/admit.ts";
import { admitAppState } from "../../admit/app-state.ts";
import { callTaken, turnEnded } from "../../admit/refusals.ts";
import { admitSuspension, type TrySuspension } from "../../admit/suspension.ts";
import {
  type AdmittedMessages,
  type AdmittedOptions,
  type Appended,
  admitMessages,
  admitOptions,
  admitUsage,
  type StateOptions,
  toRecords,
} from "../../admit/to-records.ts";
import type { Queued } from "../../conversation/prompt-queue.ts";
import type { SessionRecord, ToolProcess, TurnEnded } from "../../conversation/records/records.ts";
import type { Usage } from "../../conversation/records/usage.ts";
import { defined } from "../../defined.ts";
import type { Entry, Outcome } from "../../dialects/dialect.ts";
import { type ErrorKind, errorKind, isHoldfastError } from "../../errors.ts";
import { newId } from "../../journal/id.ts";
import { handedOut } from "../../view/handed-out.ts";
import { acceptedOf, type OpenCall, openCall, openCalls } from "../../view/interruption.ts";
import { reasonWords } from "../../view/model-words.ts";
import type { SessionContext } from "./context.ts";
import { type DraftContext, type DraftPiece, LiveDraft } from "./draft.ts";
import { HandOver, handOverOf, type LeavingTurn } from "./hand-over.ts";
import { SentRequests } from "./sent-requests.ts";
import type { StepStart, StepStartOptions } from "./steps.ts";
import type { AnswerOptions, ToolOptions, ToolStartOptions, Turn, TurnRequest } from "./surface.ts";
import { runInCall, type ToolCall } from "./tool-call.ts";
import { Tools } from "./tools.ts";
import { warnOnce } from "./warn-once.ts";

/** Total, as `fail` is: whatever was thrown, the turn failed. */
function isError(error: unknown): boolean {
  try {
    return error instanceof Error;
  } catch {
    return false;
  }
}

type AdmittedAnswer = AdmittedOptions & Pick<AnswerOptions, "end">;

const NO_RECORDS: readonly SessionRecord[] = Object.freeze([]);

/** A turn that this process works on. */
export class LiveTurn<M> implements Turn<M> {
  readonly number: number;
  readonly #context: SessionContext<M>;
  readonly #controller = new AbortController();
  readonly #tools: Tools<M>;
  #draft: LiveDraft<M> | null = null;
  #over: Promise<void> | null = null;
  #wasAborted = false;
  readonly #handOver: HandOver;
  readonly #requests: SentRequests<M>;

  constructor(context: SessionContext<M>, number: number) {
    this.#context = context;
    this.number = number;
    this.#tools = new Tools(context, number);
    this.#handOver = new HandOver(context.id, number);
    this.#requests = new SentRequests(context, number);
  }

  get prompt(): Entry<M> {
    return handedOut((this.#prompt ?? this.#context.conversation.turn?.prompt)!);
  }
  #prompt: Entry<M> | null = null;

  /** The turn is recorded. Its prompt is kept here, because the conversation only keeps the last turn's. */
  begun(): void {
    const { turn } = this.#context.conversation;
    if (turn?.number === this.number) this.#prompt = turn.prompt;
  }

  get open(): readonly OpenCall[] {
    if (this.#over) return [];
    const { conversation, log } = this.#context;
    return openCalls(conversation)
      .filter(({ state, startedSeq }) => state !== "provider" && !(startedSeq !== undefined && startedSeq > log.since))
      .map((call) => ({ ...openCall(call), input: handedOut(call.input) }));
  }

  get signal(): AbortSignal {
    return this.#controller.signal;
  }

  get handOver(): AbortSignal {
    return this.#handOver.signal;
  }

  /** Whether its start is in the conversation. False until a store that answers later has answered. */
  get isRecorded(): boolean {
    return this.#context.conversation.turns >= this.number;
  }

  get isOver(): boolean {
    return this.#over !== null;
  }

  append(message: M | M[] | Queued<M>, options: AnswerOptions = {}): Promise<Appended> {
    return this.#take(message, options, null);
  }

  /** Like `append`, for messages already admitted (sync). */
  async appendAdmitted(admitted: AdmittedMessages, options: AdmittedAnswer): Promise<Appended> {
    this.#assertOpen("the message");
    return this.#write(admitted, options, null);
  }

  request(): TurnRequest<M> {
    this.#assertBegins("the request");
    const earlier = this.#requests.ask();
    const accepted = earlier && acceptedOf(this.#context.conversation);
    return { messages: this.#context.messages(), draft: this.#openDraft(earlier?.id), accepted };
  }

  /** For sync: the model was asked with the array, and its answer has begun to grow there. */
  draft(): LiveDraft<M> {
    this.#assertBegins("the draft");
    this.#requests.answerBegins();
    return this.#openDraft();
  }

  #openDraft(accepted?: string): LiveDraft<M> {
    void this.#draft?.discard("another draft took its place");
    const { draftMs, draftChars, admission } = this.#context;
    const { redactor } = admission;
    const context: DraftContext<M> = {
      draftMs,
      draftChars,
      redactor,
      write: (piece) => this.#writeDraft(piece),
      accepted: ({ id }, handle) => this.#accepted(id, handle),
      commit: (committed, message, options) => this.#take(message, options, committed),
      restart: () => {
        this.#assertBegins("the draft");
        return this.#openDraft();
      },
    };
    const draft = new LiveDraft<M>(accepted ?? newId(), context, accepted !== undefined);
    this.#draft = draft;
    return draft;
  }

  async tool<T>(
    callId: string,
    run: (signal: AbortSignal, call: ToolCall) => T | Promise<T>,
    options: ToolOptions<T> = {},
  ): Promise<Outcome<T>> {
    const { journal } = this.#context.log;
    // Stopped in the middle of a batch: calls that have not started do not start, and the model will be told.
    if (this.#wasAborted && !journal.failure) return { error: this.signal.reason };
    const started = await this.#start(callId, options as ToolOptions).catch((error) => {
      // Stopped while a probe was asked.
      if (this.#wasAborted && error === this.signal.reason && !journal.failure) return { outcome: { error } };
      throw error;
    });
    if (started.outcome) return started.outcome as Outcome<T>;
    const { running } = started;
    // The time was up while its start was recorded.
    this.#handOver.assertOpen();
    // The outcome could not be recorded, so the tool does not run either (P8).
    if (journal.failure) throw journal.failure;
    let outcome: Outcome<T>;
    if (this.#wasAborted) {
      outcome = { error: this.signal.reason };
      const why = reasonWords(wordsOf(outcome.error));
      await this.#tools.end(callId, { error: `It did not run: ${why}.` }, undefined, running);
      return outcome;
    }
    let fault: ErrorKind | null = null;
    try {
      const { toolCall } = running;
      outcome = { value: await runInCall(toolCall, () => run(this.signal, toolCall)) };
    } catch (error) {
      outcome = { error: error ?? new Error("the tool failed without an error") };
      // A session that the tool works with is handed over as well: how the call ends is not known yet.
      if (this.handOver.aborted && isHoldfastError(error, "TURN_HANDED_OVER")) {
        this.#tools.leave(running);
        throw error;
      }
      fault = this.signal.aborted ? null : this.#faultOf(error);
    }
    // After a store failure nobody knows how far the tool got, so it is not recorded as ended.
    if (fault !== "store") await this.#tools.endWith(callId, outcome, options.appState, running);
    if (fault) throw outcome.error;
    return outcome;
  }

  /** A model cannot act on what Holdfast refused inside a tool, so the whole turn stops. */
  #faultOf(error: unknown): ErrorKind | null {
    const kind = errorKind(error);
    if (kind !== "store" && kind !== "misuse") return null;
    this.#wasAborted = true;
    this.#controller.abort(error);
    return kind;
  }

  async toolStarted(callId: string, options: ToolStartOptions = {}): Promise<ToolCall> {
    const { running } = await this.#start(callId, options);
    if (!running) throw callTaken(callId, "has its result");
    return running.toolCall;
  }

  stepStarted(callId: string, step: string, options: StepStartOptions = {}): Promise<StepStart> {
    return this.#tools.stepsOf(callId).then((steps) => steps.start(step, options));
  }

  stepEnded(callId: string, step: string, outcome: Outcome, source?: string): Promise<void> {
    return this.#tools.stepsOf(callId).then((steps) => steps.end(step, outcome, source));
  }

  toolProcess(callId: string, process: ToolProcess): Promise<void> {
    return this.#tools.runsIn(callId, process);
  }

  async toolEnded(callId: string, outcome: Outcome, shown?: M, options: StateOptions = {}): Promise<void> {
    if (this.handOver.aborted && isHoldfastError(errorIn(outcome), "TURN_HANDED_OVER"))
      return this.#tools.leave(callId);
    const state = admitAppState(
      this.#context.admission,
      reading("options", () => options?.appState),
    );
    return this.#tools.end(callId, outcome, shown, undefined, state);
  }

  async usage(usage: Usage): Promise<void> {
    this.#context.assertOpen();
    await this.#context.log.append([{ kind: "usage", turn: this.number, usage: admitUsage(usage) }]);
  }

  async suspend(why: TrySuspension): Promise<void> {
    this.#assertOpen("the suspension");
    const suspension = admitSuspension(this.#context.admission, why);
    await this.#finish({ kind: "turn.suspended", turn: this.number, ...suspension }, null);
  }

  end(): Promise<void> {
    return this.#finish(this.#ended({ outcome: "completed" }), null);
  }

  abort(why: { by: string; reason?: string }): Promise<void> {
    const { admission } = this.#context;
    const by = admission.words(textIn(why, "by") ?? "the application");
    const given = textIn(why, "reason");
    const reason = given === undefined ? undefined : admission.words(given);
    const words = reason === undefined ? `stopped by ${by}` : `stopped by ${by}: ${reason}`;
    const aborted = new DOMException(words, "AbortError");
    return this.#finish(this.#ended({ outcome: "aborted", by, ...defined({ reason }) }), aborted);
  }

  fail(error: unknown): Promise<void> {
    const left = this.#handOver.leave(error);
    if (left) return left;
    const words = this.#context.admission.words(wordsOf(error));
    return this.#finish(this.#ended({ outcome: "failed", error: words }), isError(error) ? error : new Error(words));
  }

  async [Symbol.asyncDispose](): Promise<void> {
    try {
      await (this.#over ?? this.#handOver.leave() ?? this.fail("left without being ended"));
    } catch (error) {
      // The session was closed first and has recorded how its turn ended.
      if (!isHoldfastError(error, "SESSION_CLOSED", "TURN_HANDED_OVER")) throw error;
    }
  }

  /**
   * From the call on nothing new begins. What is under way may take that long; then the next process continues the
   * turn, unless it has ended by then. Rejects with store errors.
   */
  handOverWithin(withinMs: number): Promise<void> {
    const { log, conversation } = this.#context;
    const leaving: LeavingTurn = {
      isAtRest: (isAtEnd) => {
        if (log.isBehind || this.#tools.areRunning) return false;
        if (isAtEnd || this.#draft?.isOpen) return isAtEnd;
        // A program that records no starts may be running any call without a result.
        return log.intents || openCalls(conversation).every(({ state }) => state !== "unrecorded");
      },
      isOver: () => this.isOver || log.journal.failure !== null,
      record: async () => {
        if (!this.isRecorded) return;
        await this.#finish({ kind: "turn.suspended", turn: this.number, ...handOverOf(conversation.turn!) }, null);
      },
    };
    return this.#handOver.begin(leaving, withinMs);
  }

  get isHandedOver(): boolean {
    return this.#handOver.isDone;
  }

  /** The store failed or the session is closed: this turn can record nothing more. */
  stop(error: unknown): void {
    this.#draft?.stop();
    this.#controller.abort(error);
  }

  /** Hands over the buffered draft. Rejects if it was not written. */
  async flushDraft(): Promise<void> {
    const error = (await this.#draft?.flush()) ?? null;
    if (error !== null) throw error;
  }

  /** Like `flushDraft`, synchronously. */
  flushDraftSync(): void {
    this.#draft?.flushSync((piece) => this.#context.log.appendSync([this.#draftRecord(piece)]));
  }

  /** Synchronous if nothing waits, because every extra tick is measurable. */
  #take(given: M | M[] | Queued<M>, options: AnswerOptions, draft: LiveDraft<M> | null): Promise<Appended> {
    try {
      this.#assertOpen("the message");
      const { admission } = this.#context;
      const admitted = admitMessages(admission, given);
      const end = reading("options", () => options?.end === true);
      return this.#write(admitted, { ...admitOptions(admission, options), end }, draft);
    } catch (error) {
      return Promise.reject(error);
    }
  }

  /** If the unit being written ends the turn, the turn accepts nothing more, unless that write fails. */
  #write(admitted: AdmittedMessages, options: AdmittedAnswer, draft: LiveDraft<M> | null): Promise<Appended> {
    const appended = this.#context.log.inLine(() => this.#append(admitted, options, draft));
    if (!options.end) return appended;
    const over = appended.then(
      () => this.#context.turnOver(this),
      (error) => {
        this.#over = null;
        throw error;
      },
    );
    this.#over = over;
    return over.then(() => appended);
  }

  async #append(
    admitted: AdmittedMessages,
    options: AdmittedAnswer,
    committed: LiveDraft<M> | null,
  ): Promise<Appended> {
    const { conversation, admission, log } = this.#context;
    const { end = false } = options;
    this.#context.assertOpen();
    const draft = committed ?? this.#draftAnsweredBy(admitted);
    const items = toRecords(conversation, admission, admitted, this.number, options, draft?.id);
    const ended = end ? [this.#ended({ outcome: "completed" })] : NO_RECORDS;
    if (items.known && !end) {
      await log.journal.flush();
      return items.known;
    }
    const repairs = admitted.isAnswer && !items.known ? this.#requests.repairs(draft !== null) : NO_RECORDS;
    const isAlone = repairs.length === 0 && ended.length === 0;
    const unit = isAlone ? items.records : [...repairs, ...items.records, ...ended];
    const other = (admitted.isAnswer || end) && this.#draft !== draft ? this.#draft : null;
    const appended = log.append(unit);
    // An answer replaces any draft (R10).
    draft?.hold();
    other?.hold();
    try {
      const { last } = await appended;
      draft?.release("itself");
      other?.release("another");
      if (this.#draft === draft || this.#draft === other) this.#draft = null;
      if (items.known) return items.known;
      if (admitted.isAnswer) this.#warn(items.ids);
      const after = (options.usage ? 1 : 0) + (options.state?.length ?? 0) + ended.length;
      return { id: items.ids[0]!, ids: [...items.ids], seq: last - after - items.ids.length + 1 };
    } catch (error) {
      draft?.release(null);
      other?.release(null);
      throw asMessageError(error);
    }
  }

  /**
   * An answer that is appended, not committed, is the answer to the open request: it takes the draft's place and id.
   * The items of one response may be appended one by one, so only the first does. An answer that comes with messages
   * before it has seen those, so it stays behind them.
   */
  #draftAnsweredBy({ stored }: AdmittedMessages): LiveDraft<M> | null {
    return stored[0]?.role === "assistant" && this.#draft?.isUnanswered ? this.#draft : null;
  }

  /** Warns about content of a step that was recorded and will not be sent. */
  #warn(ids: readonly string[]): void {
    const { conversation } = this.#context;
    const { unsent } = conversation.dialect;
    if (!unsent) return;
    const first = conversation.find(ids[0]!);
    if (first?.role !== "assistant") return;
    const others = ids.length === 1 ? [] : ids.slice(1).flatMap((id) => conversation.find(id)?.entry.message ?? []);
    const why = unsent([first.entry.message, ...others]);
    if (why !== null) warnOnce(why, "HOLDFAST_UNSENT");
  }

  #draftRecord(piece: DraftPiece): SessionRecord {
    const { discarded } = piece;
    const why = discarded === undefined ? {} : { discarded: this.#context.admission.text(discarded) };
    return { kind: "draft", turn: this.number, ...piece, ...why };
  }

  async #writeDraft(piece: DraftPiece): Promise<unknown> {
    try {
      await this.#context.log.append([this.#draftRecord(piece)], "process");
      return null;
    } catch (error) {
      // Nobody awaits a push, so the signal reports the failure.
      this.#controller.abort(error);
      return error;
    }
  }

  async #accepted(id: string, given: unknown): Promise<void> {
    this.#assertOpen("the handle");
    const handle = this.#context.admission.handle(given);
    await this.#context.log.append([this.#requests.accepted(id, handle)]);
  }

  async #start(callId: string, options: ToolOptions | ToolStartOptions): ReturnType<Tools<M>["start"]> {
    const what = `the start of ${JSON.stringify(callId)}`;
    this.#assertBegins(what);
    const assertBegins = (): void => this.#handOver.assertBegins();
    const asking = { stopped: this.signal, assertOpen: () => this.#assertOpen(what), assertBegins };
    return this.#tools.start(callId, options, this.#draft?.isOpen === true, asking);
  }

  #ended(members: Omit<TurnEnded, "kind" | "turn">): TurnEnded {
    return { kind: "turn.ended", turn: this.number, ...members };
  }

  #finish(record: SessionRecord, aborted: unknown): Promise<void> {
    this.#over ??= this.#close(record, aborted).catch((error) => {
      // It can be retried once there is space: what could not be recorded did not happen.
      this.#over = null;
      throw error;
    });
    return this.#over;
  }

  /** What was produced, then the marker, then the signal: no reaction to the signal is recorded before the marker. */
  async #close(record: SessionRecord, aborted: unknown): Promise<void> {
    const { log } = this.#context;
    this.#context.assertOpen();
    const draft = this.#draft;
    if (record.kind === "turn.ended" && record.outcome === "completed") void draft?.discard("the turn was completed");
    else void draft?.flushLast();
    const written = log.inLine(() => log.append([record]));
    draft?.hold();
    if (aborted !== null) {
      this.#wasAborted = true;
      this.#controller.abort(aborted);
    }
    try {
      await written;
      draft?.release("another");
    } catch (error) {
      draft?.release(null);
      throw error;
    }
    this.#context.turnOver(this);
  }

  #assertBegins(what: string): void {
    this.#assertOpen(what);
    this.#handOver.assertBegins();
  }

  #assertOpen(what: string): void {
    this.#context.assertOpen();
    this.#handOver.assertOpen();
    if (this.#over) throw turnEnded(this.#context.id, this.number, what);
  }
}

/** The outcome may be anything; what cannot be read is no refusal. */
function errorIn(outcome: Outcome): unknown {
  try {
    return outcome.error;
  } catch {
    return null;
  }
}
