import { type ErrorCode, errnoOf, HoldfastError } from "../errors.ts";

const FULL = new Set(["ENOSPC", "EDQUOT", "EFBIG"]);
const FORBIDDEN = new Set(["EACCES", "EPERM", "EROFS"]);
const GENERAL = new Set(["EMFILE", "ENFILE", "ENOMEM"]);
const UNSAFE = new Set(["ELOOP", "ENOTDIR", "EISDIR", "EEXIST"]);

/** A system error in our words: `what` was being done, `safety` says what is and is not affected. Throws anything else as it is. */
export function diskFailure(error: unknown, what: string, path: string, safety: string): HoldfastError {
  if (error instanceof HoldfastError) return error;
  const errno = errnoOf(error);
  if (errno === undefined) throw error;
  const [code, why, advice] = reading(errno);
  return new HoldfastError(
    code,
    `Could not ${what}: ${why} (${errno}, ${path}). ${safety} ${advice}`,
    { path, errno },
    error,
  );
}

/** Is it a failure of the process or the machine, and not of the path that it was met at? */
export function isGeneral(error: unknown): boolean {
  return GENERAL.has(errnoOf(error) ?? "");
}

function reading(errno: string): [code: ErrorCode, why: string, advice: string] {
  if (FULL.has(errno)) return ["STORE_FULL", "there is no space left", "Free some space, and try again."];
  if (FORBIDDEN.has(errno))
    return ["STORE_FORBIDDEN", "it is not allowed", "Check the owner and the mode of the path."];
  if (UNSAFE.has(errno))
    return ["PATH_UNSAFE", "a link, file or folder stands where another kind of thing belongs", "Look at the path."];
  return ["STORE_IO", "the disk reported an error", "Check the disk, and open the session again."];
}

/** Is it the kind of failure that ends when space returns? */
export function isFull(error: unknown): boolean {
  return FULL.has(errnoOf(error) ?? "");
}

/** Is it the kind of failure that a reader need not mind? */
export function isForbidden(error: unknown): boolean {
  return FORBIDDEN.has(errnoOf(error) ?? "");
}
