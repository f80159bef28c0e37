import { statSync } from "node:fs";
import { join, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { plainLine } from "../terminal/plain.ts";

/** What an address names on this machine's disk; null for a database, memory or an invalid address. */
export type OnDisk = { readonly kind: "folder" | "sqlite"; readonly path: string };

/** Parses addresses as the library does, which reports what is wrong with them. */
export function onDisk(address: string): OnDisk | null {
  const scheme = /^([a-z][a-z0-9+.-]+):/i.exec(address)?.[1]?.toLowerCase();
  switch (scheme) {
    case undefined:
      return address === "" || address.includes("\0") ? null : { kind: "folder", path: resolve(address) };
    case "file": {
      const path = /^file:\/\/\//i.test(address) ? pathOf(address) : null;
      return path === null || path.includes("\0") ? null : { kind: "folder", path };
    }
    case "sqlite": {
      const path = address.slice("sqlite:".length).replace(/^\/\/(?=\/)/, "");
      return path === "" || path.includes("\0") ? null : { kind: "sqlite", path: resolve(path) };
    }
    default:
      return null;
  }
}

/** Null if the URL has no valid path: a bad escape, or an escaped slash. */
function pathOf(url: string): string | null {
  try {
    return fileURLToPath(url);
  } catch (error) {
    if (error instanceof Error) return null;
    throw error;
  }
}

/**
 * Where an address would create a store, for people; null if there is one already, or if it cannot be inspected: then
 * opening it reports why.
 */
export function placeWithoutStore(address: string): string | null {
  const place = onDisk(address);
  if (!place) return null;
  const { kind, path } = place;
  const found = statOf(path);
  // A folder with other contents is not a store, and reading must not make it one.
  const isNone = found === null || (kind === "folder" && found === "folder" && statOf(join(path, "sessions")) === null);
  if (!isNone) return null;
  return plainLine(kind === "sqlite" ? `sqlite:${path}` : path);
}

function statOf(path: string): "folder" | "other" | "unknown" | null {
  try {
    const stat = statSync(path, { throwIfNoEntry: false });
    if (!stat) return null;
    return stat.isDirectory() ? "folder" : "other";
  } catch (error) {
    if (error instanceof Error && "syscall" in error) return "unknown";
    throw error;
  }
}
