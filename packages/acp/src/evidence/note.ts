import { isAbsolute } from "node:path";
import type { FileState } from "./file-state.ts";
import { isInside } from "./file-state.ts";
import { commitIn } from "./git-output.ts";

/**
 * What a folder was like when a call began. `git`: the last commit, and the files that differ from it. `folder`: all of
 * its files. `files`: only those that the call's input names.
 */
export interface FolderNote {
  readonly kind: "git" | "folder" | "files";
  /** The real path that the files are relative to. */
  readonly root: string;
  /** The part of it that was looked at, if not all. */
  readonly folder: string;
  readonly head: string | null;
  readonly files: ReadonlyMap<string, FileState>;
  /** There were more files than are noted. */
  readonly isCut: boolean;
}

const VERSION = 1;

export function noteText({ files, ...note }: FolderNote): string {
  return JSON.stringify({ v: VERSION, ...note, files: [...files] });
}

/** Null for anything else: it may come from anywhere. */
export function noteFrom(text: string): FolderNote | null {
  let given: Partial<Record<string, unknown>>;
  try {
    given = Object(JSON.parse(text));
  } catch {
    // Not JSON.
    return null;
  }
  const { v, kind, root, folder, head, files, isCut } = given;
  if (v !== VERSION || (kind !== "git" && kind !== "folder" && kind !== "files")) return null;
  if (typeof root !== "string" || !isAbsolute(root) || typeof folder !== "string" || !isAbsolute(folder)) return null;
  if (typeof isCut !== "boolean" || !Array.isArray(files)) return null;
  const states = new Map<string, FileState>();
  for (const [path, given] of files.filter(Array.isArray)) {
    const state = stateFrom(given);
    if (typeof path !== "string" || !isInside(path) || state === null) return null;
    states.set(path, state);
  }
  return { kind, root, folder, head: typeof head === "string" ? commitIn(head) : null, files: states, isCut };
}

function stateFrom(given: unknown): FileState | null {
  const { kind, size, mtimeMs, executable, hash, target } = Object(given) as Partial<Record<string, unknown>>;
  if (kind === "absent" || kind === "other") return { kind };
  if (kind === "link") return typeof target === "string" ? { kind, target } : null;
  if (kind !== "file" || typeof size !== "number" || typeof mtimeMs !== "number") return null;
  if (typeof executable !== "boolean") return null;
  if (hash !== null && (typeof hash !== "string" || !/^[0-9a-f]{64}$/u.test(hash))) return null;
  return { kind, size, mtimeMs, executable, hash };
}
