import { lstatSync, readlinkSync } from "node:fs";
import { isAbsolute, join, parse, relative, resolve, sep } from "node:path";

/** The tools whose input names a path. */
export const PATH_TOOLS: ReadonlySet<string> = new Set(["read", "write", "edit", "list", "search"]);

const LINKS_MAX = 40;
/** No system call accepts a longer path, and resolving examines each folder in it. */
const PATH_CHARS_MAX = process.platform === "win32" ? 32_767 : 4096;

/**
 * Resolves a path: follows every symbolic link, even one whose target does not exist yet (a write would create it), and
 * applies `..` after following the link before it. Keeps the part of a path that does not exist as it is.
 */
export function realPath(cwd: string, path: string): string {
  if (path.includes("\0")) throw new Error("A path cannot contain a NUL character.");
  if (path.length > PATH_CHARS_MAX)
    throw new Error(`A path of ${path.length} characters is too long for the system (limit ${PATH_CHARS_MAX}).`);
  const from = isAbsolute(path) ? path : `${cwd}${sep}${path}`;
  const { root } = parse(resolve(from));
  const left = from.slice(parse(from).root.length).split(sep === "/" ? "/" : /[/\\]/u);
  let here = root;
  let links = 0;
  while (left.length > 0) {
    const name = left.shift()!;
    if (name === "" || name === ".") continue;
    if (name === "..") {
      here = resolve(here, "..");
      continue;
    }
    const next = join(here, name);
    const target = linkTarget(next);
    if (target === null) {
      here = next;
      continue;
    }
    links += 1;
    if (links > LINKS_MAX) throw new Error(`${path} is an endless chain of symbolic links.`);
    left.unshift(...target.split(sep === "/" ? "/" : /[/\\]/u));
    if (isAbsolute(target)) here = parse(target).root;
  }
  return here;
}

/** Throws if a symbolic link was put into a real path between the permission check and its use. */
export function assertReal(path: string): void {
  if (realPath(parse(path).root, path) === path) return;
  throw new Error(`${path} now leads elsewhere: a symbolic link was just added to it. Nothing was done. Check again.`);
}

function linkTarget(path: string): string | null {
  try {
    return lstatSync(path).isSymbolicLink() ? readlinkSync(path) : null;
  } catch (error) {
    // If the path does not exist or cannot be examined, the tool cannot follow it either.
    if (error instanceof Error) return null;
    throw error;
  }
}

export function isInside(folder: string, path: string): boolean {
  const way = relative(folder, path);
  return way === "" || (way !== ".." && !way.startsWith(`..${sep}`) && !isAbsolute(way));
}

/** The path as shown: relative if it is inside the working folder. */
export function shownPath(cwd: string, path: string): string {
  return isInside(cwd, path) ? relative(cwd, path) || "." : path;
}
