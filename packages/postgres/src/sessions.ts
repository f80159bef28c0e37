import type { Store, StoreOptions } from "holdfast";
import { openStoreWith } from "holdfast/store";
import type pg from "pg";
import { openPostgresStore, type PostgresStoreOptions } from "./open.ts";

/**
 * Opens a store in a PostgreSQL database, by its address or with an existing pool, with options that only this store
 * has (`directUrl`, `leaseMs`). With an address and none of these options, `openStore` of `holdfast` does the same. The
 * pool stays the application's: closing the store does not end it.
 */
export function openStore(place: string | pg.Pool, options: StoreOptions & PostgresStoreOptions = {}): Promise<Store> {
  return openStoreWith((given) => openPostgresStore(place, { ...options, ...given }), options);
}
