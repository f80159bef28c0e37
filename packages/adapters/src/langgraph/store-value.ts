import { type KnownItem, type KnownItems, remember } from "./capture.ts";
import { listRecords, type NewItem } from "./list-records.ts";
import type { ListRecord, StoredValue } from "./records.ts";
import { isEqual, type SerializedItem, type SerializedValue } from "./settle.ts";
import { pathOf, type ThreadState } from "./state.ts";

/** Names the place of a list in the state, given its path in the value. */
type Slot = (path: string) => string;

/** Makes the records that a value needs, and adds them to the state. */
export class ValueWriter {
  readonly #state: ThreadState;
  readonly #known: KnownItems;
  readonly records: ListRecord[] = [];

  constructor(state: ThreadState, known: KnownItems) {
    this.#state = state;
    this.#known = known;
  }

  store(settled: SerializedValue, slot: Slot | null, path = ""): StoredValue {
    if ("value" in settled) return settled.value;
    if ("items" in settled) return this.#list(settled.items, slot?.(path));
    const members = settled.members.map(
      ([name, member]) => [name, this.store(member, slot, pathOf(path, name))] as const,
    );
    return { o: Object.fromEntries(members) };
  }

  /** A list that begins like a stored one shares its items; if that one ends there, it is continued. */
  #list(settled: readonly SerializedItem[], slot: string | undefined): StoredValue {
    const items = settled.map(({ item, known, content }) => {
      const value = this.store(content, null);
      return { item, value, place: known && this.#isThere(known) ? ([known.list, known.index] as const) : null };
    });
    const first = items[0]?.place;
    const base = first?.[1] === 0 ? first[0] : slot === undefined ? undefined : this.#state.listAt(slot);
    const stored = base === undefined ? [] : (this.#state.list(base) ?? []);
    let shared = 0;
    while (shared < Math.min(items.length, stored.length) && isEqual(items[shared]!.value, stored[shared]!)) shared++;

    const isContinued = base !== undefined && shared > 0 && (shared === stored.length || shared === items.length);
    const list = isContinued ? base : this.#state.nextList;
    if (isContinued) {
      if (shared < items.length) this.#append(list, shared, items.slice(shared));
    } else {
      const copied = items.slice(0, shared).map(({ value }, index): NewItem => ({ value, place: [base!, index] }));
      this.#append(list, 0, [...copied, ...items.slice(shared)]);
    }
    const inList = this.#state.list(list)!;
    items.forEach(({ item, place }, index) => {
      if (place?.[0] === list && place[1] === index) return;
      remember(this.#known, item, { list, index, value: inList[index]! });
    });
    return { l: [list, items.length] };
  }

  /** It was stored in this very state, not in another thread or before the state was read again. */
  #isThere({ list, index, value }: KnownItem): boolean {
    return this.#state.list(list)?.[index] === value;
  }

  #append(list: number, length: number, items: readonly NewItem[]): void {
    for (const record of listRecords(list, length, items)) {
      this.#state.add(record);
      this.records.push(record);
    }
  }
}
