import { setImmediate as turn } from "node:timers/promises";
import { isHoldfastError } from "holdfast";
import type { Journal, NewRecord } from "holdfast/store";
import { later } from "../trial.ts";
import { type BrokenStore, journals, open, stores } from "./wrap.ts";

type Appending = Parameters<Journal["append"]>[0];

function unitOf(records: Appending): readonly NewRecord[] {
  return Array.isArray(records) ? (records as readonly NewRecord[]) : [records as NewRecord];
}

/** The output of a careless encoder. */
function sloppy(records: Appending): NewRecord[] {
  const seen = new Set<unknown>();
  const text = JSON.stringify(unitOf(records), (_, value: unknown) => {
    if (typeof value === "bigint") return String(value);
    if (typeof value !== "object" || value === null) return value;
    if (seen.has(value)) return null;
    seen.add(value);
    return value;
  });
  return JSON.parse(text) as NewRecord[];
}

function shortened(records: Appending): NewRecord[] {
  return unitOf(records).map((record) => {
    const text = record["text"];
    return typeof text === "string" ? { ...record, text: text.slice(0, 1_000_000) } : record;
  });
}

/** Faults in appending. */
export const brokenWriting: readonly BrokenStore[] = [
  {
    name: "loses its last records at close",
    open: journals((journal, memory) => ({
      async close() {
        await journal.close();
        const session = memory.sessions.get(journal.id);
        if (session && session.lines.length > 3) session.lines.length -= 2;
      },
    })),
  },
  {
    name: "writes some time after the call",
    open: journals((journal) => ({
      async append(...args) {
        await turn();
        return journal.append(...args);
      },
    })),
  },
  {
    name: "writes a unit piece by piece",
    open: journals((journal) => ({
      async append(records, options) {
        const [first, ...rest] = unitOf(records);
        const { seq } = await journal.append(first!, options);
        let last = seq;
        for (const record of rest) {
          await turn();
          ({ last } = await journal.append(record));
        }
        return { seq, last };
      },
    })),
  },
  {
    name: "writes the good records of a bad unit",
    open: journals((journal) => ({
      append: (records, options) =>
        journal.append(records, options).catch(async (error: unknown) => {
          for (const record of unitOf(records)) await journal.append(record);
          throw error;
        }),
      appendSync(records, options) {
        try {
          return journal.appendSync(records, options);
        } catch (error) {
          for (const record of unitOf(records)) journal.appendSync(record);
          throw error;
        }
      },
    })),
  },
  {
    name: "writes what JSON makes of a bad record",
    open: journals((journal) => ({
      append: async (records, options) => journal.append(sloppy(records), options),
      appendSync: (records, options) => journal.appendSync(sloppy(records), options),
    })),
  },
  {
    name: "makes a record of anything",
    open: journals((journal) => ({
      append: (records, options) => {
        const made = unitOf(records).map((record) => {
          const { seq, unit, synced, ahead, at, key, summary, crc, ...members } = { ...record };
          const kind = typeof members.kind === "string" && members.kind !== "" ? members.kind : "unknown";
          return { ...members, kind };
        });
        return journal.append(made, options);
      },
    })),
  },
  {
    name: "uses up a seq for a refused record",
    open: journals((journal) => ({
      append: (...args) =>
        journal.append(...args).catch(async (error: unknown) => {
          await journal.append({ kind: "refused" });
          throw error;
        }),
    })),
  },
  {
    name: "answers a refused append as if it were written",
    open: journals((journal) => ({
      append: (...args) =>
        journal.append(...args).catch((error: unknown) => {
          if (!isHoldfastError(error, "RECORD_NOT_JSON", "RECORD_INVALID", "RECORD_TOO_LARGE")) throw error;
          return { seq: journal.head, last: journal.head };
        }),
    })),
  },
  {
    name: "answers with the seq after",
    open: journals((journal) => ({
      async append(...args) {
        const { seq, last } = await journal.append(...args);
        return { seq: seq + 1, last: last + 1 };
      },
    })),
  },
  {
    name: "appends to whichever session was opened first",
    open: async (memory, options) => {
      let first: Journal | undefined;
      const divert = journals((journal) => {
        first ??= journal;
        return { append: (...args) => first!.append(...args) };
      });
      return divert(memory, options);
    },
  },
  {
    name: "tells its head too late",
    open: journals((journal) => ({
      get head() {
        return journal.head - 1;
      },
    })),
  },
  {
    name: "acknowledges what is not durable",
    open: journals((journal) => ({
      get durable() {
        return Math.max(0, journal.durable - 1);
      },
    })),
  },
  { name: "does nothing when it is flushed", open: journals(() => ({ flush: async () => undefined, flushSync() {} })) },
  {
    name: "keeps synchronous appends for later",
    open: journals((journal) => ({
      appendSync(records, options) {
        const seq = journal.head + 1;
        queueMicrotask(() => later(journal.append(records, options)));
        return { seq, last: seq + unitOf(records).length - 1 };
      },
    })),
  },
  {
    name: "forgets the keys of synchronous appends",
    open: journals((journal) => ({ appendSync: (records) => journal.appendSync(records) })),
  },
  {
    name: "writes a record when it is opened",
    open: stores((store) => ({
      async open(id, options) {
        const opened = await store.open(id, options);
        await opened.journal.append({ kind: "looked" });
        return opened;
      },
    })),
  },
  {
    name: "writes a record of its own when it creates",
    open: stores((store) => ({
      async create(id, records, options) {
        const journal = await store.create(id, records, options);
        await journal.append({ kind: "created" });
        return journal;
      },
    })),
  },
  { name: "looks at its own clock", open: (memory, { clock: _, ...options }) => open(memory, options) },
  { name: "calls every holder by its own name", open: (memory, { app: _, ...options }) => open(memory, options) },
  {
    name: "states what it cannot do",
    open: stores((store) => ({ capabilities: { ...store.capabilities, pack: true } })),
  },
  {
    name: "shortens large texts",
    heavy: true,
    open: journals((journal) => ({ append: (records, options) => journal.append(shortened(records), options) })),
  },
  {
    name: "has synchronous appends, and says that it has not",
    capabilities: { sync: false },
    open: stores((store) => ({ capabilities: { ...store.capabilities, sync: false } })),
  },
];
