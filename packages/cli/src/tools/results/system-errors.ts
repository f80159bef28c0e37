import { constants } from "node:os";

const WORDS: Readonly<Record<string, string>> = {
  ENOENT: "does not exist",
  EACCES: "cannot be accessed: permission denied",
  EPERM: "cannot be changed: operation not permitted",
  EISDIR: "is a folder",
  ENOTDIR: "has a parent that is not a folder",
  // From creating a folder.
  EEXIST: "has a parent that is not a folder, or is being written by another process",
  ENOSPC: "could not be written: the disk is full",
  EFBIG: "could not be written: the file would exceed the maximum file size",
  EDQUOT: "could not be written: the disk quota is used up",
  EROFS: "could not be written: the disk is read-only",
  ENAMETOOLONG: "has a name that is too long",
  ELOOP: "is an endless chain of symbolic links",
  EMFILE: "could not be opened: too many files are open",
};

/** A system error, worded for the model. */
export function describeSystemError(error: unknown, shown: string): Error {
  const { code: named, errno } = (error ?? {}) as { readonly code?: unknown; readonly errno?: unknown };
  // libuv has no name for it: Node calls it UNKNOWN.
  const code = errno === -constants.errno.EDQUOT ? "EDQUOT" : String(named ?? "");
  const words = WORDS[code];
  if (words !== undefined) return new Error(`${shown} ${words}.`, { cause: error });
  return error instanceof Error ? error : new Error(String(error));
}
