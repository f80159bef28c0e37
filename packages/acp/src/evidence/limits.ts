/** Everything about a folder is bounded: its files may be anybody's, and as many as they like. */
export interface Limits {
  /** How many files are noted, and how many are compared. */
  readonly files: number;
  /** How long git may take. */
  readonly gitMs: number;
  /** Of a larger file only size and time are noted, and a change of it is named without its lines. */
  readonly fileBytes: number;
  /** So much is kept of all files of one note. */
  readonly keptBytes: number;
}

/** Which files are not opened, by their absolute paths. */
export interface FileRules {
  /** It does not count at all: the store's own files. */
  readonly isLeftOut: (path: string, isFolder: boolean) => boolean;
  /** It may hold secrets: only its size and time are noted. */
  readonly isSecret: (path: string) => boolean;
}

export const LIMITS: Limits = { files: 500, gitMs: 1_000, fileBytes: 256 * 1024, keptBytes: 8 * 1024 * 1024 };
