import type { Store } from "holdfast";
import { type JournalStore, type JournalStoreOptions, openStoreWith } from "holdfast/store";

/** Journals to write state into, and the store above them, which puts what lists and searches need into each row. */
export async function openStores(
  open: (options: JournalStoreOptions) => Promise<JournalStore>,
  app: string,
  durability: "power" | "process" | undefined,
): Promise<{ readonly store: Store; readonly journals: JournalStore }> {
  let journals: JournalStore | undefined;
  const store = await openStoreWith(
    async (given) => {
      journals = await open(given);
      return journals;
    },
    { app, ...(durability ? { durability } : {}) },
  );
  return { store, journals: journals! };
}
