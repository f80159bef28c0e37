import { homedir } from "node:os";
import type { Store, StoreOptions } from "holdfast";
import type { JournalStore } from "holdfast/store";
import { type Config, type Flags, loadConfig } from "../config.ts";
import { CommandError, EXIT } from "../exit.ts";
import { plainLine } from "../terminal/plain.ts";
import { typedCommand } from "../typed-command.ts";
import { placeWithoutStore } from "./address.ts";
import { loadStorePackage } from "./store-package.ts";

/** A store and its journals, for what only the journals know. */
export interface OpenedStore extends AsyncDisposable {
  readonly store: Store;
  readonly journals: JournalStore;
}

/**
 * Opens the configured store for a command that needs an existing one. Never creates a store: without one, calls
 * `ifNone`, which by default throws STORE_NOT_FOUND.
 */
export async function withStore<T>(
  flags: Flags,
  work: (store: Store, config: Config, journals: JournalStore) => Promise<T>,
  ifNone: (place: string) => T = noStore,
): Promise<T> {
  const config = loadConfig(flags);
  const address = await addressOf(config);
  const place = placeWithoutStore(address);
  if (place !== null) return ifNone(place);
  await using opened = await openBoth(address, "holdfast", config, redaction(config));
  return await work(opened.store, config, opened.journals);
}

/** For commands that need an existing session: throws STORE_NOT_FOUND instead of creating a store. */
export async function assertStore(config: Config): Promise<void> {
  const place = placeWithoutStore(await addressOf(config));
  if (place !== null) noStore(place);
}

/** The configured address, or the default. */
export async function addressOf({ store }: Pick<Config, "store">): Promise<string> {
  const { defaultAddress } = await import("holdfast/internal");
  return store ?? defaultAddress(process.env, process.platform, homedir);
}

/** The store option for the `redact` setting. */
export function redaction({ redact }: Pick<Config, "redact">): Pick<StoreOptions, "redact"> {
  return redact ? { redact: "credentials" } : {};
}

export async function openBoth(
  address: string,
  app: string,
  config: Pick<Config, "stores">,
  options: Pick<StoreOptions, "durability" | "redact"> = {},
): Promise<OpenedStore> {
  await loadStorePackage(address, config);
  const { openJournalStore, openStoreWith } = await import("holdfast/store");
  const { frameworkDialects: dialects } = await import("@holdfast/adapters/dialects");
  let journals: JournalStore | null = null;
  const store = await openStoreWith(
    async (given) => {
      journals = await openJournalStore(address, given);
      return journals;
    },
    { app, dialects, ...options },
  );
  for (const warning of store.warnings) process.stderr.write(`holdfast: ${plainLine(warning)}\n`);
  return { store, journals: journals!, [Symbol.asyncDispose]: () => store.close() };
}

export function noStore(place: string): never {
  throw new CommandError(
    EXIT.notFound,
    "STORE_NOT_FOUND",
    `No store in ${place}: nothing has been recorded there yet, or the address is wrong. Nothing was created. "${typedCommand("config")}" shows the address in use; the first "holdfast chat" or "holdfast run" creates the store.`,
  );
}
