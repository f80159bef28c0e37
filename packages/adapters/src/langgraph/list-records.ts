import type { ListPart, ListRecord, StoredValue } from "./records.ts";

/** New items of one record, in characters of JSON: far below what a record may hold. */
const ITEMS_CHARS_MAX = 4 * 1024 * 1024;

export interface NewItem {
  readonly value: StoredValue;
  /** Where a list has the same item: it is copied from there. */
  readonly place: readonly [list: number, index: number] | null;
}

/** The records that add items to a list of the given length. A list that begins has a record even if it is empty. */
export function listRecords(list: number, length: number, items: readonly NewItem[]): ListRecord[] {
  const records: ListRecord[] = [];
  let parts: ([number, number, number] | { items: StoredValue[] })[] = [];
  let from = length;
  let count = 0;
  let chars = 0;
  const flush = (): void => {
    records.push({ kind: "graph.list", list, length: from, parts: parts satisfies ListPart[] });
    from += count;
    [parts, count, chars] = [[], 0, 0];
  };
  for (const { value, place } of items) {
    const last = parts.at(-1);
    if (place) {
      const [source, index] = place;
      if (Array.isArray(last) && last[0] === source && last[1] + last[2] === index) last[2]++;
      else parts.push([source, index, 1]);
    } else {
      if (last && "items" in last) last.items.push(value);
      else parts.push({ items: [value] });
      chars += JSON.stringify(value).length;
    }
    count++;
    if (chars > ITEMS_CHARS_MAX) flush();
  }
  if (count > 0 || (records.length === 0 && length === 0)) flush();
  return records;
}
