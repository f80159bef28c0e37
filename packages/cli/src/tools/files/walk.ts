import type { Dirent } from "node:fs";
import { opendir } from "node:fs/promises";
import { join } from "node:path";
import { isOwnEntry, type OwnStore } from "../paths/own-store.ts";
import { TEMPORARY } from "./temporary-files.ts";

/** In one folder. */
const NAMES_MAX = 100_000;
const IGNORED: ReadonlySet<string> = new Set([".git", "node_modules"]);

export interface Walked {
  /** Breadth first, sorted by name in each folder: what is near comes before what is deep. */
  readonly entries: readonly { readonly path: string; readonly kind: "file" | "folder" | "link" | "other" }[];
  /** There were more than could be taken. */
  readonly isCut: boolean;
  /** How many were passed over, since reading them needs a word. */
  readonly passed: number;
  /** Folders that could not be looked into. */
  readonly closed: number;
}

export interface WalkOptions {
  readonly passOver: (path: string) => boolean;
  /** The store's own files are not even named. */
  readonly own?: OwnStore | null | undefined;
  readonly signal?: AbortSignal | undefined;
}

/** Symbolic links are named, and not followed: what they lead to may be outside of what was allowed. */
export async function walk(root: string, max: number, { passOver, own, signal }: WalkOptions): Promise<Walked> {
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

/** Of a folder with very many names the first ones that the system gives, so that nobody waits for all of them. */
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
    // One folder that is gone or closed does not hide the others.
    if (isRoot) throw error;
    return null;
  }
}

function kindOf(entry: Dirent): "file" | "folder" | "link" | "other" {
  if (entry.isDirectory()) return "folder";
  if (entry.isSymbolicLink()) return "link";
  return entry.isFile() ? "file" : "other";
}

/** What a result says of what it does not show. */
export function notes({ passed, closed }: Walked): string[] {
  return [
    ...(passed > 0
      ? [`${passed} skipped: they look like secrets, need permission to read, or belong to the agent's own store`]
      : []),
    ...(closed > 0 ? [`${closed} folders could not be read`] : []),
  ];
}

/** A name on one line: file names may hold line ends and escape sequences. */
export function oneLine(path: string): string {
  return path.replaceAll(/\p{Cc}/gu, "\uFFFD");
}
