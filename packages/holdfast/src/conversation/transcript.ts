import type { Dialect, Entry, Metadata, Outcome } from "../dialects/dialect.ts";
import type { Json } from "../journal/record.ts";
import { isWellFormed } from "../text/well-formed.ts";
import { Exchange } from "./exchange.ts";
import type { Item } from "./item.ts";
import { remembering } from "./memoized-dialect.ts";
import { mergePatch } from "./merge-patch.ts";
import { PendingEdits } from "./pending-edits.ts";
import type * as records from "./records.ts";
import { SYNCED } from "./records.ts";
import { deepFreeze } from "./snapshot.ts";

type Stamped<R> = R & { readonly seq: number; readonly at: string };
type Made<M> = { -readonly [K in keyof Entry<M>]: Entry<M>[K] };

const EMPTY: Metadata = Object.freeze({});

/** What was said in this epoch, in order, and the live end of it. */
export class Transcript<M> {
  readonly changed: PendingEdits<M>;
  readonly #dialect: Dialect<M>;
  readonly #items: Item<M>[] = [];
  /** Items whose place another has taken, and that still stand in the list: taken out when somebody looks. */
  readonly #gone = new Set<Item<M>>();
  readonly #byId = new Map<string, Item<M>>();
  readonly #earlyPatches = new Map<string, Metadata[]>();
  /** Messages whose texts nobody has looked at yet. */
  #unread: M[] = [];
  #isWellFormed = true;
  /** What the epoch brought along is shown as it says, not as its metadata does. */
  readonly #isPending: boolean;
  /** For what goes through everything again; null until something has changed the past. */
  #again: Dialect<M> | null = null;
  #exchange: Exchange<M>;
  /** From this place on the live end is to be found again, when somebody asks for it. */
  #staleFrom = Number.POSITIVE_INFINITY;
  /** Where the next answer is to stand, if not at the end; which step that is, its first message says. */
  #answer: { at: number; step: string | null } | null = null;

  constructor(dialect: Dialect<M>, saved: Pick<records.Checkpoint, "changed" | "pending"> = {}) {
    this.#dialect = dialect;
    this.changed = new PendingEdits(saved);
    this.#isPending = saved.pending === true;
    this.#exchange = new Exchange(dialect);
  }

  get items(): Item<M>[] {
    if (this.#gone.size > 0) this.#takeOut();
    return this.#items;
  }

  get exchange(): Exchange<M> {
    if (this.#staleFrom < Number.POSITIVE_INFINITY) this.#findExchange();
    return this.#exchange;
  }

  /** Whether all of it can be sent as it is. Each message is looked at once, and not before somebody asks. */
  get isWellFormed(): boolean {
    for (let i = 0; i < this.#unread.length && this.#isWellFormed; i++) {
      this.#isWellFormed = isWellFormed(this.#unread[i]);
    }
    this.#unread = [];
    return this.#isWellFormed;
  }

  find(id: string): Item<M> | null {
    return this.#byId.get(id) ?? null;
  }

  /** Null if it is there already. */
  message(record: Stamped<records.MessageRecord>): Item<M> | null {
    if (this.#byId.has(record.id)) return null;
    const item = this.#itemOf(this.entryOf(record), "message", record);
    if (item.role !== "assistant" && item.entry.late !== true && this.#isLate(item)) {
      item.entry = Object.freeze({ ...item.entry, late: true as const });
    }
    const at = item.role === "assistant" ? this.#placeOf(item.entry) : null;
    if (at === null) this.#push(item);
    else this.#insert(item, at);
    return item;
  }

  /** Null: at the end. The items of a response stand together: results of its first ones may have come between them (R3, R9). */
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

  /** The result of a tool that no message holds. False if it cannot be phrased (R8), or is there already. */
  result(record: Stamped<records.ToolEnded>, place: { message: string; index: number } | null): boolean {
    if (this.#byId.has(record.id)) return false;
    const at = place && this.exchange.at(place.message, place.index);
    // The provider's calls are not ours to answer (R8).
    const found = at?.call.by === "agent" ? at : null;
    const message = this.#resultOf(record, found?.call);
    if (message === null) return false;
    // The message that holds the result came first.
    if (found?.answer?.from === "message") return true;
    const { id, seq, turn } = record;
    const entry: Made<M> = { id, seq, at: record.at, turn, step: id, message, metadata: this.#patched(id, EMPTY) };
    if (place) entry.call = Object.freeze(place);
    if (record.shown !== undefined && record.value !== undefined) entry.value = deepFreeze(record.value);
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
      const entry: Made<M> = { id, seq, at, turn, step: id, message, metadata, synthetic };
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

  /** Takes out what others said since, and marks results of that time as late. */
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

  /** Null if that repair is there already. An application may have given the id to something else: the call is to be closed all the same. */
  #freeId(wanted: string, call: Entry<M>["call"]): string | null {
    let id = wanted;
    for (let item = this.#byId.get(id); item; item = this.#byId.get(id)) {
      const { synthetic, call: known } = item.entry;
      const isSame = known?.message === call?.message && known?.index === call?.index;
      const isOpen = call !== undefined && this.exchange.at(call.message, call.index)?.answer === null;
      if (synthetic !== undefined && isSame && !isOpen) return null;
      id += "~";
    }
    return id;
  }

  /** The entry as it is now; null if it is not there yet. */
  patch({ id, metadata }: records.PatchRecord): Entry<M> | null {
    const item = this.#byId.get(id);
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
    const replaced = new Set(ids.flatMap((one) => this.#byId.get(one) ?? []));
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
      this.#byId.set(one.id, item);
    }
    const replacedBy = items[0]?.entry.id ?? id;
    for (const item of replaced) {
      item.entry = Object.freeze({ ...item.entry, replacedBy });
      if (reason === SYNCED) item.superseded = true;
    }
    this.items.splice(place, 0, ...items);
    this.changed.note();
    if (now) this.settle();
  }

  /** Puts in force what is to be hidden, shown or replaced. */
  settle(): void {
    if (!this.changed.isPending) return;
    this.#again ??= remembering(this.#dialect);
    if (this.changed.settle(this.items, this.#again)) this.#reindex(0);
  }

  entryOf(record: Omit<Stamped<records.MessageRecord>, "kind">): Entry<M> {
    const { id, seq, turn, step, model, synthetic, incomplete, late, replacedBy, call, value } = record;
    const message = this.decoded(record.message);
    const metadata = this.#patched(id, record.metadata ?? EMPTY);
    const entry: Made<M> = { id, seq, at: record.first ?? record.at, turn, step, message, metadata };
    if (model !== undefined) entry.model = model;
    if (synthetic !== undefined) entry.synthetic = synthetic;
    if (incomplete) entry.incomplete = true;
    if (late) entry.late = true;
    if (replacedBy !== undefined) entry.replacedBy = replacedBy;
    if (call) entry.call = Object.freeze(call);
    if (value !== undefined) entry.value = deepFreeze(value);
    return Object.freeze(entry);
  }

  decoded(stored: Json): M {
    const { decode } = this.#dialect;
    return deepFreeze(decode ? decode(stored) : (stored as M));
  }

  /** A result that comes too late is kept from the model. What somebody says beside it is not. */
  #isLate({ entry: { message }, role }: Item<M>): boolean {
    if (role !== "tool" || !this.exchange.isLate(this.#dialect.results(message))) return false;
    return this.#dialect.text(message).trim() === "";
  }

  #insert(item: Item<M>, at: number): void {
    this.items.splice(at, 0, item);
    this.#byId.set(item.entry.id, item);
    this.#reindex(at);
  }

  #push(item: Item<M>): void {
    this.#answer = null;
    const { exchange } = this;
    this.#items.push(item);
    this.#byId.set(item.entry.id, item);
    const replaced = exchange.add(item);
    for (let i = 0; i < replaced.length; i++) this.#remove(replaced[i]!);
  }

  #remove(item: Item<M>): void {
    this.#gone.add(item);
    this.#byId.delete(item.entry.id);
  }

  /** They stand near the end: no more is looked at than from there on. */
  #takeOut(): void {
    const items = this.#items;
    let to = items.length;
    for (let left = this.#gone.size; left > 0 && to > 0; ) if (this.#gone.has(items[--to]!)) left -= 1;
    for (let from = to; from < items.length; from++) if (!this.#gone.has(items[from]!)) items[to++] = items[from]!;
    items.length = to;
    this.#gone.clear();
  }

  /** From this place on, what is shown has changed. */
  #reindex(from: number): void {
    this.#staleFrom = Math.min(this.#staleFrom, from);
  }

  /** The live end is found again: from its own beginning, if nothing has changed before that. */
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
    return message === null ? null : deepFreeze(message);
  }

  /** Changes that came before the message that they are for (C31). */
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
    // From the next turn on: a result, which goes together with its call, and what an epoch says is still shown.
    if (isToBe && !hidden) this.changed.note();
    const role = this.#dialect.role(entry.message);
    if (this.#isWellFormed) this.#unread.push(entry.message);
    return { entry, from, role, hidden, redacted: flags.redacted === true };
  }

  /** A step is hidden as a whole, and comes as a whole (R3). */
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
