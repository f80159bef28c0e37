import type { JournalRecord } from "holdfast";
import { all } from "../trial.ts";
import { type BrokenStore, perMemory, records, stores } from "./wrap.ts";

const KNOWN = new Set(["segment", "opened", "closed", "epoch", "note", "title"]);

function without(record: JournalRecord, ...names: string[]): JournalRecord {
  return Object.fromEntries(Object.entries(record).filter(([name]) => !names.includes(name))) as JournalRecord;
}

/** Changes the Unicode normal form of every string in it. */
function normalised<T>(value: T): T {
  if (typeof value === "string") return value.normalize("NFC") as T;
  if (Array.isArray(value)) return value.map(normalised) as T;
  if (typeof value !== "object" || value === null) return value;
  return Object.fromEntries(Object.entries(value).map(([name, member]) => [name, normalised(member)])) as T;
}

function byClock(a: JournalRecord, b: JournalRecord): number {
  return a.at < b.at ? -1 : a.at > b.at ? 1 : a.seq - b.seq;
}

const handedOut = perMemory(() => new Map<string, JournalRecord>());

/** Records come back changed. */
export const brokenRecords: readonly BrokenStore[] = [
  { name: "leaves gaps between its seqs", open: records((record) => ({ ...record, seq: record.seq * 2 })) },
  {
    name: "uses a seq twice",
    open: records((record) => ({ ...record, seq: record.seq > 2 ? record.seq - 1 : record.seq })),
  },
  { name: "forgets kinds that it does not know", open: records((record) => (KNOWN.has(record.kind) ? record : null)) },
  { name: "changes texts into their normal form", open: records(normalised) },
  {
    name: "leaves its own members out of the records",
    open: records((record) => without(record, "unit", "key", "synced", "summary", "must")),
  },
  {
    name: "forgets members with a dollar sign",
    open: records((record) => JSON.parse(JSON.stringify(record).replaceAll("$", ""))),
  },
  {
    name: "writes the time in another form",
    open: records((record) => ({ ...record, at: record.at.replace("Z", "+00:00") })),
  },
  {
    name: "names no format in its header",
    open: records((record) => (record.kind === "segment" ? without(record, "format") : record)),
  },
  {
    name: "numbers every segment 1",
    open: records((record) => (record.kind === "segment" ? { ...record, segment: 1, epoch: 1 } : record)),
  },
  {
    name: "writes no mark into `closed`",
    open: records((record) => (record.kind === "closed" ? without(record, "synced") : record)),
  },
  {
    name: "does not say who opened the journal",
    open: records((record) => (record.kind === "opened" ? without(record, "writer") : record)),
  },
  {
    name: "hands out the same object to everybody",
    open: async (memory, options) => {
      const kept = handedOut(memory);
      const share = (record: JournalRecord) => {
        const key = `${record.seq}-${record.crc}`;
        const found = kept.get(key) ?? record;
        kept.set(key, found);
        return found;
      };
      return records(share)(memory, options);
    },
  },
  {
    name: "orders records by the clock",
    open: stores((store) => ({
      async *history(...args) {
        yield* (await all(store.history(...args))).sort(byClock);
      },
      async read(id) {
        const snapshot = await store.read(id);
        return { ...snapshot, records: [...snapshot.records].sort(byClock) };
      },
    })),
  },
];
