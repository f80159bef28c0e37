import type { Memory } from "holdfast/internal";
import type { JournalAppended as Appended, Journal } from "holdfast/store";
import type { OpenInMemory } from "../memory-subject.ts";
import { type BrokenStore, journals, perMemory, records, stores } from "./wrap.ts";

/** Forgets keys to which `name` gives another name. */
function renamed(name: (key: string, journal: Journal, memory: Memory) => string): OpenInMemory {
  const renaming = journals((journal, memory) => ({
    append(unit, options = {}) {
      if (options.key === undefined) return journal.append(unit, options);
      return journal.append(unit, { ...options, key: `${name(options.key, journal, memory)}/${options.key}` });
    },
  }));
  return records((record) => {
    const { key } = record;
    return key === undefined ? record : { ...record, key: key.slice(key.indexOf("/") + 1) };
  }, renaming);
}

let counter = 0;
const numbers = new WeakMap<Journal, number>();
const inFlight = new WeakMap<Journal, Set<string>>();
const killed = perMemory(() => new Map<string, number>());
const everywhere = perMemory(() => new Map<string, Appended>());

function numberOf(journal: Journal): number {
  const found = numbers.get(journal) ?? ++counter;
  numbers.set(journal, found);
  return found;
}

/** Faults in idempotency. */
export const brokenKeys: readonly BrokenStore[] = [
  { name: "ignores keys", open: renamed(() => `${++counter}`) },
  { name: "forgets keys when it is opened again", open: renamed((_, journal) => `${numberOf(journal)}`) },
  {
    name: "forgets keys at an epoch",
    open: renamed((_, journal, memory) => `${memory.sessions.get(journal.id)?.segments.length}`),
  },
  {
    name: "forgets keys when its writer is killed",
    open: stores(
      (store, memory) => ({
        async open(id, options) {
          const opened = await store.open(id, options);
          if (opened.recovery.unclean) killed(memory).set(id, ++counter);
          return opened;
        },
      }),
      renamed((_, journal, memory) => `${killed(memory).get(journal.id) ?? 0}`),
    ),
  },
  {
    name: "learns a key when its append is acknowledged",
    open: journals((journal) => ({
      async append(unit, options = {}) {
        const { key } = options;
        if (key === undefined) return journal.append(unit, options);
        const flying = inFlight.get(journal) ?? new Set();
        inFlight.set(journal, flying);
        if (flying.has(key)) return journal.append(unit, { ...options, key: `${key}${++counter}` });
        flying.add(key);
        return journal.append(unit, options).finally(() => flying.delete(key));
      },
    })),
  },
  {
    name: "answers a repeated key at once, whatever durability it asks for",
    open: journals((journal) => {
      const answers = new Map<string, Promise<Appended>>();
      return {
        append(unit, options = {}) {
          const { key } = options;
          if (key === undefined) return journal.append(unit, options);
          const known = answers.get(key);
          if (known) return known;
          const appended = journal.append(unit, options);
          answers.set(key, appended);
          appended.catch(() => answers.delete(key));
          return appended;
        },
      };
    }),
  },
  {
    name: "takes the key of a refused append",
    open: journals((journal) => {
      const taken = new Map<string, Appended>();
      return {
        async append(unit, options = {}) {
          const found = options.key === undefined ? undefined : taken.get(options.key);
          if (found) return found;
          return journal.append(unit, options).catch((error: unknown) => {
            if (options.key !== undefined) taken.set(options.key, { seq: journal.head + 1, last: journal.head + 1 });
            throw error;
          });
        },
      };
    }),
  },
  {
    name: "has the keys of all sessions in one place",
    open: journals((journal, memory) => ({
      async append(unit, options = {}) {
        const found = options.key === undefined ? undefined : everywhere(memory).get(options.key);
        if (found) return found;
        const appended = await journal.append(unit, options);
        if (options.key !== undefined) everywhere(memory).set(options.key, appended);
        return appended;
      },
    })),
  },
  {
    name: "takes keys that differ in case for the same",
    open: journals((journal) => ({
      append: (unit, options = {}) =>
        journal.append(unit, options.key === undefined ? options : { ...options, key: options.key.toLowerCase() }),
    })),
  },
];
