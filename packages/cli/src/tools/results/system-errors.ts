const WORDS: Readonly<Record<string, string>> = {
  ENOENT: "does not exist",
  EACCES: "may not be touched by this user",
  EPERM: "may not be changed by this user",
  EISDIR: "is a folder",
  ENOTDIR: "leads through something that is not a folder",
  // Of a folder that was to be made.
  EEXIST: "leads through something that is not a folder, or is being written by somebody else",
  ENOSPC: "could not be written: there is no space left on the disk",
  EDQUOT: "could not be written: the user's share of the disk is used up",
  EROFS: "could not be written: the disk is read-only",
  ENAMETOOLONG: "has a name that is too long",
  ELOOP: "is a chain of symbolic links without an end",
  EMFILE: "could not be opened: too many files are open",
};

/** What a system call said, in words for the model. */
export function describeSystemError(error: unknown, shown: string): Error {
  const code = error instanceof Error && "code" in error ? String(error.code) : "";
  const words = WORDS[code];
  if (words !== undefined) return new Error(`${shown} ${words}.`, { cause: error });
  return error instanceof Error ? error : new Error(String(error));
}
