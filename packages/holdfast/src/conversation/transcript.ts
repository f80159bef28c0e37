import type { Dialect, Entry, Metadata, Outcome } from "../dialects/dialect.ts";
import { regularOrder } from "../dialects/index.ts";
import type { FoundResult } from "../dialects/order/open-calls.ts";
import { closesExchange, type Reader } from "../dialects/order/pairing.ts";
import type { RegularOrder } from "../dialects/order/regular.ts";
import type { Json } from "../journal/record.ts";
import { isWellFormed } from "../text/well-formed.ts";
import { Exchange } from "./exchange.ts";
import { type Item, ItemIndex, isShown } from "./item.ts";
import { remembering } from "./memoized-dialect.ts";
import { mergePatch } from "./merge-patch.ts";
import { PendingEdits } from "./pending-edits.ts";
import type * as records from "./records/records.ts";
import { SYNCED } from "./records/records.ts";
import { deepFreeze, freezeWellFormed } from "./snapshot.ts";

type Stamped<R> = R & { readonly seq: number; readonly at: string };
type MutableEntry<M> = { -readonly [K in keyof Entry<M>]: Entry<M>[K] };

const EMPTY: Metadata = Object.freeze({});

interface Regularity<M> {
  /** Null: not regular. */
  order: RegularOrder<M> | null;
  readonly shown: M[];
  /** How many items were looked at. */
  count: number;
  model?: string | undefined;
}

/** Everything said in this epoch, in order, and its live end. */
export class Transcript<M> {
  readonly changed: PendingEdits<M>;
  readonly #dialect: Dialect<M> & Pick<Reader<M>, "interleaved">;
  readonly #items: Item<M>[] = [];
  /** Replaced items that are still in the list; removed at the next read. */
  readonly #gone = new Set<Item<M>>();
  readonly #byId = new ItemIndex<M>();
  readonly #earlyPatches = new Map<string, Metadata[]>();
  /** Messages not yet checked for unpaired surrogates. */
  #unread: M[] = [];
  #isWellFormed = true;
  #mayHoldBytes = false;
  /** Retained messages are shown as the epoch says, not as their metadata says. */
  readonly #isPending: boolean;
  /** For repeated passes over everything; null until something changes the past. */
  #again: Dialect<M> | null = null;
  #exchange: Exchange<M>;
  /** From this index on, the exchange has not been told of the items. All of them are regular. */
  #untoldFrom: number | null = null;
  /** From this index on, the live end must be recomputed when it is next needed. */
  #staleFrom = Number.POSITIVE_INFINITY;
  /** What is known of the items' regularity; null until it is asked for, and after a change of the past. */
  #regular: Regularity<M> | null = null;
  /** Where to insert the next answer, if not at the end. Its first message sets the step. */
  #answer: { at: number; step: string | null } | null = null;

  constructor(dialect: Dialect<M>, saved: Pick<records.Checkpoint, "changed" | "pending"> = {}) {
    this.#dialect = dialect;
    this.changed = new PendingEdits(saved);
    this.#isPending = saved.pending === true;
    this.#exchange = new Exchange(dialect);
  }

  /** A caller may change the list: by then the exchange has been told of everything in it. */
  get items(): Item<M>[] {
    this.#tell();
    if (this.#gone.size > 0) this.#takeOut();
    return this.#items;
  }

  get exchange(): Exchange<M> {
    this.#tell();
    if (this.#staleFrom < Number.POSITIVE_INFINITY) this.#findExchange();
    return this.#exchange;
  }

  /** Whether the dialect decoded any message to something else than was stored. */
  get mayHoldBytes(): boolean {
    return this.#mayHoldBytes;
  }

  /** Whether all of it can be sent unchanged. Each message is checked once. */
  get isWellFormed(): boolean {
    for (let i = 0; i < this.#unread.length && this.#isWellFormed; i++) {
      this.#isWellFormed = isWellFormed(this.#unread[i]);
    }
    this.#unread = [];
    return this.#isWellFormed;
  }

  /**
   * What the model is shown, if the conversation is regular: nothing is changed, moved or left out. Null if it is not,
   * or not known to be. Not settled: a call of the live end waits for its result. Each item is looked at once.
   */
  get regular(): { readonly shown: readonly M[]; readonly isSettled: boolean } | null {
    const { items } = this;
    const known = this.#regularity();
    while (known.order && known.count < items.length) this.#passNext(known, items[known.count]!);
    const { order, shown } = known;
    return order && !this.changed.saved() ? { shown, isSettled: order.isSettled } : null;
  }

  #regularity(): Regularity<M> {
    this.#regular ??= { order: regularOrder(this.#dialect), shown: [], count: 0 };
    return this.#regular;
  }

  /** Looks at the next item. */
  #passNext(known: Regularity<M>, item: Item<M>): void {
    known.count += 1;
    if (!isShown(item)) return;
    const { model = known.model } = item.entry;
    // Reasoning of another model, and behind redacted text, is not sent.
    const isAnothers = known.model !== undefined && model !== known.model;
    known.model = model;
    if (isAnothers || item.redacted || !known.order?.pass(item.entry, known.shown)) known.order = null;
  }

  find(id: string): Item<M> | null {
    return this.#byId.find(id);
  }

  /** Null if it is already there. */
  message(record: Stamped<records.MessageRecord>): Item<M> | null {
    if (this.#byId.has(record.id)) return null;
    const item = this.#itemOf(this.entryOf(record), "message", record);
    // A unit that was requested may hold several responses, with the results between them.
    const isPlaced = item.role === "assistant" || this.#answer?.step === item.entry.step;
    const at = isPlaced ? this.#placeOf(item.entry) : null;
    if (at === null && this.#pushRegular(item)) return item;
    const results = item.role === "tool" ? this.#dialect.results(item.entry.message) : undefined;
    if (results && item.entry.late !== true && this.#isLate(item.entry.message, results)) {
      item.entry = Object.freeze({ ...item.entry, late: true as const });
    }
    if (at === null) this.#push(item, results);
    else this.#insert(item, at);
    return item;
  }

  /**
   * Null: at the end. The items of a response stay together, even if results of its first items arrived between them
   * (R3, R9).
   */
  #placeOf({ id, step }: Entry<M>): number | null {
    const answer = this.#answer;
    if (answer && (answer.step ?? step) === step) {
      answer.step = step;
      return answer.at++;
    }
    this.#answer = null;
    if (step === id || this.#items.at(-1)?.entry.step === step) return null;
    const before = this.items.findLastIndex(({ entry }) => entry.step === step);
    return before < 0 ? null : before + 1;
  }

  /** Adds a tool result that no message holds. False if it cannot be phrased (R8), or is already there. */
  result(record: Stamped<records.ToolEnded>, place: { message: string; index: number } | null): boolean {
    if (this.#byId.has(record.id)) return false;
    const at = place && this.exchange.at(place.message, place.index);
    // The provider answers its own calls (R8).
    const found = at?.call.by === "agent" ? at : null;
    const message = this.#resultOf(record, found?.call);
    if (message === null) return false;
    // The message that holds the result came first.
    if (found?.answer?.from === "message") return true;
    const { id, seq, turn } = record;
    const entry: MutableEntry<M> = {
      id,
      seq,
      at: record.at,
      turn,
      step: id,
      message,
      metadata: this.#patched(id, EMPTY),
    };
    if (place) entry.call = Object.freeze(place);
    if (record.shown !== undefined && record.value !== undefined) entry.value = deepFreeze(record.value);
    if (record.source !== undefined) entry.source = record.source;
    if (!found || found.answer) entry.late = true;
    this.#push(this.#itemOf(Object.freeze(entry), "result", record));
    return true;
  }

  repair({ seq, at, turn, entries, asked }: Stamped<records.RepairRecord>): void {
    const behind = asked === undefined ? [] : this.#setAside(asked);
    for (const { id: wanted, synthetic, incomplete, call, message: stored } of entries) {
      const id = this.#freeId(wanted, call);
      if (id === null) continue;
      const message = this.decoded(stored);
      const metadata = this.#patched(id, EMPTY);
      const entry: MutableEntry<M> = { id, seq, at, turn, step: id, message, metadata, synthetic };
      if (incomplete) entry.incomplete = true;
      if (call) entry.call = Object.freeze(call);
      this.#push(this.#itemOf(Object.freeze(entry), "repair", {}));
    }
    if (asked === undefined) return;
    const { items } = this;
    this.#answer = { at: items.length, step: null };
    this.#reindex(items.length);
    for (const item of behind) items.push(item);
  }

  /** Takes out what others said since the request, and marks results since then as late. */
  #setAside(asked: number): Item<M>[] {
    const { items } = this;
    let from = items.length;
    while (from > 0 && items[from - 1]!.entry.seq > asked && items[from - 1]!.role !== "assistant") from -= 1;
    this.#reindex(from);
    const since = items.splice(from);
    const behind: Item<M>[] = [];
    for (const item of since) {
      const { message } = item.entry;
      const isResult = this.#dialect.results(message).length > 0 && this.#dialect.text(message).trim() === "";
      if (isResult) item.entry = Object.freeze({ ...item.entry, late: true as const });
      if (isResult) items.push(item);
      else behind.push(item);
    }
    return behind;
  }

  /**
   * Null if that repair is already there. An application may have used the id for something else; the call must be
   * closed anyway.
   */
  #freeId(wanted: string, call: Entry<M>["call"]): string | null {
    let id = wanted;
    for (let item = this.#byId.find(id); item; item = this.#byId.find(id)) {
      const { synthetic, call: known } = item.entry;
      const isSame = known?.message === call?.message && known?.index === call?.index;
      const isOpen = call !== undefined && this.exchange.at(call.message, call.index)?.answer === null;
      if (synthetic !== undefined && isSame && !isOpen) return null;
      id += "~";
    }
    return id;
  }

  /** Returns the updated entry; null if the message is not there yet. */
  patch({ id, metadata }: records.PatchRecord): Entry<M> | null {
    const item = this.#byId.find(id);
    if (!item) {
      const early = this.#earlyPatches.get(id);
      if (early) early.push(metadata);
      else this.#earlyPatches.set(id, [metadata]);
      return null;
    }
    item.entry = Object.freeze({ ...item.entry, metadata: deepFreeze(mergePatch(item.entry.metadata, metadata)) });
    if ("hiddenFromModel" in metadata) this.changed.note();
    return item.entry;
  }

  edit({ id, ids, shown, reason, now, seq, at }: Stamped<records.EditRecord>): void {
    const replaced = new Set(ids.flatMap((one) => this.#byId.find(one) ?? []));
    const place = this.items.findIndex((item) => replaced.has(item));
    if (place < 0) return;
    const { turn } = this.items[place]!.entry;
    const items: Item<M>[] = [];
    for (const one of shown) {
      if (this.#byId.has(one.id)) continue;
      const message = this.decoded(one.message);
      const entry = { id: one.id, seq, at, turn, step: id, message, metadata: EMPTY, synthetic: reason };
      const item = this.#itemOf(Object.freeze(entry), "edit", {
        hidden: true,
        ...(one.redacted ? { redacted: true } : {}),
      });
      items.push(item);
      this.#byId.add(item);
    }
    const replacedBy = items[0]?.entry.id ?? id;
    for (const item of replaced) {
      item.entry = Object.freeze({ ...item.entry, replacedBy });
      if (reason === SYNCED) item.superseded = true;
    }
    this.items.splice(place, 0, ...items);
    this.#regular = null;
    this.changed.note();
    if (now) this.settle();
  }

  /** Applies pending hiding, showing and replacing. */
  settle(): void {
    if (!this.changed.isPending) return;
    this.#again ??= remembering(this.#dialect);
    if (this.changed.settle(this.items, this.#again)) this.#reindex(0);
  }

  entryOf(record: Omit<Stamped<records.MessageRecord>, "kind">): Entry<M> {
    const { id, seq, turn, model, synthetic, incomplete, late, replacedBy, call, value, source } = record;
    const message = this.decoded(record.message);
    const metadata = this.#patched(id, record.metadata ?? EMPTY);
    // One string instead of two equal ones: a conversation has many.
    const step = record.step === id ? id : record.step;
    const entry: MutableEntry<M> = { id, seq, at: record.first ?? record.at, turn, step, message, metadata };
    if (model !== undefined) entry.model = model;
    if (synthetic !== undefined) entry.synthetic = synthetic;
    if (incomplete) entry.incomplete = true;
    if (late) entry.late = true;
    if (replacedBy !== undefined) entry.replacedBy = replacedBy;
    if (call) entry.call = Object.freeze(call);
    if (value !== undefined) entry.value = deepFreeze(value);
    if (source !== undefined) entry.source = source;
    return Object.freeze(entry);
  }

  decoded(stored: Json): M {
    const { decode } = this.#dialect;
    if (!decode) return this.#frozen(stored as M);
    const message = decode(stored);
    this.#mayHoldBytes ||= (message as unknown) !== stored;
    return this.#frozen(message);
  }

  /** What was read from the journal is checked in the same pass; what was just recorded, when it is needed. */
  #frozen(message: M): M {
    if (!this.#isWellFormed) return deepFreeze(message);
    if (Object.isFrozen(message)) this.#unread.push(message);
    else this.#isWellFormed = freezeWellFormed(message);
    return message;
  }

  /** A late result is hidden from the model. Other text in the same message is not. */
  #isLate(message: M, results: readonly FoundResult[]): boolean {
    return this.exchange.isLate(results) && this.#dialect.text(message).trim() === "";
  }

  #insert(item: Item<M>, at: number): void {
    this.items.splice(at, 0, item);
    this.#byId.add(item);
    this.#reindex(at);
  }

  /**
   * Adds an item that continues a regular conversation, as nearly all do. It answers open calls or none, so the
   * exchange need not be told before somebody asks for it; of a long journal it is then told the last exchange alone.
   * False: not regular, nothing was added.
   */
  #pushRegular(item: Item<M>): boolean {
    const items = this.#items;
    const known = items.length === 0 ? this.#regularity() : this.#regular;
    if (!known?.order || known.count !== items.length || !isShown(item)) return false;
    this.#passNext(known, item);
    if (!known.order) return false;
    this.#untoldFrom ??= items.length;
    this.#answer = null;
    items.push(item);
    this.#byId.add(item);
    return true;
  }

  #tell(): void {
    const items = this.#items;
    const from = this.#untoldFrom;
    if (from === null) return;
    this.#untoldFrom = null;
    // Back to the start of the last exchange.
    let begins = -1;
    let at = items.length - 1;
    for (; at >= from; at--) {
      const { role } = items[at]!;
      if (role === "assistant") begins = at;
      else if (begins >= 0 && closesExchange(role, this.#dialect.interleaved === true)) break;
    }
    const isAnother = begins > from && (at >= from || this.#exchange.isClosed);
    if (isAnother) this.#exchange.passOver(items.slice(from, begins));
    for (let next = isAnother ? begins : from; next < items.length; next++) this.#exchange.add(items[next]!);
  }

  #push(item: Item<M>, results?: readonly FoundResult[]): void {
    this.#answer = null;
    const { exchange } = this;
    this.#items.push(item);
    this.#byId.add(item);
    const replaced = exchange.add(item, results);
    for (let i = 0; i < replaced.length; i++) this.#remove(replaced[i]!);
  }

  #remove(item: Item<M>): void {
    this.#gone.add(item);
    this.#byId.remove(item);
  }

  /** They are near the end, so only that part is scanned. */
  #takeOut(): void {
    const items = this.#items;
    let to = items.length;
    for (let left = this.#gone.size; left > 0 && to > 0; ) if (this.#gone.has(items[--to]!)) left -= 1;
    for (let from = to; from < items.length; from++) if (!this.#gone.has(items[from]!)) items[to++] = items[from]!;
    items.length = to;
    this.#gone.clear();
    this.#regular = null;
  }

  /** What is shown has changed from this index on. */
  #reindex(from: number): void {
    this.#staleFrom = Math.min(this.#staleFrom, from);
    this.#regular = null;
  }

  /** Recomputes the live end: from its own start, if nothing before that changed. */
  #findExchange(): void {
    const { items } = this;
    const [first] = this.#exchange.items;
    const begins = first === undefined ? -1 : items.lastIndexOf(first);
    const isKept = begins >= 0 && begins < this.#staleFrom;
    this.#staleFrom = Number.POSITIVE_INFINITY;
    if (isKept) this.#exchange.clear();
    else this.#exchange = new Exchange(this.#again ?? this.#dialect);
    for (let at = isKept ? begins : 0; at < items.length; at++) this.#exchange.add(items[at]!);
  }

  #resultOf(record: records.ToolEnded, call: { id: string; name: string } | undefined): M | null {
    if (record.shown !== undefined) return this.decoded(record.shown);
    const outcome: Outcome = record.error === undefined ? { value: record.value } : { error: record.error };
    const message = this.#dialect.result(call ?? { id: record.call, name: record.name }, outcome);
    return message === null ? null : this.#frozen(message);
  }

  /** Applies patches that arrived before their message (C31). */
  #patched(id: string, given: Metadata): Metadata {
    let metadata = given;
    if (this.#earlyPatches.size > 0) {
      for (const early of this.#earlyPatches.get(id) ?? []) metadata = mergePatch(metadata, early);
    }
    return metadata === EMPTY ? EMPTY : deepFreeze(metadata);
  }

  #itemOf(entry: Entry<M>, from: Item<M>["from"], flags: { hidden?: true; redacted?: true; carried?: true }): Item<M> {
    const isToBe = entry.metadata.hiddenFromModel === true;
    const isAtOnce = isToBe && !(flags.carried && this.#isPending);
    const isMessage = from === "message";
    const hidden = flags.hidden === true || (isMessage && (isAtOnce || this.#joinsHidden(entry.step)));
    if (hidden && isMessage) this.#hideStep(entry.step);
    // Takes effect at the next turn: until then, results (which go with their calls) and messages that the epoch shows
    // stay visible.
    if (isToBe && !hidden) this.changed.note();
    const role = this.#dialect.role(entry.message);
    return { entry, from, role, hidden, redacted: flags.redacted === true };
  }

  /** A step is hidden as a whole, and arrives as a whole (R3). */
  #joinsHidden(step: string): boolean {
    const before = this.#items.at(-1);
    return before?.hidden === true && before.entry.step === step;
  }

  #hideStep(step: string): void {
    const { items } = this;
    for (let at = items.length - 1; at >= 0 && items[at]!.entry.step === step; at--) {
      if (!items[at]!.hidden) this.#reindex(at);
      items[at]!.hidden = true;
    }
  }
}
