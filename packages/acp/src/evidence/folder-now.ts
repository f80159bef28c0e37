import { lstatSync, readdirSync } from "node:fs";
import { join, relative, sep } from "node:path";
import { setImmediate as turnOfLoop } from "node:timers/promises";
import { type FileState, FolderFiles, isErrno } from "./file-state.ts";
import { Git, workTreeOf } from "./git.ts";
import type { FileRules, Limits } from "./limits.ts";
import type { FolderNote } from "./note.ts";

export interface FolderNow extends FolderNote {
  /** The bytes of the small files. */
  readonly bytes: ReadonlyMap<string, Buffer>;
}

/** Folders that are not looked into outside git: other people's code, and git's own files. */
const PASSED_OVER: ReadonlySet<string> = new Set([".git", "node_modules"]);
/** How many files are read before other work of the process gets its turn. */
const AT_ONCE = 25;

/**
 * What a folder is like now. `named`: files that count in any case, absolute. A folder without git that has too many
 * files is left alone, except for those. Throws GitFailure.
 */
export async function folderNow(
  folder: string,
  named: readonly string[],
  limits: Limits,
  rules: FileRules,
): Promise<FolderNow> {
  const root = workTreeOf(folder);
  const paths = new Set(named.flatMap((path) => pathIn(root ?? folder, path) ?? []));
  if (root !== null) {
    const { head, entries: all, isCut } = await new Git(root, folder, limits).status();
    const entries = all.filter(({ path }) => !rules.isLeftOut(join(root, path), false));
    for (const { path } of entries.slice(0, limits.files)) paths.add(path);
    const isMore = isCut || entries.length > limits.files;
    return { kind: "git", root, folder, head, isCut: isMore, ...(await look(root, paths, limits, rules)) };
  }
  const all = filesBelow(folder, limits.files, rules);
  for (const path of all ?? []) paths.add(path);
  const kind = all === null ? "files" : "folder";
  return { kind, root: folder, folder, head: null, isCut: false, ...(await look(folder, paths, limits, rules)) };
}

/** The files with these paths. */
export async function look(
  root: string,
  paths: Iterable<string>,
  limits: Limits,
  rules: FileRules,
): Promise<{ readonly files: ReadonlyMap<string, FileState>; readonly bytes: ReadonlyMap<string, Buffer> }> {
  const looker = new FolderFiles(root, limits, rules);
  const files = new Map<string, FileState>();
  const bytes = new Map<string, Buffer>();
  for (const path of paths) {
    const found = looker.look(path);
    files.set(path, found.state);
    if (found.bytes) bytes.set(path, found.bytes);
    if (files.size % AT_ONCE === 0) await turnOfLoop();
  }
  return { files, bytes };
}

/** Relative to the root; null if it is not in it. */
function pathIn(root: string, path: string): string | null {
  const found = relative(root, path).split(sep).join("/");
  return found === "" || found.startsWith("../") || found === ".." ? null : found;
}

/** All files of a folder that is not in git; null if there are more. Follows no link. */
function filesBelow(root: string, max: number, { isLeftOut }: FileRules): string[] | null {
  const found: string[] = [];
  const folders = [""];
  let entries = 0;
  for (let folder = folders.pop(); folder !== undefined; folder = folders.pop()) {
    for (const entry of entriesOf(join(root, folder))) {
      entries += 1;
      if (entries > 2 * max) return null;
      const path = folder === "" ? entry.name : `${folder}/${entry.name}`;
      if (isLeftOut(join(root, path), entry.isDirectory())) continue;
      if (entry.isDirectory()) {
        if (!PASSED_OVER.has(entry.name)) folders.push(path);
      } else found.push(path);
      if (found.length > max) return null;
    }
  }
  return found;
}

function entriesOf(folder: string) {
  try {
    // It may have become a link since.
    return lstatSync(folder).isDirectory() ? readdirSync(folder, { withFileTypes: true }) : [];
  } catch (error) {
    if (isErrno(error, ["ENOENT", "ENOTDIR", "EACCES", "EPERM"])) return [];
    throw error;
  }
}
