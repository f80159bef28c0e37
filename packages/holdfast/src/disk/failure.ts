import { type ErrorCode, errnoOf, HoldfastError } from "../errors.ts";

/** Node's permission model (`node --permission`). */
const DENIED = "ERR_ACCESS_DENIED";
const GENERAL = new Set(["EMFILE", "ENFILE", "ENOMEM"]);

type Reading = readonly [code: ErrorCode, why: string, advice: string];

const FREE_SPACE = "Free some space, and try again.";
const LOOK = "Find out who put it there.";

/** What each system error means, and what to do about it. */
const READINGS: ReadonlyMap<string, Reading> = new Map<string, Reading>([
  ["ENOSPC", ["STORE_FULL", "there is no space left", FREE_SPACE]],
  ["EDQUOT", ["STORE_FULL", "the disk quota is used up", "Free some space or raise the quota, and try again."]],
  [
    "EFBIG",
    [
      "STORE_FULL",
      "the file would exceed the maximum file size",
      'Raise the limit of this process ("ulimit -f"), or use a file system that supports larger files, and try again.',
    ],
  ],
  ["EACCES", ["STORE_FORBIDDEN", "permission denied", "Check the owner and the mode of the path."]],
  ["EPERM", ["STORE_FORBIDDEN", "permission denied", "Check the owner and the mode of the path."]],
  ["EROFS", ["STORE_FORBIDDEN", "the file system is read-only", "Mount it read-write, or use a store elsewhere."]],
  ["ELOOP", ["PATH_UNSAFE", "expected a file or folder, found a symbolic link", LOOK]],
  ["ENOTDIR", ["PATH_UNSAFE", "expected a folder, found something else", LOOK]],
  ["EISDIR", ["PATH_UNSAFE", "expected a file, found a folder", LOOK]],
  ["EEXIST", ["PATH_UNSAFE", "something else already has that name", LOOK]],
  ["ENXIO", ["PATH_UNSAFE", "expected a file, found a socket or a device", LOOK]],
  ["ENOENT", ["STORE_IO", "it does not exist", "Find out who moved or removed it."]],
  [
    "ENAMETOOLONG",
    ["STORE_IO", "the path is longer than the system allows", "Use a store in a folder with a shorter path."],
  ],
  [
    "EMFILE",
    [
      "STORE_IO",
      "this process has too many files open",
      'Close sessions you do not need, or raise the limit ("ulimit -n"), and try again.',
    ],
  ],
  ["ENFILE", ["STORE_IO", "this machine has too many files open", "Close programs you do not need, and try again."]],
  ["ENOMEM", ["STORE_IO", "out of memory", "Close programs you do not need, and try again."]],
]);

/** Node disables fsync under `--permission`, with any flags: nothing can be made durable. */
function deniedBy(error: unknown): Reading {
  const isRead = (error as { readonly permission?: unknown }).permission === "FileSystemRead";
  const advice = isRead
    ? "To read, start Node with --allow-fs-read=<folder>, for the folder of the store. To write, start it without --permission, which disables fsync."
    : "It disables fsync, whatever else is allowed, so nothing can be made durable. Start Node without --permission, or use a store in PostgreSQL.";
  return ["STORE_FORBIDDEN", "the permission model of Node (--permission) forbids it", advice];
}

const ANY_OTHER: Reading = ["STORE_IO", "the disk reported an error", "Check the disk, and reopen the session."];

/**
 * Translates a system error: `what` was being done, `safety` says what is and is not affected. Rethrows anything else.
 */
export function diskFailure(error: unknown, what: string, path: string, safety: string): HoldfastError {
  if (error instanceof HoldfastError) return error;
  const errno = errnoOf(error);
  if (errno === undefined) throw error;
  const [code, why, advice] = errno === DENIED ? deniedBy(error) : (READINGS.get(errno) ?? ANY_OTHER);
  return new HoldfastError(
    code,
    `Could not ${what}: ${why} (${errno}, ${path}). ${safety} ${advice}`,
    { path, errno },
    error,
  );
}

/** Does the failure go away when space is freed? */
export function isFull(error: unknown): boolean {
  return READINGS.get(errnoOf(error) ?? "")?.[0] === "STORE_FULL";
}

/** Is it a failure that a reader can ignore? */
export function isForbidden(error: unknown): boolean {
  const errno = errnoOf(error) ?? "";
  return errno === DENIED || READINGS.get(errno)?.[0] === "STORE_FORBIDDEN";
}

/** Is it a failure of the process or the machine, rather than of this path? */
export function isGeneral(error: unknown): boolean {
  return GENERAL.has(errnoOf(error) ?? "");
}

/** The result of `run`, or `otherwise` if the system refuses. Any other error is a bug, and is thrown. */
export function tolerate<T>(run: () => T, otherwise: T): T {
  try {
    return run();
  } catch (error) {
    if (errnoOf(error) === undefined) throw error;
    return otherwise;
  }
}
