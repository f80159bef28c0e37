import { randomBytes } from "node:crypto";
import { chmodSync, mkdirSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { type DiffRow, lineDiff } from "@holdfast/server/internal/edits";
import type { Difference } from "./compare.ts";
import { FolderFiles, isSameState } from "./file-state.ts";
import { type ChangesOptions, type Comparison, compareFolder, textOf } from "./folder-changes.ts";
import { Git } from "./git.ts";
import type { KeptFiles } from "./kept-files.ts";
import { LIMITS } from "./limits.ts";
import type { NoteRef } from "./note-folder.ts";

/** A file that can be put back. */
export interface RestorableFile {
  readonly path: string;
  readonly bytes: Buffer;
  readonly executable: boolean;
  /** As it is now. */
  readonly now: Difference["now"];
  /** From now to what it was; null if one of them is no text. */
  readonly rows: readonly DiffRow[] | null;
}

export interface RestorePlan {
  readonly root: string;
  readonly files: readonly RestorableFile[];
  /** Changed files that stay as they are, each with the reason. */
  readonly left: readonly { readonly path: string; readonly why: string }[];
}

/**
 * Which files can be put back as they were noted: those whose bytes are known. What was not there before is never
 * removed. Null if there is no such note here. Throws GitFailure, system errors.
 */
export async function planRestore(ref: NoteRef, kept: KeptFiles, options: ChangesOptions): Promise<RestorePlan | null> {
  const compared = await compareFolder(ref, kept, options);
  if (!compared) return null;
  const { note, differences, before, now } = compared;
  const modes = await committedModes(compared, options);
  const files: RestorableFile[] = [];
  const left: { path: string; why: string }[] = [];
  for (const one of differences) {
    const { path, change } = one;
    const bytes = before.get(path);
    const noted = note.files.get(path);
    const executable = noted?.kind === "file" ? noted.executable : modes.get(path);
    if (change === "new") left.push({ path, why: "it was not there before" });
    else if (bytes === undefined) left.push({ path, why: "what it held is not known" });
    else if (executable === undefined) left.push({ path, why: "only git knows how to write it: use git restore" });
    else if (one.now.kind !== "file" && one.now.kind !== "absent") left.push({ path, why: "it is no file any more" });
    else {
      const sides = [one.now.kind === "absent" ? "" : textOf(now.get(path)), textOf(bytes)] as const;
      const rows = sides[0] === null || sides[1] === null ? null : lineDiff(sides[0], sides[1]);
      files.push({ path, bytes, executable, now: one.now, rows });
    }
  }
  return { root: note.root, files, left };
}

/** Whether files of the commit are executable. Without those that git does not write byte by byte, such as links. */
async function committedModes(
  { note, differences }: Comparison,
  { folder, limits = LIMITS }: ChangesOptions,
): Promise<ReadonlyMap<string, boolean>> {
  const paths = differences.flatMap(({ path, before }) => (before === "committed" ? [path] : []));
  if (note.kind !== "git" || note.head === null || paths.length === 0) return new Map();
  const git = new Git(note.root, folder, limits);
  const asIs = await git.storesAsIs(paths);
  return git.modesIn(
    note.head,
    paths.filter((path) => asIs.has(path)),
  );
}

/**
 * Puts the files back, each at once. Returns those that were put back, and those that were not, because somebody has
 * changed them since the plan was made. Throws system errors: what was put back until then stays.
 */
export function restoreFiles(
  { root, files }: RestorePlan,
  { rules, limits = LIMITS }: Omit<ChangesOptions, "folder">,
): { readonly restored: readonly string[]; readonly changed: readonly string[] } {
  const restored: string[] = [];
  const changed: string[] = [];
  for (const { path, bytes, executable, now } of files) {
    // Looked at from the root, right before: no folder on the way is a link.
    const found = new FolderFiles(root, limits, rules).look(path).state;
    if (!isSameState(now, found)) {
      changed.push(path);
      continue;
    }
    const target = join(root, path);
    mkdirSync(dirname(target), { recursive: true });
    const made = join(dirname(target), `.holdfast-${randomBytes(6).toString("hex")}.tmp`);
    try {
      writeFileSync(made, bytes, { flag: "wx", mode: executable ? 0o755 : 0o644 });
      if (executable) chmodSync(made, 0o755);
      renameSync(made, target);
    } finally {
      rmSync(made, { force: true });
    }
    restored.push(path);
  }
  return { restored, changed };
}
