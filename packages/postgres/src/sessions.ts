import { openStoreWith, type Store, type StoreOptions } from "holdfast";
import type pg from "pg";
import { openPostgresStore, type PostgresStoreOptions } from "./open.ts";

/**
 * Opens a store of sessions in a PostgreSQL database, by its address or by a pool that the application has already, with what only such a store can be told (`directUrl`, `leaseMs`). With an address and none of these,
 * `openStore` of `holdfast` does the same. The pool stays the application's: it is not ended with the store.
 */
export function openStore(place: string | pg.Pool, options: StoreOptions & PostgresStoreOptions = {}): Promise<Store> {
  return openStoreWith((given) => openPostgresStore(place, { ...options, ...given }), options);
}
