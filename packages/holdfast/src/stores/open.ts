import { fileURLToPath } from "node:url";
import { HoldfastError } from "../errors.ts";
import type { Durability, JournalStore, Summariser } from "../journal/contract.ts";
import { openFolderStore } from "./folder/store.ts";
import { openMemoryStore } from "./memory/store.ts";
import { openSqliteStore } from "./sqlite/store.ts";

export interface JournalStoreOptions {
  /** What `append` waits for unless it says otherwise. Default `power`. */
  readonly durability?: Durability;
  /** Makes the rows that `list` shows. */
  readonly summariser?: Summariser;
  /** What holders of leases call themselves. Default `holdfast`. */
  readonly app?: string;
}

/**
 * Opens a store by its address: a path or `file:` URL of a folder, `sqlite:` and the path of a database file, or `memory:`. Throws
 * STORE_URL_INVALID, and what opening such a store throws.
 */
export async function openJournalStore(
  address: string | URL,
  options: JournalStoreOptions = {},
): Promise<JournalStore> {
  const text = String(address);
  const scheme = /^([a-z][a-z0-9+.-]+):/i.exec(text)?.[1]?.toLowerCase();
  switch (scheme) {
    case undefined:
      if (text === "" || text.includes("\0")) throw invalid(text, "it names no folder");
      return openFolderStore(text, options);
    case "file":
      if (!/^file:\/\//i.test(text)) throw invalid(text, 'a file URL begins with "file://"');
      return openFolderStore(pathOf(text), options);
    case "sqlite": {
      const path = text.slice("sqlite:".length).replace(/^\/\/(?=\/)/, "");
      if (path === "" || path.includes("\0")) throw invalid(text, "it names no file");
      return openSqliteStore(path, options);
    }
    case "memory":
      return openMemoryStore(options);
    default:
      throw invalid(text, `no store is known by "${scheme}:"`);
  }
}

function pathOf(url: string): string {
  try {
    return fileURLToPath(url);
  } catch (error) {
    throw invalid(url, "it is not a file URL of this machine", error);
  }
}

function invalid(address: string, why: string, cause?: unknown): HoldfastError {
  const shown = JSON.stringify(address.slice(0, 80));
  const message = `${shown} is not the address of a store: ${why}. Nothing was touched. Give a folder, "sqlite:" and a file, or "memory:".`;
  return new HoldfastError("STORE_URL_INVALID", message, { address: address.slice(0, 80) }, cause);
}
