import { type ErrorCode, errnoOf, HoldfastError } from "../errors.ts";

const FULL = new Set(["ENOSPC", "EDQUOT", "EFBIG"]);
const FORBIDDEN = new Set(["EACCES", "EPERM", "EROFS"]);
const GENERAL = new Set(["EMFILE", "ENFILE", "ENOMEM"]);

type Reading = readonly [code: ErrorCode, why: string, advice: string];

const FREE_SPACE = "Free some space, and try again.";
const LOOK = "Look at who put it there.";

/** What each error of the system means, and what to do about it. */
const READINGS: ReadonlyMap<string, Reading> = new Map<string, Reading>([
  ["ENOSPC", ["STORE_FULL", "there is no space left", FREE_SPACE]],
  ["EDQUOT", ["STORE_FULL", "the disk quota is used up", "Free some space, or have the quota raised, and try again."]],
  [
    "EFBIG",
    [
      "STORE_FULL",
      "the file would grow beyond the largest size that is allowed",
      'Raise the limit of this process ("ulimit -f"), or use a file system that takes larger files, and try again.',
    ],
  ],
  ["EACCES", ["STORE_FORBIDDEN", "permission denied", "Check the owner and the mode of the path."]],
  ["EPERM", ["STORE_FORBIDDEN", "permission denied", "Check the owner and the mode of the path."]],
  [
    "EROFS",
    ["STORE_FORBIDDEN", "the file system is read-only", "Mount it for writing, or use a store in another place."],
  ],
  ["ELOOP", ["PATH_UNSAFE", "a symbolic link stands where a file or folder belongs", LOOK]],
  ["ENOTDIR", ["PATH_UNSAFE", "something else stands where a folder belongs", LOOK]],
  ["EISDIR", ["PATH_UNSAFE", "a folder stands where a file belongs", LOOK]],
  ["EEXIST", ["PATH_UNSAFE", "something else has that name already", LOOK]],
  ["ENXIO", ["PATH_UNSAFE", "a socket or a device stands where a file belongs", LOOK]],
  ["ENOENT", ["STORE_IO", "it is not there", "Look at who moved or removed it."]],
  [
    "ENAMETOOLONG",
    ["STORE_IO", "the path is longer than the system takes", "Use a store in a folder with a shorter path."],
  ],
  [
    "EMFILE",
    [
      "STORE_IO",
      "this process has too many files open",
      'Close sessions that are not needed, or raise the limit ("ulimit -n"), and try again.',
    ],
  ],
  ["ENFILE", ["STORE_IO", "this machine has too many files open", "End programs that are not needed, and try again."]],
  ["ENOMEM", ["STORE_IO", "there is no memory left", "End programs that are not needed, and try again."]],
]);

const ANY_OTHER: Reading = ["STORE_IO", "the disk reported an error", "Check the disk, and open the session again."];

/** A system error in our words: `what` was being done, `safety` says what is and is not affected. Throws anything else as it is. */
export function diskFailure(error: unknown, what: string, path: string, safety: string): HoldfastError {
  if (error instanceof HoldfastError) return error;
  const errno = errnoOf(error);
  if (errno === undefined) throw error;
  const [code, why, advice] = READINGS.get(errno) ?? ANY_OTHER;
  return new HoldfastError(
    code,
    `Could not ${what}: ${why} (${errno}, ${path}). ${safety} ${advice}`,
    { path, errno },
    error,
  );
}

/** Is it the kind of failure that ends when space returns? */
export function isFull(error: unknown): boolean {
  return FULL.has(errnoOf(error) ?? "");
}

/** Is it the kind of failure that a reader need not mind? */
export function isForbidden(error: unknown): boolean {
  return FORBIDDEN.has(errnoOf(error) ?? "");
}

/** Is it a failure of the process or the machine, and not of the path that it was met at? */
export function isGeneral(error: unknown): boolean {
  return GENERAL.has(errnoOf(error) ?? "");
}
