import { fileURLToPath } from "node:url";
import { HoldfastError } from "../errors.ts";
import { shownAddress } from "./shown-address.ts";

/** What an address names. A path may be relative. `other`: a scheme that the library does not know by itself. */
export type StoreAddress =
  | { readonly kind: "folder" | "sqlite"; readonly path: string }
  | { readonly kind: "memory" | "postgres" }
  | { readonly kind: "other"; readonly scheme: string };

/** The library's own schemes. */
const KINDS: ReadonlyMap<string, Exclude<StoreAddress["kind"], "other">> = new Map([
  ["file", "folder"],
  ["sqlite", "sqlite"],
  ["memory", "memory"],
  ["postgres", "postgres"],
  ["postgresql", "postgres"],
]);

/** Two characters or more: `C:\store` is a path. */
const SCHEME = /^[a-z][a-z0-9+.-]+$/i;

/** `host=db password=x` would become the name of a folder, including the password. */
const LIBPQ = /^\s*(?:host|hostaddr|port|dbname|user|password|passfile|service|sslmode|sslpassword|options)\s*=/i;

/** Reads the address of a store, as every function that takes one does. Touches nothing. Throws STORE_URL_INVALID. */
export function parseAddress(address: string): StoreAddress {
  const [scheme = ""] = String(address).split(":", 1);
  if (scheme === address || !SCHEME.test(scheme)) {
    if (LIBPQ.test(address))
      throw invalidAddress(
        address,
        'libpq keywords are not supported; to use a folder of that name, start it with "./"',
      );
    assertPath(address, "folder");
    return { kind: "folder", path: address };
  }
  const kind = kindOf(scheme);
  switch (kind) {
    case "folder": {
      if (!/^file:\//i.test(address))
        throw invalidAddress(address, 'a file URL has an absolute path: "file:///path", or "file:/path"');
      const path = pathOf(address);
      assertPath(path, "folder", address);
      return { kind, path };
    }
    case "sqlite": {
      const path = address.slice("sqlite:".length).replace(/^\/\/(?=\/)/, "");
      assertPath(path, "file", address);
      return { kind, path };
    }
    case "memory":
    case "postgres":
      return { kind };
    case "other":
      return { kind, scheme: scheme.toLowerCase() };
  }
}

function kindOf(scheme: string): StoreAddress["kind"] {
  return KINDS.get(scheme.toLowerCase()) ?? "other";
}

/** Whether another package may have stores of this scheme. */
export function isFreeScheme(scheme: string): boolean {
  return SCHEME.test(scheme) && kindOf(scheme) === "other";
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

export function invalidAddress(
  address: string,
  why: string,
  cause?: unknown,
  facts: Readonly<Record<string, string>> = {},
): HoldfastError {
  const shown = shownAddress(String(address)).slice(0, 80);
  const message = `${JSON.stringify(shown)} is not the address of a store: ${why}. Nothing was touched. Use a folder, "sqlite:" and a file, "postgres:" and the location of a database, or "memory:".`;
  return new HoldfastError("STORE_URL_INVALID", message, { address: shown, ...facts }, cause);
}
