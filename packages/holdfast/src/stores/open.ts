import { fileURLToPath } from "node:url";
import { HoldfastError } from "../errors.ts";
import type { Durability, JournalStore, Summariser } from "../journal/contract.ts";
import { loadPart } from "../load-part.ts";
import { assertPath, invalidAddress } from "./address.ts";
import { openFolderStore } from "./folder/store.ts";

export interface JournalStoreOptions {
  /** What `append` waits for by default. Default `power`. */
  readonly durability?: Durability;
  /** Makes the rows that `list` shows. */
  readonly summariser?: Summariser;
  /** The name lease holders go by. Default `holdfast`. */
  readonly app?: string;
}

/** Not a dependency: users who keep sessions in PostgreSQL install it next to the library. */
const POSTGRES = "@holdfast/postgres";

/** `host=db password=x` would become the name of a folder, including the password. */
const LIBPQ = /^\s*(?:host|hostaddr|port|dbname|user|password|passfile|service|sslmode|sslpassword|options)\s*=/i;

/**
 * Opens a store by its address: a path or `file:` URL of a folder, `sqlite:` and the path of a database file,
 * `postgres:` and the location of a database (with `@holdfast/postgres` installed), or `memory:`. Throws
 * STORE_URL_INVALID and the errors of opening that kind of store.
 */
export async function openJournalStore(
  address: string | URL,
  options: JournalStoreOptions = {},
): Promise<JournalStore> {
  const text = String(address);
  const scheme = /^([a-z][a-z0-9+.-]+):/i.exec(text)?.[1]?.toLowerCase();
  switch (scheme) {
    case undefined:
      if (LIBPQ.test(text))
        throw invalidAddress(
          text,
          'libpq keywords are not supported; to use a folder of that name, start it with "./"',
        );
      return openFolderStore(text, options);
    case "file":
      if (!/^file:\//i.test(text))
        throw invalidAddress(text, 'a file URL has an absolute path: "file:///path", or "file:/path"');
      return openFolderStore(pathOf(text), options);
    case "sqlite": {
      const path = text.slice("sqlite:".length).replace(/^\/\/(?=\/)/, "");
      assertPath(path, "file", text);
      const { openSqliteStore } = await loadPart(() => import("./sqlite/store.ts"));
      return openSqliteStore(path, options);
    }
    case "memory": {
      const { openMemoryStore } = await loadPart(() => import("./memory/store.ts"));
      return openMemoryStore(options);
    }
    case "postgres":
    case "postgresql":
      return (await postgres()).openPostgresStore(text, options);
    default:
      throw invalidAddress(text, `there is no "${scheme}:" store`);
  }
}

interface Postgres {
  openPostgresStore(url: string, options: JournalStoreOptions): Promise<JournalStore>;
}

/** The name is computed, so that neither a compiler nor a bundler treats it as a dependency. */
async function postgres(name: string = POSTGRES): Promise<Postgres> {
  try {
    return (await import(/* @vite-ignore */ name)) as Postgres;
  } catch (error) {
    // Another error of the package is reported unchanged.
    const isMissing = isCode(error, "ERR_MODULE_NOT_FOUND") && String(error).includes(name);
    if (!isMissing) throw error;
    const message = `A store in PostgreSQL needs the package ${name}, which is not installed next to the library. Nothing was touched. Install it: "npm install ${name}".`;
    throw new HoldfastError("STORE_URL_INVALID", message, { missing: name }, error);
  }
}

function isCode(error: unknown, code: string): boolean {
  return typeof error === "object" && error !== null && "code" in error && error.code === code;
}

function pathOf(url: string): string {
  try {
    return fileURLToPath(url);
  } catch (error) {
    throw invalidAddress(url, "it is not a local file URL", error);
  }
}
