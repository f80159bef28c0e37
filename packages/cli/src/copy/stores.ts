import { HoldfastError, type JournalStore, openJournalStore, openStoreWith, type Store } from "holdfast";

/** A store, and the journals beneath it: sessions are named in the one, and copied line by line in the other. */
export interface OpenedStore extends AsyncDisposable {
  readonly store: Store;
  readonly journals: JournalStore;
}

export async function openBoth(address: string): Promise<OpenedStore> {
  let journals: JournalStore | null = null;
  const store = await openStoreWith(
    async (given) => {
      journals = await openJournalStore(address, given);
      return journals;
    },
    { app: "holdfast copy" },
  );
  return { store, journals: journals!, [Symbol.asyncDispose]: () => store.close() };
}

export function cannotTakeOver(url: string): HoldfastError {
  const message = `The store ${url} cannot take over sessions of another one. Nothing was touched.`;
  return new HoldfastError("NOT_SUPPORTED", message, { url });
}
