import { Admission, asMessageError, reading } from "../admit/admit.ts";
import { titleOf } from "../admit/attributes.ts";
import { messageUnknown, nothingToResume, sessionClosed, turnHandedOver, turnOpen } from "../admit/refusals.ts";
import { assertSize, METADATA_BYTES_MAX } from "../admit/size.ts";
import { admitSuspension, type TrySuspension } from "../admit/suspension.ts";
import { admitNote, type PromptOptions, type StateOptions } from "../admit/to-records.ts";
import type { Conversation } from "../conversation/conversation.ts";
import { mergePatch } from "../conversation/merge-patch.ts";
import type { Queued } from "../conversation/prompt-queue.ts";
import type { SessionRecord } from "../conversation/records/records.ts";
import type { Dialect, Entry, Metadata } from "../dialects/dialect.ts";
import type { Holder, Journal, JournalStore, Recovery } from "../journal/contract.ts";
import { newId } from "../journal/id.ts";
import type { JournalRecord, Json } from "../journal/record.ts";
import type { Redactor } from "../redact/redactor.ts";
import { admitEdit, editRecord } from "../replace/edit.ts";
import { checkReason } from "../replace/epoch.ts";
import { admitReplacement } from "../replace/retained.ts";
import type { SyncOptions } from "../sync/given-array.ts";
import { Sync } from "../sync/sync.ts";
import type { TurnActivity } from "../view/messages.ts";
import { LiveReading } from "../view/reading.ts";
import type { ResumeOptions } from "../view/repairs.ts";
import { Epochs } from "./epochs.ts";
import { Followers } from "./followers.ts";
import { type Ending, endsNow, type Guarded, onClosed } from "./guarded.ts";
import { type Answer, findAnswer } from "./prompts/answer.ts";
import { keyDigestOf } from "./prompts/prompt-key.ts";
import { Prompts } from "./prompts/prompts.ts";
import { Queue } from "./prompts/queue.ts";
import { endAnswered, resumeGiven, resumeRecords } from "./resume/resume-turn.ts";
import { questionsGiven, settleCalls } from "./resume/settle-calls.ts";
import { pauseRecords, tryRecord } from "./resume/tries.ts";
import type * as surface from "./surface.ts";
import type { SessionContext } from "./turn/context.ts";
import { handOverMs } from "./turn/hand-over.ts";
import type { Probe, SettleOptions } from "./turn/probe.ts";
import type { CloseOptions, Turn } from "./turn/surface.ts";
import { LiveTurn } from "./turn/turn.ts";
import { InOrder } from "./writing/in-order.ts";
import { Log } from "./writing/log.ts";
import { digestOf, KeyedCalls, type OnceKeys, recordedKey } from "./writing/once.ts";

const DRAFT_MS = 200;
const DRAFT_CHARS = 8192;

export interface SessionParts<M> {
  readonly store: JournalStore;
  readonly journal: Journal;
  readonly conversation: Conversation<M>;
  readonly recovery: Recovery;
  readonly holder: Holder;
  readonly redactor: Redactor | null;
  /** The members of the `opened` record. */
  readonly opened: Readonly<Record<string, Json>>;
  readonly options: Pick<surface.OpenOptions<M>, "draftMs" | "draftChars">;
  /** Folds records into a new conversation in this session's dialect. */
  readonly fold: (dialect: Dialect<M>) => Conversation<M>;
  /** The calls made with a key so far. */
  readonly once: OnceKeys;
  /** Throws STORE_CLOSED. */
  readonly assertStoreOpen: () => void;
  readonly onTurnEnd: (id: string) => void;
  readonly onClose: (id: string) => void;
}

/** A session open for writing in this process. It performs effects in order; the pure modules decide the rules. */
export class LiveSession<M> extends LiveReading<M> implements surface.Session<M>, Guarded {
  readonly id: string;
  readonly recovery: Recovery;
  readonly holder: Holder;
  readonly #parts: SessionParts<M>;
  readonly #conversation: Conversation<M>;
  readonly #log: Log<M>;
  readonly #followers: Followers;
  readonly #admission: Admission<M>;
  readonly #context: SessionContext<M>;
  readonly #sync: Sync<M>;
  readonly #epochs: Epochs<M>;
  readonly #queue: Queue<M>;
  readonly #prompts: Prompts<M>;
  /** Serializes the calls that change the conversation. */
  readonly #order = new InOrder();
  /** Serializes the calls made with a key. */
  readonly #keyed: KeyedCalls;
  readonly #closed = new Set<() => void>();
  readonly #stopListening: () => void;
  /** Fires when the session is closed, and when its store fails. */
  readonly #stopped = new AbortController();
  #turn: LiveTurn<M> | null = null;
  #closing: Promise<void> | null = null;
  #isClosing = false;
  /** The turn that was handed over. */
  #leaving: LiveTurn<M> | null = null;
  #told: Ending | null = null;

  constructor(parts: SessionParts<M>) {
    const { journal, conversation, recovery, holder, redactor, opened, options } = parts;
    super(conversation, () => this.#activity());
    this.id = journal.id;
    this.recovery = recovery;
    this.holder = holder;
    this.#parts = parts;
    this.#conversation = conversation;
    this.#log = new Log(journal, conversation, opened);
    this.#keyed = new KeyedCalls(this.#log);
    this.#followers = new Followers(journal);
    this.#admission = new Admission(conversation.dialect, redactor);
    this.#context = {
      id: journal.id,
      log: this.#log,
      conversation,
      admission: this.#admission,
      draftMs: options.draftMs ?? DRAFT_MS,
      draftChars: options.draftChars ?? DRAFT_CHARS,
      messages: () => this.copyMessages(),
      assertOpen: () => {
        if (!this.#isClosed) return;
        throw this.#leaving ? turnHandedOver(this.id, this.#leaving.number) : sessionClosed(this.id);
      },
      turnOver: (turn) => this.#turnOver(turn),
    };
    this.#queue = new Queue(this.#context);
    this.#epochs = new Epochs(this.#context, {
      store: parts.store,
      fold: parts.fold,
      activity: () => this.#activity(),
    });
    this.#prompts = new Prompts(this.#context, {
      turn: () => this.turn,
      open: (number, unit) => this.#open(number, unit),
      resume: () => this.#resume({}),
    });
    this.#sync = new Sync({
      ...{ id: journal.id, conversation, admission: this.#admission, assertOpen: this.#context.assertOpen },
      messages: () => this.shown,
      append: (unit) => this.#log.append(unit),
      turn: () => this.#turn,
      openTurn: (number, unit) => {
        this.#assertStarts();
        return this.#open(number, unit);
      },
      epoch: (build) => this.#epochs.begin(build),
    });
    this.#stopListening = journal.onFailure((error) => {
      this.#stopped.abort(error);
      this.#turn?.stop(error);
    });
  }

  get turn(): LiveTurn<M> | null {
    return this.#turn?.isRecorded && !this.#turn.isOver ? this.#turn : null;
  }

  async startTurn(prompt: M | M[] | Queued<M>, options: PromptOptions & StateOptions = {}): Promise<Turn<M>> {
    this.#assertStarts();
    return this.#inOrder(this.#prompts.admit(prompt, options));
  }

  async answer(key: string, options: { readonly signal?: AbortSignal } = {}): Promise<Answer<M> | null> {
    this.#assertOpen();
    const { store, assertStoreOpen: assertOpen } = this.#parts;
    const { signal } = reading("options", () => ({ ...options }));
    const stopped = AbortSignal.any(signal ? [this.#stopped.signal, signal] : [this.#stopped.signal]);
    const parts = { store, session: this.id, key: keyDigestOf(key), assertOpen, signal: stopped };
    await this.settled();
    return findAnswer({ ...parts, fold: () => this.#parts.fold(this.#conversation.dialect) });
  }

  async resumeTurn(options: ResumeOptions = {}): Promise<Turn<M>> {
    this.#assertStarts();
    const given = resumeGiven(options);
    return this.#inOrder(() => this.#resume(given));
  }

  async settleCalls(probes: Readonly<Record<string, Probe>>, options: SettleOptions = {}): Promise<void> {
    this.#assertStarts();
    const given = questionsGiven(probes, options);
    return this.#inOrder(async () => {
      this.#assertNoTurn("pass the probe to turn.tool");
      if (this.interruption) await settleCalls(this.#context, given, this.#stopped.signal);
    });
  }

  completeTurn(): Promise<void> {
    return this.#inOrder(async () => {
      this.#assertNoTurn("end it with turn.end");
      if (!this.interruption) throw nothingToResume(this.id, this.#conversation.turns);
      await this.#append(endAnswered(this.id, this.#conversation));
      this.#parts.onTurnEnd(this.id);
    });
  }

  /** For workers: a try of the interrupted turn begins. Durable. Returns how many there were without progress. */
  async claimTurn(worker?: string): Promise<number> {
    this.#assertStarts();
    return this.#inOrder(async () => {
      this.#assertNoTurn();
      const by = worker === undefined ? undefined : this.#admission.text(worker);
      const record = tryRecord(this.id, this.#conversation, Number.isFinite(this.#log.since), by);
      await this.#append([record]);
      return record.n;
    });
  }

  /** For workers: the turn, open or interrupted, pauses, is parked, or is to be tried again. */
  async suspendTurn(why: TrySuspension): Promise<void> {
    this.#assertOpen();
    const suspension = admitSuspension(this.#admission, why);
    await this.#inOrder(async () => {
      if (this.turn) return this.turn.suspend(suspension);
      this.#assertNoTurn();
      await this.#append(pauseRecords(this.id, this.#conversation, suspension));
      this.#parts.onTurnEnd(this.id);
    });
  }

  /** For workers: how often the last turn was tried since its last progress. */
  get attempts(): number {
    return this.#conversation.turn?.attempts ?? 0;
  }

  retryTurn(): Promise<boolean> {
    return this.#inOrder(async () => {
      this.#assertNoTurn();
      if (this.state !== "parked") return false;
      const again = { reason: "retry", until: new Date().toISOString() };
      await this.#append(pauseRecords(this.id, this.#conversation, again));
      this.#parts.onTurnEnd(this.id);
      return true;
    });
  }

  async sync(messages: readonly M[], options: SyncOptions = {}): Promise<{ appended: string[]; epoch: boolean }> {
    this.#assertOpen();
    const given = this.#sync.admit(messages, options, this.#order.isBusy || this.#log.isBehind);
    return this.#inOrder(() => this.#sync.sync(given));
  }

  async patch(id: string, metadata: Metadata): Promise<void> {
    this.#assertOpen();
    const given = this.#admission.metadata(metadata);
    await this.#log.inLine(() => {
      const item = this.#conversation.find(id);
      if (!item) throw messageUnknown(this.id, id);
      const all = mergePatch(item.entry.metadata, given);
      assertSize("the metadata with this patch", "patch", all as Json, METADATA_BYTES_MAX);
      return this.#append([{ kind: "patch", id, metadata: given }]);
    });
  }

  async edit(ids: string[], shown: M[], options: { reason: string; now?: boolean }): Promise<void> {
    this.#assertOpen();
    const given = admitEdit(ids, shown, options, this.#admission);
    await this.#inOrder(() =>
      this.#append([editRecord(this.#conversation, given.ids, given.shown, given.options, newId)]),
    );
  }

  async replace(
    items: (M | Entry<M>)[],
    options: { reason: "compaction" | "clear" | "rewind" | "import" },
  ): Promise<void> {
    this.#assertOpen();
    const { head, epochSeq } = this.#conversation;
    const reason = checkReason(options);
    const given = admitReplacement(this.#conversation, items, this.#admission);
    await this.#inOrder(() =>
      this.#epochs.begin((replaced) => replaced([...given, ...this.#epochs.since(head, epochSeq)], { reason })),
    );
  }

  undo(): Promise<void> {
    return this.#inOrder(() => this.#epochs.undo());
  }

  async enqueue(prompt: M, options: PromptOptions = {}): Promise<Queued<M>> {
    this.#assertOpen();
    return this.#queue.put(prompt, options);
  }

  async dequeue(id: string): Promise<void> {
    this.#assertOpen();
    await this.#queue.withdraw(id);
  }

  async note(name: string, value: Json): Promise<void> {
    this.#assertOpen();
    await this.#log.append([admitNote(this.#admission, name, value)]);
  }

  async once(
    key: string,
    content: string,
    work: () => Promise<unknown>,
    options: { readonly streams?: boolean } = {},
  ): Promise<surface.Once> {
    this.#assertOpen();
    const digest = digestOf(key, content);
    const streams = reading("options", () => options.streams === true);
    return this.#keyed.run(key, streams, async () => {
      this.#assertOpen();
      const known = this.#parts.once.find(key, digest);
      if (known) {
        await this.#log.journal.flush();
        return { ...known, repeated: true };
      }
      const { seq, last } = await this.#log.once(recordedKey(key, digest), work, (unit) =>
        this.#parts.once.add(key, digest, unit),
      );
      return { seq, last, repeated: false };
    });
  }

  /** Where the call with this key is recorded, durably; null if it is not. Waits for one that is being made. */
  async findOnce(key: string, digest: string): Promise<{ seq: number; last: number } | null> {
    await this.#keyed.over(key);
    const known = this.#parts.once.find(key, digest);
    if (known) await this.#log.journal.flush();
    return known;
  }

  async rename(title: string): Promise<void> {
    this.#assertOpen();
    await this.#log.append([{ kind: "session", title: this.#admission.text(titleOf(title)) }]);
    this.#parts.onTurnEnd(this.id);
  }

  follow(options: { after?: number; signal?: AbortSignal } = {}): AsyncIterable<JournalRecord> {
    return this.#followers.follow(reading("options", () => ({ ...options })));
  }

  /** Resolves when every earlier call was written or refused. Never rejects. */
  async settled(): Promise<void> {
    await this.#order.over;
    await this.#log.caughtUp();
  }

  async flush(): Promise<void> {
    this.#assertOpen();
    try {
      await this.#turn?.flushDraft();
    } finally {
      await this.#log.caughtUp();
      await this.#log.journal.flush();
    }
  }

  flushSync(): void {
    this.#assertOpen();
    if (this.#parts.store.capabilities.sync) this.#turn?.flushDraftSync();
    this.#log.journal.flushSync();
  }

  close(options: CloseOptions = {}): Promise<void> {
    if (this.#closing) return this.#closing;
    let withinMs: number | null;
    try {
      withinMs = handOverMs(options);
    } catch (error) {
      return Promise.reject(error);
    }
    this.#closing = this.#close(withinMs);
    return this.#closing;
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close();
  }

  [endsNow](ending: Ending): void | Promise<void> {
    // A guard of the store and one of the session may both report the ending.
    if (this.#isClosing || this.#told === ending) return;
    this.#told = ending;
    const { signal, error } = ending;
    const why = error === undefined ? {} : { error: this.#admission.words(error) };
    const record: SessionRecord = { kind: "signal", signal, ...why };
    const { journal } = this.#log;
    const isOpen = this.#turn !== null && !this.#turn.isOver;
    try {
      const drafted = this.#turn?.flushDraft().catch(ignoreAtEnd);
      if (this.#parts.store.capabilities.sync) {
        if (isOpen) this.#log.appendSync([record]);
        journal.flushSync();
        return;
      }
      const written = isOpen ? this.#log.append([record]) : this.#log.caughtUp();
      return Promise.all([drafted, written])
        .then(() => journal.flush())
        .catch(ignoreAtEnd);
    } catch (failure) {
      ignoreAtEnd(failure);
    }
  }

  [onClosed](listener: () => void): () => void {
    this.#closed.add(listener);
    return () => this.#closed.delete(listener);
  }

  async #open(number: number, unit: readonly SessionRecord[]): Promise<LiveTurn<M>> {
    const appended = this.#append(unit);
    const turn = new LiveTurn(this.#context, number);
    this.#turn = turn;
    try {
      await appended;
      turn.begun();
      return turn;
    } catch (error) {
      if (this.#turn === turn) this.#turn = null;
      throw error;
    }
  }

  async #resume(options: ResumeOptions): Promise<LiveTurn<M>> {
    this.#assertNoTurn();
    if (!this.interruption) throw nothingToResume(this.id, this.#conversation.turns);
    const unit = resumeRecords(this.#conversation, this.#admission, options);
    return this.#open(this.#conversation.turns, unit);
  }

  #activity(): TurnActivity {
    return this.turn ? { kind: "active", since: this.#log.since } : { kind: "idle" };
  }

  async #append(unit: readonly SessionRecord[]): Promise<void> {
    try {
      await this.#log.append(unit);
    } catch (error) {
      throw asMessageError(error);
    }
  }

  #turnOver(turn: object): void {
    if (this.#turn === turn) this.#turn = null;
    this.#parts.onTurnEnd(this.id);
  }

  /** `handOverMs`: how long the turn may take to be handed over; null: it is aborted. */
  async #close(handOverMs: number | null): Promise<void> {
    const { journal } = this.#log;
    this.#stopped.abort(sessionClosed(this.id));
    try {
      if (handOverMs !== null) await this.#handOver(handOverMs);
      this.#isClosing = true;
      await this.#order.over;
      if (this.#turn && !journal.failure) await this.#turn.abort({ by: "close" });
    } finally {
      this.#isClosing = true;
      this.#isClosed = true;
      this.#turn?.stop(sessionClosed(this.id));
      // Only now: what tools answer to the signal is no outcome.
      this.#leaving?.stop(turnHandedOver(this.id, this.#leaving.number));
      this.#stopListening();
      try {
        await journal.close();
      } finally {
        this.#followers.end();
        this.#parts.onClose(this.id);
        for (const listener of [...this.#closed]) listener();
      }
    }
  }
  #isClosed = false;

  async #handOver(withinMs: number): Promise<void> {
    const first = this.#turn;
    // From this instant on it begins nothing.
    void first?.handOverWithin(withinMs).catch(() => {});
    await this.#order.over;
    // A turn that was being started when the session was closed.
    for (const turn of new Set([first, this.#turn])) {
      await turn?.handOverWithin(withinMs);
      if (turn?.isHandedOver) this.#leaving = turn;
    }
  }

  async #inOrder<T>(run: () => Promise<T>): Promise<T> {
    this.#assertOpen();
    return this.#order.run(() => this.#log.inLine(run));
  }

  #assertNoTurn(what?: string): void {
    this.#context.assertOpen();
    if (this.turn) throw turnOpen(this.id, this.turn.number, what);
  }

  /** Calls made after `close` have no effect. During a hand-over, the turn that is under way still needs them. */
  #assertOpen(): void {
    if (this.#isClosing) throw sessionClosed(this.id);
  }

  #assertStarts(): void {
    if (this.#closing) throw sessionClosed(this.id);
  }
}

/** The process is ending. A failed write was reported to its caller, or shows when the session is next opened. */
function ignoreAtEnd(_failure: unknown): void {}
