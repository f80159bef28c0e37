import { defined } from "../defined.ts";
import type { Dialect, Entry, Metadata } from "../dialects/dialect.ts";
import { isProgress } from "../dialects/order/pairing.ts";
import { HoldfastError } from "../errors.ts";
import type { JournalRecord, Json, NewRecord } from "../journal/record.ts";
import { AppState } from "./app-state.ts";
import { type DraftState, Drafts } from "./draft-state.ts";
import type { Exchange } from "./exchange.ts";
import type { Item } from "./item.ts";
import type { PendingEdits } from "./pending-edits.ts";
import { PromptKeys } from "./prompt-keys.ts";
import { PromptQueue, type Queued } from "./prompt-queue.ts";
import type { Attributes } from "./records/attributes.ts";
import type * as records from "./records/records.ts";
import { isKnownKind, isWholeMessage, mustKnow, storedRecord } from "./records/schema.ts";
import { addUsage, type Usage } from "./records/usage.ts";
import { deepFreeze, frozenCopy } from "./snapshot.ts";
import { type CallPlace, sameCalls, ToolStarts } from "./tool-starts.ts";
import { Transcript } from "./transcript.ts";
import { endTurn, resumeTurn, type TurnState, tryTurn, turnFrom, type Writer } from "./turn-state.ts";

// biome-ignore lint/suspicious/noExplicitAny: the type of the messages is the application's to say.
export type DialectLookup = (name: string) => Dialect<any> | null;
type Stamped<R> = R & { readonly seq: number; readonly at: string };
type Attribute = Omit<records.SessionAttributes, "kind">;
type TurnRecord =
  | records.TurnClaimed
  | records.TurnResumed
  | records.TurnSuspended
  | records.TurnEnded
  | records.SignalRecord;

const EMPTY: Metadata = Object.freeze({});

/**
 * Folds records into a conversation. Pure except for its own state, incremental, and total: it accepts any records. It
 * holds only the current epoch, so its memory is bounded by the live context. `view/` decides what the model sees of it
 * and what was in flight.
 */
export class Conversation<M> {
  readonly promptKeys: PromptKeys = new PromptKeys();
  readonly appState: AppState = new AppState();
  readonly #lookup: DialectLookup;
  #dialect: Dialect<M> | null;
  #attributes: Attribute = {};
  #transcript: Transcript<M> | null = null;
  readonly #queue = new PromptQueue<M>(this.promptKeys);
  #notes = new Map<string, Json>();
  #usage: Usage = {};
  #usageByTurn = new Map<number, Usage>();
  #toolStarts = new ToolStarts();
  #turns = 0;
  #turn: TurnState<M> | null = null;
  #drafts = new Drafts();
  #writer: Writer = { intents: false };
  #checkpoint: Stamped<records.EpochRecord> | null = null;
  #undo: number | null = null;
  #epochSeq = 0;
  #head = 0;
  #at = "";
  #version = 0;

  /** `named`: the dialect that the application passed, which overrides the journal. */
  constructor(lookup: DialectLookup, named?: Dialect<M>) {
    this.#lookup = lookup;
    this.#dialect = named ?? null;
  }

  get dialect(): Dialect<M> {
    if (this.#dialect) return this.#dialect;
    const name = this.#attributes.dialect ?? "";
    const message =
      name === ""
        ? "The journal does not say which dialect the session uses: that record is lost. Nothing was touched. Pass the dialect to resume."
        : `The session uses the dialect ${JSON.stringify(name)}, which is unknown here. Nothing was touched. ` +
          "Pass that dialect to openStore({ dialects }), or to resume.";
    throw new HoldfastError("DIALECT_UNKNOWN", message, { dialect: name });
  }
  get head(): number {
    return this.#head;
  }
  /** When the newest record was written. */
  get at(): string {
    return this.#at;
  }
  /** Increases with every record. */
  get version(): number {
    return this.#version;
  }
  get items(): readonly Item<M>[] {
    return this.#said.items;
  }
  /** Whether a message may hold bytes: only decoding produces them. */
  get mayHoldBytes(): boolean {
    return this.#transcript?.mayHoldBytes === true;
  }
  /** Whether every message can be sent unchanged. */
  get isWellFormed(): boolean {
    return this.#said.isWellFormed;
  }
  /** What the model is shown, if the conversation is regular (order/regular.ts). */
  get regular(): Transcript<M>["regular"] {
    return this.#said.regular;
  }
  get exchange(): Exchange<M> {
    return this.#said.exchange;
  }
  get toolStarts(): ToolStarts {
    return this.#toolStarts;
  }
  get turns(): number {
    return this.#turns;
  }
  /** The last turn, ended or not. */
  get turn(): TurnState<M> | null {
    return this.#turn;
  }
  get draft(): DraftState | null {
    return this.#drafts.open;
  }
  get accepted(): Drafts["accepted"] {
    return this.#drafts.accepted;
  }
  get usage(): Usage {
    return this.#usage;
  }
  get usageByTurn(): ReadonlyMap<number, Usage> {
    return this.#usageByTurn;
  }
  get queue(): Queued<M>[] {
    return this.#queue.all;
  }
  get writer(): Writer {
    return this.#writer;
  }
  get changed(): PendingEdits<M> {
    return this.#said.changed;
  }
  /** The seq of the previous epoch's first record, if the replacement can still be undone. */
  get undo(): number | null {
    return this.#undo;
  }
  /** The seq of this epoch's first record. */
  get epochSeq(): number {
    return this.#epochSeq;
  }
  get attributes(): Attributes {
    const {
      title = "",
      dialect = this.#dialect?.name ?? "",
      labels = {},
      cwd,
      app,
      parent,
      forkedFrom,
    } = this.#attributes;
    return {
      title,
      dialect,
      labels: { ...labels },
      notes: Object.fromEntries(this.#notes),
      ...defined({ cwd, app, parent, forkedFrom }),
    };
  }

  find(id: string): Item<M> | null {
    return this.#said.find(id);
  }
  queued(id: string): ReturnType<PromptQueue<M>["find"]> {
    return this.#queue.find(id);
  }

  /**
   * Adds a journal record, in order. Throws DIALECT_UNKNOWN, and FORMAT_NEWER for an unknown record that must not be
   * skipped.
   */
  add(record: JournalRecord | Stamped<records.SessionRecord>): void {
    const { seq, at } = record;
    // A missing record could be a tool start, or the `opened` of a writer that does not record starts: "never started"
    // may no longer be claimed (R5).
    if (this.#head > 0 && seq !== this.#head + 1) this.#lose();
    this.#head = seq;
    this.#at = at;
    this.#version += 1;
    if (record.kind === "opened") this.#opened(record as JournalRecord);
    const known = storedRecord(record) as Stamped<records.SessionRecord> | null;
    if (known) this.#apply(known);
    else if ((record as JournalRecord).must === true && !isKnownKind(record.kind)) throw mustKnow(record.kind);
    // The next writer puts the header of its segment before its `opened`.
    if (record.kind !== "segment") this.#touch(at);
  }

  /** The writer of the turn has written something. */
  #touch(at: string): void {
    const turn = this.#turn;
    if (turn && !turn.ended && turn.writers.has(this.#writer)) turn.lastAt = at;
  }

  /**
   * Adds a message that this process has just written, as `add` would, without a copy of its record. Returns false if
   * the record has to be copied for `add`.
   */
  addMessage(record: NewRecord, seq: number, at: string): boolean {
    if (!isWholeMessage(record) || record.value !== undefined) return false;
    if (this.#checkpoint || seq !== this.#head + 1) return false;
    this.#head = seq;
    this.#at = at;
    this.#version += 1;
    const { id, turn, step, message, model } = record;
    const kept = frozenCopy(message);
    const added: Stamped<records.MessageRecord> = { kind: "message", id, turn, step, message: kept, seq, at };
    if (model !== undefined) added.model = model;
    this.#message(added);
    this.#touch(at);
    return true;
  }

  get #said(): Transcript<M> {
    this.#transcript ??= new Transcript(this.dialect);
    return this.#transcript;
  }

  #apply(record: Stamped<records.SessionRecord>): void {
    if (this.#checkpoint && record.kind !== "session") this.#begin();
    switch (record.kind) {
      case "session":
        this.#session(record);
        break;
      case "epoch":
        this.#epoch(record);
        break;
      case "message":
        this.#message(record);
        break;
      case "draft":
        if (record.turn >= this.#turns && !this.#said.find(record.id)) this.#drafts.add(record);
        break;
      case "draft.accepted":
        if (record.turn >= this.#turns && !this.#said.find(record.id)) this.#drafts.accept(record);
        break;
      case "tool.started":
        if (record.intents === true) this.#writer.intents = true;
        this.#toolStarts.start(record);
        break;
      case "tool.process":
      case "tool.unstarted":
      case "step.started":
      case "step.ended":
        if (record.kind === "step.ended" && !record.carried) this.#progressed(record.turn);
        this.#toolStarts.add(record, (id) => this.#placeOfOpen(id));
        break;
      case "tool.ended":
        this.#ended(record);
        break;
      case "repair":
        this.#said.repair(record);
        this.#drafts.changed();
        if (this.draft && this.#said.find(this.draft.id)) this.#drafts.drop();
        break;
      case "patch":
        this.#prompted(this.#said.patch(record));
        break;
      case "edit":
        this.#said.edit(record);
        if (record.now) this.#moveStarts(record);
        if (record.now) this.#drafts.changed();
        if (this.#turn) this.#prompted(this.#said.find(this.#turn.prompt.id)?.entry ?? null);
        break;
      case "usage":
        this.#used(record);
        break;
      case "queue.put":
        this.#enqueue({ ...record, queuedAt: record.first ?? record.at });
        break;
      case "queue.take":
        this.#queue.take(record, this.#turns);
        break;
      case "state":
        this.appState.set(record);
        break;
      case "turn.keys":
        this.promptKeys.carry(record);
        break;
      case "note":
        this.#notes.set(record.name, deepFreeze(record.value));
        break;
      case "turn.started":
        this.#startTurn(record);
        break;
      case "turn.prompt":
        if (this.#turn?.number === record.turn)
          this.#turn.prompt = this.#promptOf(record.prompt, record.seq, this.#turn.startedAt);
        break;
      default:
        this.#turned(record);
    }
  }

  #lose(): void {
    this.#writer = { intents: false };
    this.#turn?.writers.add(this.#writer);
    this.#toolStarts.lose();
  }

  #opened(record: JournalRecord): void {
    this.#writer = { intents: record["intents"] === true };
    if (this.#turn) this.#turn.isTried = false;
    if (typeof record["dialect"] === "string") this.#speak(record["dialect"]);
  }

  #session({ seq: _seq, at: _at, kind: _kind, ...changed }: Stamped<records.SessionAttributes>): void {
    const { dialect = changed.dialect } = this.#attributes;
    this.#attributes = { ...this.#attributes, ...changed, ...defined({ dialect }) };
    if (changed.dialect !== undefined) this.#speak(changed.dialect);
    if (this.#checkpoint) this.#begin();
  }

  /** A session has one dialect, set once. */
  #speak(name: string): void {
    if (this.#attributes.dialect === undefined) this.#attributes = { ...this.#attributes, dialect: name };
    this.#dialect ??= this.#lookup(name);
  }

  /** Resets everything. The record that follows names the dialect, unless it is already known. */
  #epoch(record: Stamped<records.EpochRecord>): void {
    this.#checkpoint = record;
    this.#epochSeq = record.seq;
    if (this.#dialect) this.#begin();
  }

  #begin(): void {
    const { checkpoint, undo, seq } = this.#checkpoint!;
    this.#checkpoint = null;
    if (checkpoint.dialect !== "") this.#speak(checkpoint.dialect);
    const said = new Transcript(this.dialect, checkpoint);
    this.#transcript = said;
    this.#writer = { intents: checkpoint.intents };
    this.#turns = checkpoint.turns;
    this.promptKeys.clear();
    this.appState.clear();
    this.#queue.clear();
    for (const item of checkpoint.queue) this.#enqueue(item);
    this.#notes = new Map(Object.entries(checkpoint.notes) as [string, Json][]);
    this.#usage = checkpoint.usage;
    this.#usageByTurn = new Map(checkpoint.usageByTurn);
    this.#drafts = new Drafts(checkpoint.draft);
    this.#toolStarts = new ToolStarts();
    for (const started of checkpoint.started) {
      this.#toolStarts.start({ ...started, at: started.startedAt, seq: started.startedSeq ?? 0 });
    }
    const { turn } = checkpoint;
    this.#turn = turn ? turnFrom(turn, this.#writer, this.#promptOf(turn.prompt, seq, turn.startedAt)) : null;
    this.#undo = undo ?? null;
  }

  #promptOf(prompt: records.TurnCheckpoint["prompt"], seq: number, startedAt: string): Entry<M> {
    return this.#said.entryOf({ ...prompt, seq, at: prompt.first ?? startedAt });
  }

  #turned(record: Stamped<TurnRecord>): void {
    const turn = this.#turn;
    if (record.kind === "signal") {
      // Another process may receive a signal while the turn of a dead one is pending.
      if (!turn || turn.ended || !turn.writers.has(this.#writer)) return;
      turn.signal = { signal: record.signal, ...defined({ error: record.error }) };
      return;
    }
    if (turn?.number !== record.turn) return;
    switch (record.kind) {
      case "turn.claimed":
        tryTurn(turn);
        return;
      case "turn.resumed":
        resumeTurn(turn, record.n, this.#writer);
        this.#drafts.resume();
        this.#toolStarts.forgetEarlyStarts();
        this.#undo = null;
        return;
      case "turn.suspended":
        turn.suspended = suspensionOf(record);
        turn.attempts = record.parked ?? record.attempts ?? 0;
        turn.isTried = false;
        return;
      case "turn.ended": {
        if (!endTurn(turn, record)) return;
        turn.lastAt = record.at;
        if (record.outcome === "completed" || record.outcome === "left") this.#drafts.drop();
      }
    }
  }

  #startTurn(record: Stamped<records.TurnStarted>): void {
    const { turn: number, at } = record;
    this.#turns = number;
    this.promptKeys.start(record, number);
    this.#turn = {
      number,
      startedAt: at,
      lastAt: at,
      resumes: 0,
      attempts: 0,
      isTried: false,
      writers: new Set([this.#writer]),
      prompt: this.#lostPrompt(record),
      ended: null,
      suspended: null,
      signal: null,
    };
    this.#drafts = new Drafts();
    this.#toolStarts = new ToolStarts();
    this.#undo = null;
    this.#said.settle();
  }

  #message(record: Stamped<records.MessageRecord>): void {
    const { seq, at, turn, id: prompt, carried } = record;
    // The start of the turn was lost to damage.
    if (!carried && turn > this.#turns) this.#startTurn({ kind: "turn.started", seq, at, turn, prompt });
    if (!carried && isProgress(this.dialect, record.message)) this.#progressed(turn);
    const item = this.#said.message(record);
    if (!item) return;
    this.#prompted(item.entry);
    if (carried) return;
    this.#turn?.writers.add(this.#writer);
    if (item.role !== "assistant") return;
    // An answer replaces any draft (R10).
    this.#drafts.drop();
    this.#adopt(item.entry);
  }

  #prompted(entry: Entry<M> | null): void {
    const turn = this.#turn;
    if (entry && turn && entry.id === turn.prompt.id && entry.turn === turn.number) turn.prompt = entry;
  }

  /** Links tools that started while the message was still streaming (R9). */
  #adopt({ id: message, message: said }: Entry<M>): void {
    if (!this.#toolStarts.hasEarlyStarts) return;
    for (const [index, { id, by }] of this.dialect.calls(said).entries()) {
      const ended = by === "agent" ? this.#toolStarts.adopt(id, message, index) : null;
      if (ended) this.#ended({ ...ended, message, index });
    }
  }

  /**
   * Moves the starts of replaced calls to the messages that make the same calls in their place: the tools still ran
   * (P5).
   */
  #moveStarts({ ids, shown }: records.EditRecord): void {
    const entryOf = (id: string): Entry<M> | readonly never[] => this.#said.find(id)?.entry ?? [];
    for (const was of ids.flatMap(entryOf)) {
      for (const is of shown.flatMap(({ id }) => entryOf(id))) {
        for (const [index, place] of sameCalls(this.dialect, was, is)) this.#toolStarts.move(was.id, index, place);
      }
    }
  }

  #placeOfOpen(id: string): CallPlace | null {
    const open = this.#said.exchange.open(id);
    return open && { message: open.item.entry.id, index: open.index };
  }

  /** What is recorded need not be done again, so the tries so far do not count. */
  #progressed(turn: number): void {
    if (this.#turn?.number === turn) this.#turn.attempts = 0;
  }

  #ended(record: Stamped<records.ToolEnded>): void {
    this.#progressed(record.turn);
    const { message = null, index = 0 } = record;
    if (message === null && this.#toolStarts.endEarlyStart(record)) return;
    const place = message !== null ? { message, index } : this.#placeOfOpen(record.call);
    const isSaid = this.#said.result(record, place);
    if (!place) return;
    if (isSaid) this.#toolStarts.end(place.message, place.index);
    // The tool ran, even if its outcome cannot be phrased and its start was not recorded.
    else if (!this.#said.find(record.id) && !this.#toolStarts.of(place.message, place.index))
      this.#toolStarts.start({ ...record, ...place });
  }

  #used({ turn, usage }: records.UsageRecord): void {
    this.#usage = addUsage(this.#usage, usage);
    this.#usageByTurn.set(turn, addUsage(this.#usageByTurn.get(turn) ?? {}, usage));
  }

  #enqueue(item: records.QueuedItem): void {
    this.#queue.put(item, this.#said.decoded(item.prompt));
  }

  /** A placeholder until the prompt's own record arrives, permanent if that record was damaged. */
  #lostPrompt({ seq, at, turn, prompt }: Stamped<records.TurnStarted>): Entry<M> {
    const message = this.dialect.boundary("(The prompt of this turn was lost to damage.)");
    return { id: prompt, seq, at, turn, step: prompt, message, metadata: EMPTY, synthetic: "damaged" };
  }
}

function suspensionOf({ reason, calls, until, parked, attempts }: records.TurnSuspended): records.Suspension {
  return { reason, ...defined({ calls, until, parked, attempts }) };
}
