import { realpathSync } from "node:fs";
import { type FolderNow, folderNow } from "./folder-now.ts";
import { GitFailure } from "./git.ts";
import type { KeptFiles } from "./kept-files.ts";
import { type FileRules, LIMITS, type Limits } from "./limits.ts";
import { noteText } from "./note.ts";

/** What the journal has of a note: its name among the kept files. */
export interface NoteRef {
  readonly folder: string;
}

export function noteRefFrom(given: unknown): NoteRef | null {
  const { folder } = Object(given) as { readonly folder?: unknown };
  return typeof folder === "string" ? { folder } : null;
}

export interface NotingOptions {
  /** Files that the call's input names, absolute. */
  readonly named?: readonly string[];
  readonly rules: FileRules;
  /** Whether notes of other calls are still needed, when this one has been made. Default: no, and they are removed. */
  readonly areOthersNeeded?: () => boolean;
  readonly limits?: Limits;
}

/**
 * Notes what a folder is like before a call begins. Null if that is not possible: then nothing is said about it later,
 * and the call runs all the same.
 */
export async function noteFolder(
  folder: string,
  kept: KeptFiles,
  { named = [], rules, areOthersNeeded = () => false, limits = LIMITS }: NotingOptions,
): Promise<NoteRef | null> {
  try {
    const now = await folderNow(realpathSync(folder), named, limits, rules);
    const ref = kept.keep(Buffer.from(noteText(now)));
    const hashes = new Set([ref, ...keepBytes(now, kept, limits)]);
    if (!areOthersNeeded()) kept.keepOnly(hashes);
    return { folder: ref };
  } catch (error) {
    // A full disk, a folder that is gone, or no git: nothing is noted.
    if (error instanceof GitFailure || (error instanceof Error && "code" in error)) return null;
    throw error;
  }
}

function* keepBytes({ files, bytes }: FolderNow, kept: KeptFiles, { keptBytes }: Limits): Generator<string> {
  let left = keptBytes;
  for (const [path, found] of bytes) {
    const state = files.get(path);
    if (found.length > left || state?.kind !== "file" || state.hash === null) continue;
    left -= found.length;
    yield kept.keep(found, state.hash);
  }
}
