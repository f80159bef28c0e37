import { fileURLToPath } from "node:url";
import { HoldfastError } from "../errors.ts";
import { shownAddress } from "./shown-address.ts";

/** What an address names. A path may be relative. */
export type StoreAddress =
  | { readonly kind: "folder" | "sqlite"; readonly path: string }
  | { readonly kind: "memory" | "postgres" };

/** `host=db password=x` would become the name of a folder, including the password. */
const LIBPQ = /^\s*(?:host|hostaddr|port|dbname|user|password|passfile|service|sslmode|sslpassword|options)\s*=/i;

/** Reads the address of a store, as `openJournalStore` does. Touches nothing. Throws STORE_URL_INVALID. */
export function parseAddress(address: string): StoreAddress {
  const scheme = /^([a-z][a-z0-9+.-]+):/i.exec(address)?.[1]?.toLowerCase();
  switch (scheme) {
    case undefined:
      if (LIBPQ.test(address))
        throw invalidAddress(
          address,
          'libpq keywords are not supported; to use a folder of that name, start it with "./"',
        );
      assertPath(address, "folder");
      return { kind: "folder", path: address };
    case "file": {
      if (!/^file:\//i.test(address))
        throw invalidAddress(address, 'a file URL has an absolute path: "file:///path", or "file:/path"');
      const path = pathOf(address);
      assertPath(path, "folder", address);
      return { kind: "folder", path };
    }
    case "sqlite": {
      const path = address.slice("sqlite:".length).replace(/^\/\/(?=\/)/, "");
      assertPath(path, "file", address);
      return { kind: "sqlite", path };
    }
    case "memory":
      return { kind: "memory" };
    case "postgres":
    case "postgresql":
      return { kind: "postgres" };
    default:
      throw invalidAddress(address, `there is no "${scheme}:" store`);
  }
}

function pathOf(url: string): string {
  try {
    return fileURLToPath(url);
  } catch (error) {
    throw invalidAddress(url, "it is not a local file URL", error);
  }
}

/** Throws STORE_URL_INVALID for a path that names nothing: an empty path would mean the current working directory. */
export function assertPath(path: string, what: "folder" | "file", address: string = path): void {
  if (typeof path !== "string" || path === "" || path.includes("\0"))
    throw invalidAddress(address, `it names no ${what}`);
}

export function invalidAddress(address: string, why: string, cause?: unknown): HoldfastError {
  const shown = shownAddress(String(address)).slice(0, 80);
  const message = `${JSON.stringify(shown)} is not the address of a store: ${why}. Nothing was touched. Use a folder, "sqlite:" and a file, "postgres:" and the location of a database, or "memory:".`;
  return new HoldfastError("STORE_URL_INVALID", message, { address: shown }, cause);
}
