import { type Fields, fieldsOf } from "../../contract/shapes.ts";
import { type Entry, type LineEntries, madeUuid } from "../../mend/entries.ts";

/**
 * Gives a record an id of its own that has that of an earlier one: the id that the record behind it misses, or a new
 * one, which those that follow it then name.
 */
export function separateIds(lines: LineEntries): void {
  const entries = lines.living.filter(({ id }) => id !== null);
  const ids = new Set(entries.map(({ id }) => id));
  if (ids.size === entries.length) return;
  const children = Map.groupBy(entries, ({ parent }) => parent);
  const next = nextInThread(entries);
  const positions = new Map(entries.map((entry, index) => [entry, index]));
  const owners = new Map<string, Entry>();
  for (const entry of entries) {
    const id = entry.id!;
    const owner = owners.get(id);
    if (!owner) {
      owners.set(id, entry);
      continue;
    }
    const missed = next.get(entry)?.parent ?? null;
    const isMissed = missed !== null && !ids.has(missed);
    const own = isMissed ? missed : madeUuid("doubled", id, JSON.stringify(lines.valueOf(entry)));
    const grade = isMissed ? "brought back" : "rebuilt";
    replace(lines, entry, { uuid: own }, grade, "gives a record its own id");
    entry.id = own;
    ids.add(own);
    owners.set(own, entry);
    if (isMissed) continue;
    for (const child of children.get(id) ?? []) {
      // A result hangs on its call.
      const isOfOwner = child.results.some((call) => owner.calls.some((each) => each.id === call));
      if (isOfOwner || child.parent !== id || positions.get(child)! <= positions.get(entry)!) continue;
      replace(lines, child, { parentUuid: own }, "rebuilt", "names the id of the record before it");
      child.parent = own;
    }
  }
}

function nextInThread(entries: readonly Entry[]): ReadonlyMap<Entry, Entry> {
  const next = new Map<Entry, Entry>();
  const last = new Map<string, Entry>();
  for (const entry of entries) {
    const before = last.get(entry.thread);
    if (before) next.set(before, entry);
    last.set(entry.thread, entry);
  }
  return next;
}

function replace(lines: LineEntries, entry: Entry, change: Fields, grade: "rebuilt" | "brought back", why: string) {
  entry.replacement = { value: { ...fieldsOf(lines.valueOf(entry)), ...change }, grade, why };
}
