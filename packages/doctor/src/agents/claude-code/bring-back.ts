import { type Fields, fieldsOf, listIn, textIn } from "../../contract/shapes.ts";
import type { Entry, LineEntries } from "../../mend/entries.ts";
import type { Forks } from "./forks.ts";

/** Brings back what stands in a copy of the session: records that are gone, in their places, and the end of a file. */
export function bringBack(lines: LineEntries, forks: Forks): void {
  const ids = new Set(lines.living.map(({ id }) => id));
  const lost = new Map<string, Fields>();
  const add = (values: readonly Fields[]): void => {
    for (const value of values) lost.set(String(value["uuid"]), value);
    for (const value of values) ids.add(String(value["uuid"]));
  };
  const results = new Set(lines.living.flatMap((entry) => entry.results));
  const last = lines.living.findLast(({ id, thread }) => id !== null && thread === "main");
  if (!last) add(forks.whole);
  for (const entry of lines.living) {
    if (entry.state === "partial") {
      const whole = wholeOf(fieldsIn(lines, entry), forks, ids);
      if (whole === null) continue;
      add([...ancestors(textIn(whole["parentUuid"]), forks, ids), whole]);
      entry.replacement = null;
      entry.why = "removes half of a record that a copy of the session has whole";
    } else if (entry.parent !== null && !ids.has(entry.parent)) add(ancestors(entry.parent, forks, ids));
  }
  if (last && isEndDamaged(lines, last)) add(descendants(last.id!, forks, ids));
  // Of calls that run at once, nothing hangs on the results of all but one.
  const calls = [
    ...lines.living.flatMap((entry) => entry.calls.map(({ id }) => id)),
    ...[...lost.values()].flatMap(callsIn),
  ];
  for (const call of calls) {
    const value = results.has(call) ? null : forks.result(call);
    if (value !== null && !ids.has(String(value["uuid"])) && ids.has(textIn(value["parentUuid"]))) add([value]);
  }
  place(lines, forks, forks.inOrder(lost));
}

/** Puts each record behind the one that stands before it in the copy. */
function place(lines: LineEntries, forks: Forks, records: readonly Fields[]): void {
  const anchors = new Map(lines.living.map((entry) => [entry.id, entry]));
  const behind = new Map<Entry, Entry[]>();
  const first: Entry[] = [];
  for (const value of records) {
    const uuid = String(value["uuid"]);
    let previous = forks.previous(uuid);
    while (previous !== null && !anchors.has(previous)) previous = forks.previous(previous);
    const anchor = previous === null ? undefined : anchors.get(previous);
    const made = lines.made(value, "main", "brought back", "brings back a record from a copy of the session");
    if (anchor) {
      anchors.set(uuid, anchor);
      behind.set(anchor, [...(behind.get(anchor) ?? []), made]);
    } else first.push(made);
  }
  lines.insert("behind", behind);
  const beginning = lines.entries.findIndex(({ id, place }) => place !== null && id !== null);
  lines.entries.splice(beginning < 0 ? lines.entries.length : beginning, 0, ...first);
}

const fieldsIn = (lines: LineEntries, entry: Entry): Fields => fieldsOf(lines.valueOf(entry));

function callsIn(value: Fields): string[] {
  const blocks = listIn(fieldsOf(value["message"])["content"]).map(fieldsOf);
  return blocks.flatMap(({ type, id }) => (type === "tool_use" && typeof id === "string" ? [id] : []));
}

/** The whole of half a record: the one with its id, or the only one that follows the same record and is gone. */
function wholeOf(half: Fields, forks: Forks, ids: ReadonlySet<string | null>): Fields | null {
  const id = textIn(half["uuid"]);
  if (id !== null) return forks.record(id);
  const { type } = half;
  const lost = forks
    .children(textIn(half["parentUuid"]))
    .filter((value) => !ids.has(String(value["uuid"])) && (type === undefined || value["type"] === type));
  return lost.length === 1 ? lost[0]! : null;
}

/** The record and those before it, as far as they are gone here and stand in the copy; the oldest first. */
function ancestors(uuid: string | null, forks: Forks, ids: ReadonlySet<string | null>): Fields[] {
  const found: Fields[] = [];
  const seen = new Set<string>();
  for (let next = uuid; next !== null && !ids.has(next) && !seen.has(next); ) {
    seen.add(next);
    const value = forks.record(next);
    if (value === null) break;
    found.unshift(value);
    next = textIn(value["parentUuid"]);
  }
  return found;
}

/** What follows the record in the copy and is gone here, in its order. */
function descendants(uuid: string, forks: Forks, ids: ReadonlySet<string | null>): Fields[] {
  const found = new Map<string, Fields>();
  const open = [uuid];
  for (let at = 0; at < open.length; at++)
    for (const value of forks.children(open[at]!)) {
      const id = String(value["uuid"]);
      if (ids.has(id) || found.has(id)) continue;
      found.set(id, value);
      open.push(id);
    }
  return [...found.values()];
}

/** Whether the file has something behind its last record that cannot be read. */
function isEndDamaged({ entries }: LineEntries, last: Entry): boolean {
  return entries
    .slice(entries.indexOf(last) + 1)
    .some(({ state, place }) => place !== null && (state === "partial" || state === "unreadable"));
}
