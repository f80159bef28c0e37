import { createHash } from "node:crypto";
import { closeSync, constants, fstatSync, lstatSync, openSync, readlinkSync, readSync, type Stats } from "node:fs";
import { join } from "node:path";
import type { FileRules, Limits } from "./limits.ts";

/** A file of a folder at some moment. `hash`: null for one that was not read. */
export type FileState =
  | { readonly kind: "absent" }
  | {
      readonly kind: "file";
      readonly size: number;
      readonly mtimeMs: number;
      readonly executable: boolean;
      readonly hash: string | null;
    }
  | { readonly kind: "link"; readonly target: string }
  /** A folder, a pipe, a device, something behind a link, or left out. */
  | { readonly kind: "other" };

export interface LookedAt {
  readonly state: FileState;
  /** Of a file that was read. */
  readonly bytes: Buffer | null;
}

const ABSENT: LookedAt = { state: { kind: "absent" }, bytes: null };
const OTHER: LookedAt = { state: { kind: "other" }, bytes: null };

/** Whether a path stays in its folder, and is none of git's own files. It may come from anywhere. */
export function isInside(path: string): boolean {
  if (path === "" || path.length > 4096 || path.includes("\0")) return false;
  return path.split(/[/\\]/u).every((name) => !["", ".", ".."].includes(name) && name.toLowerCase() !== ".git");
}

/** Looks at files of one folder. Follows no link, and opens nothing but plain files. */
export class FolderFiles {
  readonly #root: string;
  readonly #limits: Limits;
  readonly #rules: FileRules;
  /** Folders below the root that are no links. */
  readonly #folders = new Set<string>();

  constructor(root: string, limits: Limits, rules: FileRules) {
    this.#root = root;
    this.#limits = limits;
    this.#rules = rules;
  }

  /** `path`: relative to the root. Throws only if the system has no descriptors left. */
  look(path: string): LookedAt {
    if (!isInside(path)) return OTHER;
    try {
      const parent = this.#whatHolds(path);
      if (parent !== "folder") return parent === "nothing" ? ABSENT : OTHER;
      const whole = join(this.#root, path);
      if (this.#rules.isLeftOut(whole, false)) return OTHER;
      return lookAt(whole, this.#rules.isSecret(whole) ? -1 : this.#limits.fileBytes);
    } catch (error) {
      if (isErrno(error, ["ENOENT", "ENOTDIR"])) return ABSENT;
      if (isErrno(error, ["EACCES", "EPERM", "ELOOP", "ENAMETOOLONG", "ENXIO", "EINVAL", "EIO"])) return OTHER;
      throw error;
    }
  }

  #whatHolds(path: string): "folder" | "nothing" | "other" {
    const names = path.split("/").slice(0, -1);
    for (let end = 1; end <= names.length; end++) {
      const folder = names.slice(0, end).join("/");
      if (this.#folders.has(folder)) continue;
      const found = lstatSync(join(this.#root, folder), { throwIfNoEntry: false });
      if (!found) return "nothing";
      if (!found.isDirectory() || this.#rules.isLeftOut(join(this.#root, folder), true)) return "other";
      this.#folders.add(folder);
    }
    return "folder";
  }
}

function lookAt(path: string, bytesMax: number): LookedAt {
  const found = lstatSync(path, { throwIfNoEntry: false });
  if (!found) return ABSENT;
  if (found.isSymbolicLink()) return { state: { kind: "link", target: readlinkSync(path) }, bytes: null };
  if (!found.isFile()) return OTHER;
  // Another name of it may be a file that must not be opened.
  if (found.size > bytesMax || found.nlink > 1) return { state: stateOf(found, null), bytes: null };
  const fd = openSync(path, constants.O_RDONLY | (constants.O_NOFOLLOW ?? 0) | (constants.O_NONBLOCK ?? 0));
  try {
    const opened = fstatSync(fd);
    // Another file has taken its place since.
    if (!opened.isFile()) return OTHER;
    const bytes = readUpTo(fd, bytesMax);
    if (bytes === null) return { state: stateOf(opened, null), bytes: null };
    return { state: stateOf(opened, hashOf(bytes)), bytes };
  } finally {
    closeSync(fd);
  }
}

/** Null if there is more: the file may be growing. */
function readUpTo(fd: number, max: number): Buffer | null {
  const bytes = Buffer.allocUnsafe(Math.min(fstatSync(fd).size, max) + 1);
  let filled = 0;
  while (filled < bytes.length) {
    const read = readSync(fd, bytes, filled, bytes.length - filled, filled);
    if (read === 0) return bytes.subarray(0, filled);
    filled += read;
  }
  return null;
}

function stateOf({ size, mtimeMs, mode }: Stats, hash: string | null): FileState {
  return { kind: "file", size, mtimeMs, executable: (mode & 0o100) !== 0, hash };
}

export function hashOf(bytes: Uint8Array): string {
  return createHash("sha256").update(bytes).digest("hex");
}

/** Whether a file is as it was, as far as that was noted. */
export function isSameState(before: FileState, now: FileState): boolean {
  if (before.kind === "file" && now.kind === "file") {
    if (before.executable !== now.executable || before.size !== now.size) return false;
    if (before.hash !== null && now.hash !== null) return before.hash === now.hash;
    return before.mtimeMs === now.mtimeMs;
  }
  if (before.kind === "link" && now.kind === "link") return before.target === now.target;
  return before.kind === now.kind;
}

export function isErrno(error: unknown, codes: readonly string[]): boolean {
  return codes.includes((error as NodeJS.ErrnoException).code ?? "");
}
