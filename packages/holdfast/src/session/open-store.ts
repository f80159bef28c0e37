import { homedir } from "node:os";
import process from "node:process";
import { loadPart } from "../load-part.ts";
import { defaultAddress } from "../stores/default-address.ts";
import type { Store, StoreOptions } from "./store-surface.ts";

/**
 * Opens a session store at the given address, else at HOLDFAST_STORE, else in the user's data folder. An address is a
 * folder, a `file:` URL, `sqlite:` with a file, `postgres:` with a database, or `memory:`.
 * Throws STORE_URL_INVALID, STORE_BUSY, STORE_FORBIDDEN, STORE_IO, FORMAT_NEWER, LIBRARY_REPLACED.
 */
export async function openStore(url?: string, options: StoreOptions = {}): Promise<Store> {
  const address = url ?? defaultAddress(process.env, process.platform, homedir);
  const given = { ...options };
  // Most of the library. A program that only imports it does not wait for it.
  const { openStoreAt } = await loadPart(() => import("./store.ts"));
  return openStoreAt(address, given);
}
