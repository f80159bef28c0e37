import type { Dirent } from "node:fs";
import { opendir } from "node:fs/promises";
import { join } from "node:path";
import { isOwnEntry, type OwnStore } from "../paths/own-store.ts";
import { TEMPORARY } from "./temporary-files.ts";

/** In one folder. */
const NAMES_MAX = 100_000;
const IGNORED: ReadonlySet<string> = new Set([".git", "node_modules"]);

export interface FolderListing {
  /** Breadth first, sorted by name in each folder, so that nearby entries come first. */
  readonly entries: readonly { readonly path: string; readonly kind: "file" | "folder" | "link" | "other" }[];
  /** There are more entries than the limit. */
  readonly isCut: boolean;
  /** How many were skipped because reading them needs approval or they belong to the store. */
  readonly passed: number;
  /** How many folders could not be read. */
  readonly closed: number;
}

export interface WalkOptions {
  readonly passOver: (path: string) => boolean;
  /** The store's own files are not even listed. */
  readonly own?: OwnStore | null | undefined;
  readonly signal?: AbortSignal | undefined;
}

/** Lists symbolic links but does not follow them: they may lead outside what was allowed. */
export async function walk(root: string, max: number, { passOver, own, signal }: WalkOptions): Promise<FolderListing> {
  const entries: { path: string; kind: "file" | "folder" | "link" | "other" }[] = [];
  const folders = [root];
  let passed = 0;
  let closed = 0;
  let isCut = false;
  for (const folder of folders) {
    signal?.throwIfAborted();
    const found = await childrenOf(folder, folder === root);
    if (found === null) closed += 1;
    isCut ||= found?.isCut ?? false;
    for (const child of found?.entries ?? []) {
      if (IGNORED.has(child.name) || TEMPORARY.test(child.name)) continue;
      const path = join(folder, child.name);
      if ((own && isOwnEntry(own, path, child.isDirectory())) || passOver(path)) {
        passed += 1;
        continue;
      }
      if (entries.length >= max) return { entries, isCut: true, passed, closed };
      const kind = kindOf(child);
      entries.push({ path, kind });
      if (kind === "folder") folders.push(path);
    }
  }
  return { entries, isCut, passed, closed };
}

/** Stops at `NAMES_MAX`, in the order the system returns, so that a huge folder does not take too long. */
async function childrenOf(
  folder: string,
  isRoot: boolean,
): Promise<{ readonly entries: readonly Dirent[]; readonly isCut: boolean } | null> {
  try {
    const entries: Dirent[] = [];
    let isCut = false;
    for await (const entry of await opendir(folder, { bufferSize: 512 })) {
      isCut = entries.length === NAMES_MAX;
      if (isCut) break;
      entries.push(entry);
    }
    return { entries: entries.sort((a, b) => (a.name < b.name ? -1 : 1)), isCut };
  } catch (error) {
    // A folder that is gone or unreadable does not hide the others.
    if (isRoot) throw error;
    return null;
  }
}

function kindOf(entry: Dirent): "file" | "folder" | "link" | "other" {
  if (entry.isDirectory()) return "folder";
  if (entry.isSymbolicLink()) return "link";
  return entry.isFile() ? "file" : "other";
}

/** What a result says about the entries that it does not show. */
export function notes({ passed, closed }: FolderListing): string[] {
  return [
    ...(passed > 0
      ? [`${passed} skipped: they look like secrets, need permission to read, or belong to the agent's own store`]
      : []),
    ...(closed > 0 ? [`${closed} folders could not be read`] : []),
  ];
}

/** A path on one line: file names may contain line breaks and escape sequences. */
export function oneLine(path: string): string {
  return path.replaceAll(/\p{Cc}/gu, "\uFFFD");
}
