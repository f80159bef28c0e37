import { statSync } from "node:fs";
import { join, resolve } from "node:path";
import { readAddress } from "../read-address.ts";
import { plainLine } from "../terminal/plain.ts";

/** What an address names on this machine's disk; null for a database, memory or an invalid address. */
export type OnDisk = { readonly kind: "folder" | "sqlite"; readonly path: string };

export function onDisk(address: string): OnDisk | null {
  const named = readAddress(address);
  return named && "path" in named ? { kind: named.kind, path: resolve(named.path) } : null;
}

export function isInMemory(storeUrl: string): boolean {
  return readAddress(storeUrl)?.kind === "memory";
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
