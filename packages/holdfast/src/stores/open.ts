import { HoldfastError } from "../errors.ts";
import type { JournalStore } from "../journal/contract.ts";
import { loadPart } from "../load-part.ts";
import { invalidAddress, parseAddress } from "./address.ts";
import { openFolderStore } from "./folder/store.ts";
import { type JournalStoreOptions, openerOf } from "./schemes.ts";

/** Not a dependency: users who keep sessions in PostgreSQL install it next to the library. */
const POSTGRES = "@holdfast/postgres";

/**
 * Opens a store by its address: a path or `file:` URL of a folder, `sqlite:` and the path of a database file,
 * `postgres:` and the location of a database (with `@holdfast/postgres` installed), `memory:`, or a scheme that was
 * registered. Throws STORE_URL_INVALID and the errors of opening that kind of store.
 */
export async function openJournalStore(
  address: string | URL,
  options: JournalStoreOptions = {},
): Promise<JournalStore> {
  const text = String(address);
  const named = parseAddress(text);
  switch (named.kind) {
    case "folder":
      return openFolderStore(named.path, options);
    case "sqlite": {
      const { openSqliteStore } = await loadPart(() => import("./sqlite/store.ts"));
      return openSqliteStore(named.path, options);
    }
    case "memory": {
      const { openMemoryStore } = await loadPart(() => import("./memory/store.ts"));
      return openMemoryStore(options);
    }
    case "postgres":
      return (await postgres()).openPostgresStore(text, options);
    case "other": {
      const { scheme } = named;
      const open = openerOf(scheme);
      if (open) return open(text, options);
      throw invalidAddress(text, `no store is registered for "${scheme}:"`, undefined, { scheme });
    }
  }
}

interface Postgres {
  openPostgresStore(url: string, options: JournalStoreOptions): Promise<JournalStore>;
}

/** The name is computed, so that neither a compiler nor a bundler treats it as a dependency. */
function postgres(name: string = POSTGRES): Promise<Postgres> {
  return loadPart<Postgres>(
    () => import(/* @vite-ignore */ name),
    (error) => {
      // One of its own dependencies.
      if (!String(error).includes(name)) return error;
      const message = `A store in PostgreSQL needs the package ${name}, which is not installed next to the library. Nothing was touched. Install it: "npm install ${name}".`;
      return new HoldfastError("STORE_URL_INVALID", message, { missing: name }, error);
    },
  );
}
