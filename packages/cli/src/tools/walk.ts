import type { Dirent } from "node:fs";
import { readdir } from "node:fs/promises";
import { join } from "node:path";
import { TEMPORARY } from "./temporary.ts";

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

/** Symbolic links are named, and not followed: what they lead to may be outside of what was allowed. */
export async function walk(root: string, max: number, passOver: (path: string) => boolean): Promise<Walked> {
  const entries: { path: string; kind: "file" | "folder" | "link" | "other" }[] = [];
  const folders = [root];
  let passed = 0;
  let closed = 0;
  for (const folder of folders) {
    const found = await childrenOf(folder, folder === root);
    if (found === null) closed += 1;
    for (const child of found ?? []) {
      if (IGNORED.has(child.name) || TEMPORARY.test(child.name)) continue;
      const path = join(folder, child.name);
      if (passOver(path)) {
        passed += 1;
        continue;
      }
      if (entries.length >= max) return { entries, isCut: true, passed, closed };
      const kind = kindOf(child);
      entries.push({ path, kind });
      if (kind === "folder") folders.push(path);
    }
  }
  return { entries, isCut: false, passed, closed };
}

async function childrenOf(folder: string, isRoot: boolean): Promise<Dirent[] | null> {
  try {
    const found = await readdir(folder, { withFileTypes: true });
    return found.sort((a, b) => (a.name < b.name ? -1 : 1));
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
    ...(passed > 0 ? [`${passed} passed over, since they look like secrets or need permission to be read`] : []),
    ...(closed > 0 ? [`${closed} folders could not be looked into`] : []),
  ];
}

/** A name on one line: file names may hold line ends and escape sequences. */
export function oneLine(path: string): string {
  return path.replaceAll(/\p{Cc}/gu, "\uFFFD");
}
