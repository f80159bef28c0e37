import type { Durability, JournalStore, Summariser } from "../journal/contract.ts";
import { invalidAddress, isFreeScheme } from "./address.ts";

export interface JournalStoreOptions {
  /** What `append` waits for by default. Default `power`. */
  readonly durability?: Durability;
  /** Makes the rows that `list` shows. */
  readonly summariser?: Summariser;
  /** The name lease holders go by. Default `holdfast`. */
  readonly app?: string;
}

/** Opens the store at an address, which is passed on as given. */
export type OpenByAddress = (address: string, options: JournalStoreOptions) => Promise<JournalStore>;

const openers = new Map<string, OpenByAddress>();

/**
 * Makes addresses that begin with `scheme` and a colon open another package's store, wherever this process takes an
 * address. Registering a scheme again replaces it. Throws STORE_URL_INVALID for the library's own schemes, and for text
 * that is no scheme: a letter, then letters, digits, "+", "." or "-".
 */
export function registerScheme(scheme: string, open: OpenByAddress): void {
  if (!isFreeScheme(scheme)) throw invalidAddress(`${scheme}:`, "another package's store cannot have this scheme");
  openers.set(scheme.toLowerCase(), open);
}

export function openerOf(scheme: string): OpenByAddress | undefined {
  return openers.get(scheme);
}
