/** The result codes of SQLite that decide something here (https://sqlite.org/rescode.html). */
export const SQLITE = {
  /** Of everything that SQLite describes in words of the moment (`no such table: x`). */
  ERROR: 1,
  PERM: 3,
  BUSY: 5,
  LOCKED: 6,
  NOMEM: 7,
  READONLY: 8,
  IOERR: 10,
  CORRUPT: 11,
  FULL: 13,
  CANTOPEN: 14,
  PROTOCOL: 15,
  TOOBIG: 18,
  CONSTRAINT: 19,
  AUTH: 23,
  NOTADB: 26,
  IOERR_WRITE: 778,
} as const;

/**
 * SQLite's own words for its result codes (`sqlite3_errstr`). Deno reports errors of `exec` and of opening a database
 * without the code.
 */
const WORDS: ReadonlyMap<string, number> = new Map([
  ["access permission denied", SQLITE.PERM],
  ["database is locked", SQLITE.BUSY],
  ["database table is locked", SQLITE.LOCKED],
  ["out of memory", SQLITE.NOMEM],
  ["attempt to write a readonly database", SQLITE.READONLY],
  ["disk I/O error", SQLITE.IOERR],
  ["database disk image is malformed", SQLITE.CORRUPT],
  ["database or disk is full", SQLITE.FULL],
  ["unable to open database file", SQLITE.CANTOPEN],
  ["locking protocol", SQLITE.PROTOCOL],
  ["string or blob too big", SQLITE.TOOBIG],
  ["authorization denied", SQLITE.AUTH],
  ["file is not a database", SQLITE.NOTADB],
]);

/** The result code of a node:sqlite error, extended where the runtime says so; undefined for other errors. */
export function sqliteErrcode(error: unknown): number | undefined {
  if (!(error instanceof Error)) return undefined;
  const { errcode, code, message } = error as { errcode?: unknown; code?: unknown; message: string };
  if (typeof errcode === "number") return errcode;
  if (code !== "ERR_SQLITE_ERROR") return undefined;
  // Deno adds the path of a database that it cannot open.
  const words = [...WORDS.keys()].find((words) => message === words || message.startsWith(`${words}: `));
  return words === undefined ? SQLITE.ERROR : WORDS.get(words);
}

/** The primary result code of a node:sqlite error, or undefined. */
export function sqliteCode(error: unknown): number | undefined {
  const errcode = sqliteErrcode(error);
  return errcode === undefined ? undefined : errcode & 0xff;
}
