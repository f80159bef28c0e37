import { isAbsolute } from "node:path";
import { pathToFileURL } from "node:url";
import { type OpenByAddress, registerScheme } from "holdfast/address";
import type { Config } from "../config.ts";
import { CommandError, EXIT } from "../exit.ts";
import { readAddress } from "../read-address.ts";

/**
 * Loads the package that opens this address, if it is not one of the library's own. Only the user's configuration file
 * decides which code that is: an address may come from anywhere, and never names a module.
 */
export async function loadStorePackage(address: string, { stores }: Pick<Config, "stores">): Promise<void> {
  const named = readAddress(address);
  if (named?.kind !== "other" || !Object.hasOwn(stores, named.scheme)) return;
  const { scheme } = named;
  registerScheme(scheme, await openerIn(stores[scheme]!, scheme));
}

/** A store package exports `openJournalStore`, with the parameters of the library's. */
async function openerIn(name: string, scheme: string): Promise<OpenByAddress> {
  let found: { readonly openJournalStore?: unknown };
  try {
    found = await import(/* @vite-ignore */ isAbsolute(name) ? pathToFileURL(name).href : name);
  } catch (error) {
    throw unusable(scheme, name, `could not be loaded: ${error instanceof Error ? error.message : error}`, error);
  }
  if (typeof found.openJournalStore !== "function") throw unusable(scheme, name, "does not export openJournalStore");
  return found.openJournalStore as OpenByAddress;
}

function unusable(scheme: string, name: string, why: string, cause?: unknown): CommandError {
  const message = `The configuration file names ${name} for "${scheme}:" stores, but it ${why}. Nothing was touched. Install the package beside the command, or correct "stores" in the file that "holdfast config" names.`;
  return new CommandError(EXIT.usage, "CONFIG_INVALID", message, cause);
}
