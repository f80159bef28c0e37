import { join } from "node:path";
import { openFolderStore } from "holdfast/internal";
import type { Journal, JournalStore } from "holdfast/store";
import type { StoreModule } from "../../../src/kill/stores.ts";

const DROPPED = 3;

/** A store that acknowledges the third append of each writer and forgets it. */
export const openStore: StoreModule["openStore"] = async (place, options) => {
  const store = await openFolderStore(join(place, "store"), options);
  return overriding(store, {
    create: async (...args: Parameters<JournalStore["create"]>) => forgetful(await store.create(...args)),
    open: async (...args: Parameters<JournalStore["open"]>) => {
      const opened = await store.open(...args);
      return { ...opened, journal: forgetful(opened.journal) };
    },
  });
};

function forgetful(journal: Journal): Journal {
  let appends = 0;
  const append: Journal["append"] = async (records, options) => {
    if (++appends !== DROPPED) return journal.append(records, options);
    return { seq: journal.head + 1, last: journal.head + (Array.isArray(records) ? records.length : 1) };
  };
  return overriding(journal, { append });
}

/** The same object with some of its methods replaced; the rest keep their private state. */
function overriding<T extends object>(target: T, methods: Partial<T>): T {
  const copy = {} as T;
  for (const name of membersOf(target)) {
    const get = (): unknown => {
      const value = methods[name as keyof T] ?? Reflect.get(target, name, target);
      // Not `bind`: V8 takes a bound function for no function in `await using`.
      return typeof value === "function" ? (...args: unknown[]) => Reflect.apply(value, target, args) : value;
    };
    Object.defineProperty(copy, name, { get, configurable: true });
  }
  return copy;
}

function membersOf(target: object): Set<string | symbol> {
  const names = new Set<string | symbol>();
  for (let at = target; at !== Object.prototype; at = Object.getPrototypeOf(at)) {
    for (const name of Reflect.ownKeys(at)) names.add(name);
  }
  return names;
}
