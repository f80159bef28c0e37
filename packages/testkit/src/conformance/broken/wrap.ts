import type { JournalRecord } from "holdfast";
import { type Memory, openMemoryStore } from "holdfast/internal";
import type { Journal, JournalStore } from "holdfast/store";
import type { OpenInMemory } from "../memory-subject.ts";
import type { SubjectCapabilities, SubjectOptions } from "../subject.ts";

/** A store that does one thing wrong. The suite is good if it catches all of them. */
export interface BrokenStore {
  /** What it does wrong. */
  readonly name: string;
  /** The capabilities it states, where they differ from a memory store's. */
  readonly capabilities?: Partial<SubjectCapabilities>;
  /** The fault shows only with large or many records. */
  readonly heavy?: true;
  readonly open: OpenInMemory;
}

export const open: OpenInMemory = (memory, options) => openMemoryStore({ memory, ...options });

/** `target`, with some members replaced. */
export function over<T extends Journal | JournalStore>(target: T, changes: Partial<T>): T {
  const changed = new Map<PropertyKey, PropertyDescriptor>();
  for (const name of Reflect.ownKeys(changes)) changed.set(name, Reflect.getOwnPropertyDescriptor(changes, name)!);
  const proxy: T = new Proxy(target, {
    get(_, name) {
      const change = changed.get(name);
      if (change) return change.get ? change.get.call(changes) : change.value;
      // `await using` must call the replaced `close`.
      if (name === Symbol.asyncDispose) return () => proxy.close();
      const value: unknown = Reflect.get(target, name, target);
      return typeof value === "function" ? value.bind(target) : value;
    },
  });
  return proxy;
}

export type ChangeStore = (store: JournalStore, memory: Memory, options: SubjectOptions) => Partial<JournalStore>;

/** Stores with some calls replaced. */
export function stores(change: ChangeStore, inner: OpenInMemory = open): OpenInMemory {
  return async (memory, options) => {
    const store = await inner(memory, options);
    return over(store, change(store, memory, options));
  };
}

export type ChangeJournal = (journal: Journal, memory: Memory) => Partial<Journal>;

/** Stores whose journals have some calls replaced. */
export function journals(change: ChangeJournal, inner: OpenInMemory = open): OpenInMemory {
  return stores((store, memory) => {
    const lent: Journal[] = [];
    const wrap = (journal: Journal): Journal => {
      const wrapped = over(journal, change(journal, memory));
      lent.push(wrapped);
      return wrapped;
    };
    return {
      create: async (...args) => wrap(await store.create(...args)),
      async open(...args) {
        const opened = await store.open(...args);
        return { ...opened, journal: wrap(opened.journal) };
      },
      async close() {
        await Promise.allSettled(lent.splice(0).map((journal) => journal.close()));
        await store.close();
      },
    };
  }, inner);
}

/** Stores that return changed records; null drops a record. */
export function records(change: (record: JournalRecord) => JournalRecord | null, inner?: OpenInMemory): OpenInMemory {
  const changeAll = (found: readonly JournalRecord[]) => found.map(change).filter((record) => record !== null);
  async function* changeEach(found: AsyncIterable<JournalRecord>) {
    for await (const record of found) {
      const changed = change(record);
      if (changed) yield changed;
    }
  }
  const inJournals = journals((journal) => ({ follow: (options) => changeEach(journal.follow(options)) }), inner);
  return stores(
    (store) => ({
      async open(...args) {
        const opened = await store.open(...args);
        return { ...opened, records: changeAll(opened.records) };
      },
      async read(id) {
        const snapshot = await store.read(id);
        return { ...snapshot, records: changeAll(snapshot.records) };
      },
      history: (...args) => changeEach(store.history(...args)),
      follow: (...args) => changeEach(store.follow(...args)),
    }),
    inJournals,
  );
}

/** Stores that return changed sequences. */
export function sequences(change: (found: AsyncIterable<JournalRecord>) => AsyncIterable<JournalRecord>): OpenInMemory {
  const inJournals = journals((journal) => ({ follow: (options) => change(journal.follow(options)) }));
  return stores((store) => ({ follow: (...args) => change(store.follow(...args)) }), inJournals);
}

/** What the wrappers of one memory share, like a file beside the journals. */
export function perMemory<T>(make: () => T): (memory: Memory) => T {
  const kept = new WeakMap<Memory, T>();
  return (memory) => {
    const found = kept.get(memory) ?? make();
    kept.set(memory, found);
    return found;
  };
}
