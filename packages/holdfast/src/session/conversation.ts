import type { Dialect, Entry, Metadata, Outcome } from "../dialects/dialect.ts";
import { HoldfastError } from "../errors.ts";
import type { JournalRecord, Json } from "../journal/record.ts";
import { ChangedPast } from "./changed-past.ts";
import { DraftState } from "./draft-state.ts";
import type { Item } from "./item.ts";
import { mergePatch } from "./merge-patch.ts";
import { deepFreeze } from "./plain-copy.ts";
import type * as records from "./records.ts";
import { Runs } from "./runs.ts";
import { Section } from "./section.ts";
import { isKnownKind, storedRecord } from "./stored.ts";
import type { Attributes, Queued, Usage } from "./surface.ts";
import { resumeTurn, type TurnState, turnFrom, type Writer } from "./turn-state.ts";
import { addUsage } from "./usage.ts";

// biome-ignore lint/suspicious/noExplicitAny: the type of the messages is the application's to say.
export type DialectLookup = (name: string) => Dialect<any> | null;
type Stamped<R> = R & { readonly seq: number; readonly at: string };
type Attribute = Omit<records.SessionAttributes, "kind">;

const EMPTY: Metadata = Object.freeze({});

/**
 * The fold: records in, conversation out. Pure but for its own state, incremental, and total: whatever the records are, it takes them. It holds the current epoch and nothing else,
 * so that its memory is bounded by the live context. What the model sees of it, view.ts decides; what was in flight, resume.ts.
 */
export class Conversation<M> {
  readonly #lookup: DialectLookup;
  readonly #named: string | undefined;
  #dialect: Dialect<M> | null = null;
  #attributes: Attribute = {};
  #items: Item<M>[] = [];
  #byId = new Map<string, Item<M>>();
  #earlyPatches = new Map<string, Metadata[]>();
  #queue = new Map<string, Queued<M> & { readonly model?: string }>();
  #notes: Record<string, Json> = {};
  #usage: Usage = {};
  #usageByTurn = new Map<number, Usage>();
  #section: Section<M> | null = null;
  #runs = new Runs();
  #turns = 0;
  #turn: TurnState<M> | null = null;
  #promptId: string | null = null;
  #draft: DraftState | null = null;
  #writer: Writer = { intents: false };
  #changed = new ChangedPast<M>();
  #checkpoint: Stamped<records.EpochRecord> | null = null;
  #undo: number | null = null;
  #epochSeq = 0;
  #head = 0;
  #at = "";
  #version = 0;

  /** `named`: the dialect that the application gave along, whatever the journal says. */
  constructor(lookup: DialectLookup, named?: Dialect<M>) {
    this.#lookup = lookup;
    this.#named = named?.name;
    this.#dialect = named ?? null;
  }

  get dialect(): Dialect<M> {
    if (this.#dialect) return this.#dialect;
    const name = this.#attributes.dialect ?? "";
    const message =
      `The session is in the dialect ${JSON.stringify(name)}, which is not known here. Nothing was touched. ` +
      "Give that dialect to openStore({ dialects }), or to resume.";
    throw new HoldfastError("DIALECT_UNKNOWN", message, { dialect: name });
  }
  get head(): number {
    return this.#head;
  }
  /** When the newest record was written. */
  get at(): string {
    return this.#at;
  }
  /** Grows with every record. */
  get version(): number {
    return this.#version;
  }
  get items(): readonly Item<M>[] {
    return this.#items;
  }
  get section(): Section<M> {
    this.#section ??= new Section(this.dialect, new Set());
    return this.#section;
  }
  get runs(): Runs {
    return this.#runs;
  }
  get turns(): number {
    return this.#turns;
  }
  /** The last one, ended or not. */
  get turn(): TurnState<M> | null {
    return this.#turn;
  }
  get draft(): DraftState | null {
    return this.#draft;
  }
  get usage(): Usage {
    return this.#usage;
  }
  get usageByTurn(): ReadonlyMap<number, Usage> {
    return this.#usageByTurn;
  }
  get queue(): Queued<M>[] {
    return [...this.#queue.values()];
  }
  get writer(): Writer {
    return this.#writer;
  }
  get changed(): ChangedPast<M> {
    return this.#changed;
  }
  /** The seq of the first record of the epoch before, if the replacement can still be undone. */
  get undo(): number | null {
    return this.#undo;
  }
  /** The seq of the first record of this epoch. */
  get epochSeq(): number {
    return this.#epochSeq;
  }
  get attributes(): Attributes {
    const { title = "", dialect = this.#named ?? "", labels = {}, cwd, app, parent, forkedFrom } = this.#attributes;
    return {
      title,
      dialect,
      labels: { ...labels },
      notes: { ...this.#notes },
      ...(cwd === undefined ? {} : { cwd }),
      ...(app === undefined ? {} : { app }),
      ...(parent === undefined ? {} : { parent }),
      ...(forkedFrom === undefined ? {} : { forkedFrom }),
    };
  }

  find(id: string): Item<M> | null {
    return this.#byId.get(id) ?? null;
  }
  queued(id: string): (Queued<M> & { readonly model?: string }) | null {
    return this.#queue.get(id) ?? null;
  }

  /** A record that is in the journal, in order. Throws DIALECT_UNKNOWN, and FORMAT_NEWER for a record that must not be passed over. */
  add(record: JournalRecord | Stamped<records.SessionRecord>): void {
    const { seq, at } = record;
    // A record that is missing might have been a start: then "never started" may no longer be said (R5).
    if (this.#head > 0 && seq !== this.#head + 1) this.#turn?.writers.add({ intents: false });
    this.#head = seq;
    this.#at = at;
    this.#version += 1;
    if (record.kind === "opened") this.#opened(record as JournalRecord);
    const known = storedRecord(record) as Stamped<records.SessionRecord> | null;
    if (known) this.#apply(known);
    else if ((record as JournalRecord).must === true && !isKnownKind(record.kind)) throw mustKnow(record.kind);
    if (this.#turn && !this.#turn.ended) this.#turn.lastAt = at;
  }

  #apply(record: Stamped<records.SessionRecord>): void {
    if (this.#checkpoint && record.kind !== "session") this.#begin();
    switch (record.kind) {
      case "session":
        return this.#session(record);
      case "epoch":
        return this.#epoch(record);
      case "message":
        return this.#message(record);
      case "draft":
        return this.#streamed(record);
      case "tool.started":
        return this.#started(record);
      case "tool.ended":
        return this.#ended(record);
      case "repair":
        return this.#repair(record);
      case "patch":
        return this.#patch(record);
      case "edit":
        return this.#edit(record);
      case "usage":
        return this.#used(record);
      case "queue.put":
        this.#queue.set(record.id, this.#queuedFrom({ ...record, queuedAt: record.at }));
        return;
      case "queue.take":
        this.#queue.delete(record.id);
        return;
      case "note":
        this.#notes = { ...this.#notes, [record.name]: deepFreeze(record.value) };
        return;
      default:
        return this.#turned(record);
    }
  }

  #opened(record: JournalRecord): void {
    this.#writer = { intents: record["intents"] === true };
    if (typeof record["dialect"] === "string") this.#speak(record["dialect"]);
  }

  #session({ seq: _seq, at: _at, kind: _kind, ...changed }: Stamped<records.SessionAttributes>): void {
    this.#attributes = { ...this.#attributes, ...changed };
    if (typeof changed.dialect === "string") this.#speak(changed.dialect);
    if (this.#checkpoint) this.#begin();
  }

  #speak(name: string): void {
    if (this.#dialect?.name === name) return;
    this.#attributes = { ...this.#attributes, dialect: name };
    if (this.#named === undefined) this.#dialect = this.#lookup(name);
  }

  /** Everything is new. The dialect stands in the record that follows, unless it is known already. */
  #epoch(record: Stamped<records.EpochRecord>): void {
    this.#checkpoint = record;
    this.#epochSeq = record.seq;
    if (this.#dialect) this.#begin();
  }

  #begin(): void {
    const { checkpoint, undo, seq } = this.#checkpoint!;
    this.#checkpoint = null;
    if (!this.#dialect && typeof checkpoint.dialect === "string") this.#speak(checkpoint.dialect);
    this.#items = [];
    this.#byId = new Map();
    this.#earlyPatches = new Map();
    this.#section = null;
    this.#writer = { intents: checkpoint.intents === true };
    this.#turns = checkpoint.turns;
    this.#queue = new Map(checkpoint.queue.map((item) => [item.id, this.#queuedFrom(item)]));
    this.#notes = { ...checkpoint.notes };
    this.#usage = checkpoint.usage;
    this.#usageByTurn = new Map(checkpoint.usageByTurn);
    this.#draft = checkpoint.draft ? DraftState.from(checkpoint.draft) : null;
    this.#runs = new Runs();
    for (const started of checkpoint.started) this.#runs.start({ ...started, at: started.startedAt, seq: 0 });
    const { turn } = checkpoint;
    this.#promptId = turn?.prompt.id ?? null;
    this.#turn = turn
      ? turnFrom(turn, this.#writer, this.#entryOf({ ...turn.prompt, seq, at: turn.prompt.first }))
      : null;
    this.#changed = new ChangedPast(checkpoint.changed);
    this.#undo = undo ?? null;
  }

  #turned(
    record: Stamped<
      records.TurnStarted | records.TurnResumed | records.TurnSuspended | records.TurnEnded | records.Signalled
    >,
  ): void {
    const { turn } = this;
    switch (record.kind) {
      case "turn.started":
        this.#turns = record.turn;
        this.#promptId = record.prompt;
        this.#turn = {
          number: record.turn,
          startedAt: record.at,
          lastAt: record.at,
          resumes: 0,
          writers: new Set([this.#writer]),
          prompt: this.#lostPrompt(record),
          ended: null,
          suspended: null,
          signal: null,
        };
        this.#draft = null;
        this.#runs = new Runs();
        this.#undo = null;
        if (this.#changed.settle(this.#items, this.dialect)) this.#reindex();
        return;
      case "turn.resumed":
        if (turn?.number === record.turn) resumeTurn(turn, record.n, this.#writer);
        this.#draft = null;
        this.#runs.forgetStrays();
        this.#undo = null;
        return;
      case "turn.suspended":
        if (turn?.number === record.turn)
          turn.suspended = { reason: record.reason, ...(record.calls ? { calls: record.calls } : {}) };
        return;
      case "turn.ended": {
        if (turn?.number !== record.turn) return;
        const { seq: _seq, at: _at, kind: _kind, turn: _turn, ...ended } = record;
        turn.ended = ended;
        turn.lastAt = record.at;
        if (record.outcome === "completed" || record.outcome === "left") this.#draft = null;
        return;
      }
      default:
        if (turn && !turn.ended)
          turn.signal = { signal: record.signal, ...(record.error === undefined ? {} : { error: record.error }) };
    }
  }

  #message(record: Stamped<records.MessageRecord>): void {
    if (this.#byId.has(record.id)) return;
    const entry = this.#entryOf(record);
    const item = this.#itemOf(entry, "message", record);
    const { turn } = this;
    if (record.id === this.#promptId && turn?.number === record.turn) turn.prompt = entry;
    if (!record.carried) turn?.writers.add(this.#writer);
    if (item.role === "assistant") {
      if (!record.carried) this.#draft = null;
      this.#push(item);
      this.#adopt(item);
      return;
    }
    const results = this.dialect.results(entry.message);
    if (!entry.late && this.section.isLate(results)) item.entry = Object.freeze({ ...entry, late: true as const });
    // The result in a message counts, not the one that was recorded before there was a message (R6).
    for (const { call } of results) {
      const found = this.section.open(call) ? null : this.section.unheld(call);
      if (found) this.#remove(this.section.release(found));
    }
    this.#push(item);
  }

  #push(item: Item<M>): void {
    if (item.role === "assistant" && this.section.isClosed && !item.entry.late) this.#section = this.section.next();
    this.#items.push(item);
    this.#byId.set(item.entry.id, item);
    this.section.add(item);
  }

  #remove(item: Item<M> | null): void {
    if (!item) return;
    const at = this.#items.lastIndexOf(item);
    if (at >= 0) this.#items.splice(at, 1);
    this.#byId.delete(item.entry.id);
  }

  /** Tools that started while the stream still ran (R9). */
  #adopt({ entry }: Item<M>): void {
    if (!this.#runs.hasStrays) return;
    for (const [index, { id }] of this.dialect.calls(entry.message).entries()) {
      const ended = this.#runs.adopt(id, entry.id, index);
      if (ended) this.#ended({ ...ended, message: entry.id, index });
    }
  }

  #streamed(record: Stamped<records.DraftRecord>): void {
    if (record.discarded !== undefined) {
      if (this.#draft?.id === record.id) this.#draft = null;
      return;
    }
    if (this.#byId.has(record.id)) return;
    if (this.#draft?.id !== record.id) this.#draft = new DraftState(record.id, record.turn);
    this.#draft.add(record);
  }

  #started(record: Stamped<records.ToolStarted>): void {
    if (record.intents === true) this.#writer.intents = true;
    this.#runs.start(record);
  }

  #ended(record: Stamped<records.ToolEnded>): void {
    if (this.#byId.has(record.id)) return;
    const { message, index = 0 } = record;
    if (message === null || message === undefined) {
      if (this.#runs.endStray(record)) return;
    } else {
      this.#runs.end(message, index);
    }
    const found = message === null || message === undefined ? null : this.section.at(message, index);
    const isLate = !found || found.answer !== null;
    const shown = this.#resultOf(record, found?.call);
    // What cannot be phrased (a screenshot): the step is left out (R8).
    if (shown === null) {
      if (found) this.#hideStep(found.item);
      return;
    }
    const { id, seq, at, turn } = record;
    const late = isLate ? { late: true as const } : {};
    const entry = Object.freeze({ id, seq, at, turn, step: id, message: shown, metadata: EMPTY, ...late });
    const item = this.#itemOf(entry, "result", record);
    this.#push(item);
    if (found && !isLate) found.answer = item;
  }

  #resultOf(
    record: records.ToolEnded,
    call: { id: string; name: string } = { id: record.call, name: record.name },
  ): M | null {
    if (record.shown !== undefined) return this.#decoded(record.shown);
    const outcome: Outcome = record.error === undefined ? { value: record.value } : { error: record.error };
    const message = this.dialect.result(call, outcome);
    return message === null ? null : deepFreeze(message);
  }

  #hideStep({ entry: { step } }: Item<M>): void {
    for (const item of this.#items) {
      if (item.entry.step === step) {
        item.hidden = true;
        item.leftOut = true;
      }
    }
    this.#reindex();
  }

  #repair({ seq, at, turn, entries }: Stamped<records.RepairRecord>): void {
    for (const made of entries) {
      if (this.#byId.has(made.id)) continue;
      const { id, synthetic, incomplete } = made;
      const message = this.#decoded(made.message);
      const entry = {
        id,
        seq,
        at,
        turn,
        step: id,
        message,
        metadata: EMPTY,
        synthetic,
        ...(incomplete ? { incomplete } : {}),
      };
      this.#push(this.#itemOf(Object.freeze(entry), "repair", {}));
    }
    this.#draft = null;
  }

  #patch({ id, metadata }: records.PatchRecord): void {
    const item = this.#byId.get(id);
    if (!item) {
      this.#earlyPatches.set(id, [...(this.#earlyPatches.get(id) ?? []), metadata]);
      return;
    }
    item.entry = Object.freeze({ ...item.entry, metadata: deepFreeze(mergePatch(item.entry.metadata, metadata)) });
    if ("hiddenFromModel" in metadata) this.#changed.note();
  }

  #edit({ id, ids, shown, reason, now, seq, at }: Stamped<records.EditRecord>): void {
    const replaced = ids.flatMap((one) => this.#byId.get(one) ?? []);
    const first = replaced[0];
    if (!first) return;
    const { turn } = first.entry;
    const items = shown.map((one) => {
      const entry = {
        id: one.id,
        seq,
        at,
        turn,
        step: id,
        message: this.#decoded(one.message),
        metadata: EMPTY,
        synthetic: reason,
      };
      return this.#itemOf(Object.freeze(entry), "edit", { hidden: true });
    });
    for (const item of replaced) item.entry = Object.freeze({ ...item.entry, replacedBy: items[0]?.entry.id ?? id });
    this.#items.splice(this.#items.indexOf(first), 0, ...items);
    for (const item of items) this.#byId.set(item.entry.id, item);
    this.#changed.note();
    if (now && this.#changed.settle(this.#items, this.dialect)) this.#reindex();
  }

  /** What is shown has changed: the live end is found anew. */
  #reindex(): void {
    this.#section = new Section(this.dialect, new Set());
    for (const item of this.#items) {
      if (item.role === "assistant" && this.#section.isClosed && !item.entry.late) this.#section = this.#section.next();
      this.#section.add(item);
    }
  }

  #used({ turn, usage }: records.UsageRecord): void {
    this.#usage = addUsage(this.#usage, usage);
    this.#usageByTurn.set(turn, addUsage(this.#usageByTurn.get(turn) ?? {}, usage));
  }

  #entryOf(record: Omit<Stamped<records.MessageRecord>, "kind">): Entry<M> {
    const { id, seq, turn, step, model, synthetic, incomplete, late, replacedBy } = record;
    let metadata = record.metadata ?? EMPTY;
    for (const early of this.#earlyPatches.get(id) ?? []) metadata = mergePatch(metadata, early);
    return Object.freeze({
      id,
      seq,
      at: record.first ?? record.at,
      turn,
      step,
      message: this.#decoded(record.message),
      metadata: deepFreeze(metadata),
      ...(model === undefined ? {} : { model }),
      ...(synthetic === undefined ? {} : { synthetic }),
      ...(incomplete === undefined ? {} : { incomplete }),
      ...(late === undefined ? {} : { late }),
      ...(replacedBy === undefined ? {} : { replacedBy }),
    });
  }

  #itemOf(entry: Entry<M>, from: Item<M>["from"], flags: { hidden?: true; redacted?: true }): Item<M> {
    // A step is hidden as a whole (R3).
    const before = this.#items.at(-1);
    const isHidden = flags.hidden === true || entry.metadata.hiddenFromModel === true;
    const sameStep = before?.entry.step === entry.step;
    if (isHidden && sameStep) for (const item of this.#items) if (item.entry.step === entry.step) item.hidden = true;
    const hidden = isHidden || (sameStep && before.hidden);
    const isExplained = from === "edit" || entry.metadata.hiddenFromModel === true || entry.replacedBy !== undefined;
    return {
      entry,
      from,
      role: this.dialect.role(entry.message),
      hidden,
      leftOut: flags.hidden === true && !isExplained,
      redacted: flags.redacted === true,
    };
  }

  #queuedFrom({ id, prompt, queuedAt, metadata, model }: records.QueuedItem): Queued<M> & { readonly model?: string } {
    const item = { id, prompt: this.#decoded(prompt), at: queuedAt, metadata: deepFreeze(metadata ?? EMPTY) };
    return Object.freeze(model === undefined ? item : { ...item, model });
  }

  #decoded(stored: Json): M {
    const { decode } = this.dialect;
    return deepFreeze(decode ? decode(stored) : (stored as M));
  }

  /** Until the prompt's own record comes, and for good if that was damaged. */
  #lostPrompt({ seq, at, turn, prompt }: Stamped<records.TurnStarted>): Entry<M> {
    const message = this.dialect.boundary("(The prompt of this turn was lost to damage.)");
    return { id: prompt, seq, at, turn, step: prompt, message, metadata: EMPTY, synthetic: "damaged" };
  }
}

function mustKnow(kind: string): HoldfastError {
  const message =
    `The session holds a record of the kind ${JSON.stringify(kind)}, which this version of Holdfast does not know and must not pass over. ` +
    "Nothing was touched and nothing is lost. Open it with a newer version of Holdfast.";
  return new HoldfastError("FORMAT_NEWER", message, { kind });
}
