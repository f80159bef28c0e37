import type { Entry, Interruption, Reading } from "holdfast";
import { Calls, isOver, type Now, OpenOnes, stateOf } from "./calls.ts";
import { type Bare, type EntryMessage, entryItems, type MadeCalls } from "./entry-items.ts";
import type { Item } from "./item.ts";
import { saidIn } from "./said.ts";
import { shapeOf } from "./shape.ts";

export type { Now } from "./calls.ts";

export type Readable = Pick<Reading<unknown>, "entries" | "interruption" | "attributes">;

/**
 * A conversation as people read it. Pure and total. Items are cached with their entries: after one more record, all
 * others are the same objects, and only an identity check each.
 *
 * Entries hidden from the user are left out; those the model does not see are included and marked (`aside`). Results
 * are shown with their calls. Text that was streaming when the process died comes last, as incomplete.
 */
export function itemsOf({ entries, interruption, attributes }: Readable, now: Now = {}): Item[] {
  const [first] = entries;
  const items = first ? knownFor(first, entries, attributes.dialect).items(entries, interruption, now) : [];
  if (interruption) items.push(...unfinishedItems(interruption, entries));
  return items;
}

const known = new WeakMap<Entry<unknown>, Transcript>();

function knownFor(first: Entry<unknown>, entries: readonly Entry<unknown>[], dialect: string): Transcript {
  const before = known.get(first);
  if (before?.fits(entries, dialect)) return before;
  const transcript = new Transcript(dialect);
  known.set(first, transcript);
  return transcript;
}

/**
 * The items of the entries so far. Extended while entries are only appended, as is usual; otherwise rebuilt from the
 * cached items.
 */
class Transcript {
  readonly #dialect: string;
  readonly #shown: EntryMessage[] = [];
  readonly #calls = new Calls();
  /** The start of each group of entries that are shown as one. */
  readonly #starts: number[] = [];
  readonly #items: (readonly Item[])[] = [];
  /** By entry, the positions of those that make calls. */
  readonly #places = new Map<string, number>();
  /** Those whose calls can change without a new record. */
  readonly #unsettled = new Set<number>();

  constructor(dialect: string) {
    this.#dialect = dialect;
  }

  fits(entries: readonly Entry<unknown>[], dialect: string): boolean {
    if (dialect !== this.#dialect || entries.length < this.#shown.length) return false;
    return this.#shown.every(({ entry }, index) => entry === entries[index]);
  }

  items(entries: readonly Entry<unknown>[], interruption: Interruption<unknown> | null, now: Now): Item[] {
    const changed = this.#add(entries);
    for (const place of this.#unsettled) changed.add(place);
    if (now.children) for (const place of this.#places.values()) changed.add(place);
    const open = new OpenOnes(interruption);
    const lastTurn = entries.at(-1)!.turn;
    for (const place of changed) this.#make(place, open, interruption === null ? lastTurn : null, now);
    return this.#items.flat();
  }

  /** Returns the positions that may have changed. */
  #add(entries: readonly Entry<unknown>[]): Set<number> {
    const changed = new Set<number>();
    const before = this.#shown.length;
    for (let at = before; at < entries.length; at++) {
      const entry = entries[at]!;
      const said = saidIn(entry.message, this.#dialect);
      this.#shown.push({ entry, said });
      if (!said.isTraffic) continue;
      for (const touched of this.#calls.add(entry, said)) {
        const place = this.#places.get(touched);
        if (place !== undefined) changed.add(place);
      }
    }
    if (before === entries.length) return changed;
    // The last message may have more chunks now.
    let at = this.#dialect === "acp" ? (this.#starts.pop() ?? 0) : before;
    while (at < entries.length) {
      const place = this.#starts.push(at) - 1;
      const { entry, said } = this.#shown[at]!;
      if (said.isTraffic) this.#places.set(entry.id, place);
      changed.add(place);
      at += this.#dialect === "acp" ? chunksFrom(this.#shown, at) : 1;
    }
    return changed;
  }

  /** `liveTurn`: the turn whose calls may still be running. */
  #make(place: number, open: OpenOnes, liveTurn: number | null, now: Now): void {
    const group = this.#shown.slice(this.#starts[place], this.#starts[place + 1] ?? this.#shown.length);
    const { entry, said } = group[0]!;
    this.#unsettled.delete(place);
    if (entry.metadata.hiddenFromUser === true) {
      this.#items[place] = [];
      return;
    }
    const facts: unknown[] = [this.#dialect];
    if (group.length > 1) for (const one of group) facts.push(one.entry);
    const found = said.isTraffic ? (this.#calls.byEntry.get(entry.id) ?? []) : [];
    const orphans = said.isTraffic ? (this.#calls.orphans.get(entry.id) ?? []) : [];
    const calls: MadeCalls["calls"][number][] = [];
    for (const one of found) {
      const openCall = open.of(one);
      const state = stateOf(one, openCall, entry.turn === liveTurn, now);
      const child = openCall?.child ?? now.children?.get(one.part.id);
      if (!isOver(one) || child !== undefined) this.#unsettled.add(place);
      facts.push(one.answer?.entry, one.answer?.part, state, one.progress.at(-1), child);
      calls.push({ found: one, state, child });
    }
    for (const { part } of orphans) facts.push(part);
    this.#items[place] = kept(entry, facts, () => entryItems(group, { calls, orphans }));
  }
}

const cache = new WeakMap<Entry<unknown>, { readonly facts: readonly unknown[]; readonly items: readonly Item[] }>();

function kept(entry: Entry<unknown>, facts: readonly unknown[], make: () => Item[]): readonly Item[] {
  const before = cache.get(entry);
  if (before && before.facts.length === facts.length && before.facts.every((fact, index) => fact === facts[index])) {
    return before.items;
  }
  const items = make();
  cache.set(entry, { facts, items });
  return items;
}

/** ACP streams a message as chunks, each recorded separately: the number of chunks, from here on, in this message. */
function chunksFrom(shown: readonly EntryMessage[], at: number): number {
  const first = shown[at]!;
  if (!isPlainChunk(first)) return 1;
  const kind = first.said.parts[0]!.type;
  let end = at + 1;
  for (; end < shown.length; end++) {
    const { entry, said } = shown[end]!;
    if (!isPlainChunk(shown[end]!) || said.role !== first.said.role || said.parts[0]!.type !== kind) break;
    if (entry.turn !== first.entry.turn || messageId(entry) !== messageId(first.entry)) break;
  }
  return end - at;
}

function isPlainChunk({ entry, said }: EntryMessage): boolean {
  const [part] = said.parts;
  if (said.parts.length !== 1 || !part || (part.type !== "text" && part.type !== "reasoning")) return false;
  const { synthetic, replacedBy, late, metadata } = entry;
  return synthetic === undefined && replacedBy === undefined && !late && Object.keys(metadata).length === 0;
}

function messageId({ message }: Entry<unknown>): unknown {
  const shape = shapeOf(message);
  return shapeOf(shape?.["update"])?.["messageId"] ?? shape?.["messageId"];
}

/** What was in flight and is not in an entry. */
function unfinishedItems(interruption: Interruption<unknown>, entries: readonly Entry<unknown>[]): Item[] {
  const { draft, calls, lastAt: at, turn } = interruption;
  const items: Item[] = [];
  if (draft && entries.at(-1)?.id !== draft.id) {
    const bare: Bare[] = [];
    const { text, reasoning } = draft;
    if (reasoning.trim() !== "") bare.push({ kind: "reasoning", text: reasoning, incomplete: true });
    if (text.trim() !== "") bare.push({ kind: "answer", text, incomplete: true });
    for (const { id, name, input } of draft.calls) {
      const started = calls.some((call) => call.message === null && call.id === id);
      const aside = "the model was cut off while writing this call";
      if (!started) bare.push({ kind: "call", call: id, name, input, state: "not-run", aside });
    }
    for (const [index, item] of bare.entries()) {
      items.push({ id: index === 0 ? draft.id : `${draft.id}.${index}`, at, turn, ...item });
    }
  }
  for (const { id, message, name, input, startedAt, child } of calls) {
    if (message !== null) continue;
    const aside = "it was started before its call was recorded";
    items.push({
      id: `${turn}~${id}`,
      at: startedAt ?? at,
      turn,
      kind: "call",
      call: id,
      name,
      input,
      state: "unknown",
      ...(child ? { child } : {}),
      aside,
    });
  }
  return items;
}
