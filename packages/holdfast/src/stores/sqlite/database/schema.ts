import type { DatabaseSync } from "node:sqlite";
import { HoldfastError } from "../../../errors.ts";
import { pragma } from "./connection.ts";
import { NAME_SCHEMA } from "./name.ts";

/** `PRAGMA application_id`: "hold", so that a database of another program is told from ours. */
const APPLICATION_ID = 0x686f6c64;
/**
 * `PRAGMA user_version`. A newer one is refused. 1 has neither the column `written` nor the table `used_as`, 2 has no
 * `used_as`: whoever knows only those does not keep out of the way of others as FlagLock does, so it must not open this
 * one.
 */
export const SCHEMA_VERSION = 3;

/**
 * `lines` holds the journals: a row is one line, byte for byte, without its newline. Its key is the number of the
 * session in the upper half and the seq in the lower half, so that a journal lies together, in order, and an append
 * touches no index.
 *
 * `sessions` is the catalogue. A row is true as of its `head`, and is written with `segment`, `opened` and `closed` and
 * about once a second, not with every line: readers carry it on over the lines that came later. `at` is what lists are
 * ordered by, the stamp of the newest record (journal/order.ts), and `written` is its time, where that is another.
 * `trashed` is when the session was deleted, in milliseconds since 1970.
 *
 * `segments` says where each segment begins, and which one begins the epoch that it belongs to.
 */
const SCHEMA = `
CREATE TABLE sessions (
  key INTEGER PRIMARY KEY AUTOINCREMENT,
  id TEXT NOT NULL,
  at TEXT NOT NULL,
  head INTEGER NOT NULL,
  closed INTEGER NOT NULL,
  summary TEXT NOT NULL,
  trashed INTEGER,
  written TEXT
) STRICT;
CREATE UNIQUE INDEX sessions_by_id ON sessions (id) WHERE trashed IS NULL;
CREATE INDEX sessions_by_time ON sessions (at, id) WHERE trashed IS NULL;
CREATE INDEX sessions_open ON sessions (closed) WHERE closed = 0 AND trashed IS NULL;
CREATE TABLE segments (
  session INTEGER NOT NULL,
  number INTEGER NOT NULL,
  epoch INTEGER NOT NULL,
  first INTEGER NOT NULL,
  PRIMARY KEY (session, number)
) STRICT, WITHOUT ROWID;
CREATE TABLE lines (
  place INTEGER PRIMARY KEY,
  line BLOB NOT NULL
) STRICT;
`;

/**
 * Makes the tables in an empty database, and what an older one does not have. Inside a transaction. Throws what SQLite
 * throws, too.
 */
export function makeTables(sqlite: DatabaseSync, file: string): void {
  if (readVersion(sqlite, file) === 0) sqlite.exec(`${SCHEMA}; PRAGMA application_id=${APPLICATION_ID}`);
  // What is missing is looked for: the number that tells the version can be damaged, too.
  if (!hasWritten(sqlite)) sqlite.exec("ALTER TABLE sessions ADD COLUMN written TEXT");
  sqlite.exec(`${NAME_SCHEMA}; PRAGMA user_version=${SCHEMA_VERSION}`);
}

/**
 * Has the table of sessions the column that came with schema 2? An older database that is only read stays without it.
 */
export function hasWritten(sqlite: DatabaseSync): boolean {
  return sqlite.prepare("SELECT 1 FROM pragma_table_info('sessions') WHERE name = 'written'").get() !== undefined;
}

/** The version of our schema; 0 for an empty database. Refuses one that is not ours or is too new. */
export function readVersion(sqlite: DatabaseSync, file: string): number {
  const application = pragma(sqlite, "application_id");
  const version = Number(pragma(sqlite, "user_version"));
  const tables = sqlite.prepare("SELECT count(*) AS tables FROM sqlite_schema").get()!["tables"];
  if (application === 0 && version === 0 && tables === 0) return 0;
  if (application !== APPLICATION_ID) {
    const message = `${file} is an SQLite database of another program. Nothing was touched. Name another file.`;
    throw new HoldfastError("STORE_URL_INVALID", message, { path: file, applicationId: Number(application) });
  }
  if (version > SCHEMA_VERSION) {
    const message =
      `The store ${file} has the schema ${version}, and this version of Holdfast knows ${SCHEMA_VERSION} only. ` +
      "Nothing was touched and nothing is lost. Open it with a newer version of Holdfast.";
    throw new HoldfastError("FORMAT_NEWER", message, { path: file, found: version, known: SCHEMA_VERSION });
  }
  assertHeader(sqlite, file);
  return version;
}

/** Settings that this store never makes. SQLite believes them, and would write to wrong places. */
function assertHeader(sqlite: DatabaseSync, file: string): void {
  const found = { encoding: pragma(sqlite, "encoding"), vacuum: pragma(sqlite, "auto_vacuum") };
  if (found.encoding === "UTF-8" && found.vacuum === 0) return;
  const message =
    `The store ${file} cannot be used: the header of the file is damaged (encoding ${found.encoding}, auto_vacuum ${found.vacuum}). Nothing was touched. ` +
    "Make a copy of the file first; then `sqlite3 <file> .recover` saves what can be saved.";
  throw new HoldfastError("JOURNAL_UNREADABLE", message, { path: file });
}
