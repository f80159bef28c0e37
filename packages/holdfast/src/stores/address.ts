import { HoldfastError } from "../errors.ts";
import { shownAddress } from "./shown-address.ts";

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
