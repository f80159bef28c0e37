import type { Entry, Outcome } from "../dialects/dialect.ts";
import { isHoldfastError } from "../errors.ts";
import { newId } from "../journal/id.ts";
import { LiveDraft } from "./draft.ts";
import type { Host } from "./host.ts";
import { asMessageError, wordsOf } from "./intake.ts";
import { liveClosing } from "./messages.ts";
import type { DraftRecord, SessionRecord, ToolStarted, TurnEnded } from "./records.ts";
import { callTaken, callUnknown, turnEnded } from "./refusals.ts";
import { closing, openCalls } from "./resume.ts";
import type { Appended, AppendOptions, Draft, OpenCall, Queued, ToolOptions, Turn, Usage } from "./surface.ts";
import { itemsOf } from "./unit.ts";

/** A tool that this process runs, and the call that it belongs to. */
interface Running {
  readonly call: string;
  readonly name: string;
  readonly startedMs: number;
  /** Null: its message was not recorded when it started. */
  readonly place: { readonly message: string; readonly index: number } | null;
}

/** A turn that this process works on. */
export class LiveTurn<M> implements Turn<M> {
  readonly number: number;
  readonly #host: Host<M>;
  readonly #controller = new AbortController();
  readonly #running = new Map<string, Running>();
  #draft: LiveDraft<M> | null = null;
  #over: Promise<void> | null = null;
  #wasAborted = false;

  constructor(host: Host<M>, number: number) {
    this.#host = host;
    this.number = number;
  }

  get prompt(): Entry<M> {
    const { turn } = this.#host.conversation;
    if (turn?.number === this.number) this.#prompt = turn.prompt;
    return this.#prompt!;
  }
  #prompt: Entry<M> | null = null;

  get open(): readonly OpenCall[] {
    if (this.#over) return [];
    const { conversation, log } = this.#host;
    return openCalls(conversation)
      .filter(({ state, startedSeq }) => state !== "provider" && !(startedSeq !== undefined && startedSeq > log.since))
      .map(({ index: _index, startedSeq: _seq, ...call }) => call);
  }

  get signal(): AbortSignal {
    return this.#controller.signal;
  }

  get isOver(): boolean {
    return this.#over !== null;
  }

  append(message: M | M[] | Queued<M>, options: AppendOptions = {}): Promise<Appended> {
    return this.#append(message, options, null);
  }

  draft(): Draft<M> {
    this.#assertOpen("the draft");
    void this.#draft?.discard("another draft took its place");
    const { draftMs, draftBytes, intake } = this.#host;
    const { redactor } = intake;
    const draft = new LiveDraft<M>(newId(), {
      draftMs,
      draftBytes,
      redactor,
      write: (record) => this.#writeDraft({ kind: "draft", turn: this.number, ...record }),
      commit: (committed, message, options) =>
        this.#append(message, { ...options, id: options.id ?? committed.id }, committed),
    });
    this.#draft = draft;
    return draft;
  }

  async tool<T>(
    callId: string,
    run: (signal: AbortSignal) => T | Promise<T>,
    options: ToolOptions = {},
  ): Promise<Outcome<T>> {
    // Stopped in the middle of a batch: what has not started does not start, and the model will be told so.
    if (this.#wasAborted) return { error: this.signal.reason };
    const running = await this.#start(callId, options, true);
    let outcome: Outcome<T>;
    try {
      outcome = { value: await run(this.signal) };
    } catch (error) {
      outcome = { error: error ?? new Error("the tool failed without an error") };
    }
    await this.#record(callId, running, outcome);
    return outcome;
  }

  async toolStarted(callId: string, options: ToolOptions = {}): Promise<void> {
    await this.#start(callId, options, false);
  }

  toolEnded(callId: string, outcome: Outcome, shown?: M): Promise<void> {
    return this.#record(callId, this.#running.get(callId) ?? null, outcome, shown);
  }

  async #record(callId: string, running: Running | null, outcome: Outcome, shown?: M): Promise<void> {
    const { log, intake } = this.#host;
    this.#host.assertOpen();
    const found = this.#placeOf(callId, running);
    if (!running && !found) throw callUnknown(callId);
    if (this.#running.get(callId) === running) this.#running.delete(callId);
    const failed = "error" in outcome && outcome.error !== undefined;
    const { value, redacted } = failed ? { value: undefined, redacted: false } : intake.value(outcome.value);
    const made = shown === undefined ? null : intake.message(shown);
    const record: SessionRecord = {
      kind: "tool.ended",
      id: newId(),
      turn: this.number,
      call: callId,
      message: found?.message ?? null,
      ...(found ? { index: found.index } : {}),
      name: running?.name ?? found!.name,
      ...(failed ? { error: intake.text(wordsOf(outcome.error)) } : value === undefined ? {} : { value }),
      ...(running ? { ms: Math.round(performance.now() - running.startedMs) } : {}),
      ...(made ? { shown: made.stored } : {}),
      ...(redacted || made?.redacted ? { redacted: true as const } : {}),
    };
    try {
      await log.append([record]);
    } catch (error) {
      // The tool has run: that it did must be recorded, if not what it returned.
      if (!isHoldfastError(error, "RECORD_TOO_LARGE")) throw asMessageError(error);
      const {
        value: _value,
        shown: _shown,
        error: _error,
        ...rest
      } = record as Extract<SessionRecord, { kind: "tool.ended" }>;
      const words = `(The result was too large to be recorded: ${String(error.facts["bytes"] ?? "over 64 MiB")} bytes.)`;
      await log.append([failed ? { ...rest, error: words } : { ...rest, value: words }]);
    }
  }

  async usage(usage: Usage): Promise<void> {
    this.#host.assertOpen();
    await this.#host.log.append([{ kind: "usage", turn: this.number, usage }]);
  }

  async suspend(why: { reason: string; calls?: string[] }): Promise<void> {
    this.#assertOpen("that it waits");
    const { reason, calls } = why;
    await this.#finish(
      { kind: "turn.suspended", turn: this.number, reason, ...(calls ? { calls: [...calls] } : {}) },
      null,
    );
  }

  end(): Promise<void> {
    return this.#finish(this.#ended({ outcome: "completed" }), null);
  }

  abort({ by, reason }: { by: string; reason?: string }): Promise<void> {
    const words = reason === undefined ? `stopped by ${by}` : `stopped by ${by}: ${reason}`;
    const aborted = new DOMException(words, "AbortError");
    return this.#finish(this.#ended({ outcome: "aborted", by, ...(reason === undefined ? {} : { reason }) }), aborted);
  }

  fail(error: unknown): Promise<void> {
    const words = this.#host.intake.text(wordsOf(error));
    return this.#finish(
      this.#ended({ outcome: "failed", error: words }),
      error instanceof Error ? error : new Error(words),
    );
  }

  async [Symbol.asyncDispose](): Promise<void> {
    if (!this.#over) await this.fail("left without being ended");
  }

  /** The store failed: nothing that this turn does can be recorded any more. */
  stop(error: Error): void {
    this.#wasAborted = true;
    this.#draft?.stop();
    this.#controller.abort(error);
  }

  /** Hands over what the draft has gathered. */
  flushDraft(): void {
    this.#draft?.flushAll();
  }

  async #append(given: M | M[] | Queued<M>, options: AppendOptions, draft: LiveDraft<M> | null): Promise<Appended> {
    const what = "the message";
    this.#assertOpen(what);
    const { conversation, intake, log } = this.#host;
    const items = itemsOf(conversation, intake, given, { ...options, turn: this.number });
    if (items.known) {
      await log.journal.flush();
      return items.known;
    }
    const isAnswer = items.messages.some((message) => conversation.dialect.role(message) === "assistant");
    const unit = isAnswer ? [...this.#closed(), ...items.records] : items.records;
    const appended = log.append(unit);
    if (isAnswer) this.#dropDraft(draft);
    else draft?.stop();
    try {
      const { last } = await appended;
      const after = options.usage ? 1 : 0;
      return { id: items.ids[0]!, ids: [...items.ids], seq: last - after - items.messages.length + 1 };
    } catch (error) {
      throw asMessageError(error);
    }
  }

  /** The model has gone on without the results of some calls: from here on the past is frozen, with the words that it saw (R1). */
  #closed(): SessionRecord[] {
    const { conversation, log } = this.#host;
    if (!conversation.section.isClosed) return [];
    const entries = openCalls(conversation).flatMap((call) => {
      if (call.state === "provider") return [];
      if (call.state === "awaiting") return closing(conversation.dialect, call, { kind: "completed" });
      return liveClosing(conversation, call, log.since);
    });
    return entries.length > 0 ? [{ kind: "repair", turn: this.number, entries }] : [];
  }

  /** An answer takes the place of the draft, whichever it was (R10). */
  #dropDraft(committed: LiveDraft<M> | null): void {
    committed?.stop();
    this.#draft?.stop();
    this.#draft = null;
  }

  async #writeDraft(record: DraftRecord): Promise<void> {
    try {
      await this.#host.log.append([record], "process");
    } catch (error) {
      // Nobody awaits a push: whoever reads the signal stops.
      this.#controller.abort(error);
    }
  }

  async #start(callId: string, options: ToolOptions, intents: boolean): Promise<Running> {
    this.#assertOpen(`the start of ${JSON.stringify(callId)}`);
    const { conversation, log, intake } = this.#host;
    const call = conversation.section.open(callId);
    const place = call ? { message: call.item.entry.id, index: call.index } : null;
    const before = this.#running.get(callId);
    // Servers repeat their ids: this may be another call than the one that was started under it (R9).
    const isAnother = place !== null && before?.place != null && before.place.message !== place.message;
    if (before && !isAnother) throw callTaken(callId, "is running already");
    if (!call && conversation.section.knows(callId)) throw callTaken(callId, "has its result already");
    if (call?.call.by === "provider") throw callTaken(callId, "is run by the provider itself");
    if (!call && options.name === undefined) throw callUnknown(callId);
    const name = call?.call.name ?? options.name!;
    const record: ToolStarted = {
      kind: "tool.started",
      turn: this.number,
      call: callId,
      message: place?.message ?? null,
      name,
    };
    if (place) record.index = place.index;
    const input = options.input === undefined ? undefined : intake.value(options.input).value;
    if (input !== undefined) record.input = input;
    if (options.replay === "safe") record.replay = "safe";
    if (options.child !== undefined) record.child = options.child;
    if (intents) record.intents = true;
    const running: Running = { call: callId, name, startedMs: performance.now(), place };
    this.#running.set(callId, running);
    try {
      // Durable before the tool runs: else nobody could say after a crash that it may have (R5).
      await log.append([record]);
      return running;
    } catch (error) {
      if (this.#running.get(callId) === running) this.#running.delete(callId);
      throw error;
    }
  }

  /** Where the call of a result stands: where it stood when the tool started, or where it has come to stand since. */
  #placeOf(callId: string, running: Running | null): { message: string; index: number; name: string } | null {
    const { section } = this.#host.conversation;
    if (running?.place) return { ...running.place, name: running.name };
    const call = section.open(callId) ?? section.unheld(callId);
    return call ? { message: call.item.entry.id, index: call.index, name: call.call.name } : null;
  }

  #ended(members: Omit<TurnEnded, "kind" | "turn">): TurnEnded {
    return { kind: "turn.ended", turn: this.number, ...members };
  }

  #finish(record: SessionRecord, aborted: unknown): Promise<void> {
    this.#over ??= this.#close(record, aborted).catch((error) => {
      // It may be tried again once there is space: what could not be recorded did not happen.
      this.#over = null;
      throw error;
    });
    return this.#over;
  }

  /** What was produced, then the marker, then the signal: nothing that reacts to it comes before the marker. */
  async #close(record: SessionRecord, aborted: unknown): Promise<void> {
    this.#host.assertOpen();
    if (record.kind === "turn.ended" && record.outcome === "completed")
      void this.#draft?.discard("the turn was completed");
    else this.#draft?.flushAll();
    const written = this.#host.log.append([record]);
    this.#draft?.stop();
    if (aborted !== null) this.stop(aborted as Error);
    await written;
    this.#host.turnOver(this);
  }

  #assertOpen(what: string): void {
    this.#host.assertOpen();
    if (this.#over) throw turnEnded(this.#host.id, this.number, what);
  }
}
