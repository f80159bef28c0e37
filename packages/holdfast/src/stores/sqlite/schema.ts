import type { DatabaseSync } from "node:sqlite";
import { HoldfastError } from "../../errors.ts";

/** `PRAGMA application_id`: "hold", so that a database of another program is told from ours. */
const APPLICATION_ID = 0x686f6c64;
/** `PRAGMA user_version`. A newer one is refused. */
const SCHEMA_VERSION = 2;

/**
 * `lines` holds the journals: a row is one line, byte for byte, without its newline. Its key is the number of the session in the upper
 * half and the seq in the lower half, so that a journal lies together, in order, and an append touches no index.
 *
 * `sessions` is the catalogue. A row is true as of its `head`, and is written with `segment`, `opened` and `closed` and about once a second,
 * not with every line: readers carry it on over the lines that came later. `at` is what lists are ordered by, the stamp of the newest record
 * (journal/order.ts), and `written` is its time, where that is another. `trashed` is when the session was deleted, in milliseconds
 * since 1970.
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

/** Makes the tables in an empty database, and refuses one that is not ours or is too new. Throws what SQLite throws, too. */
export function prepareSchema(sqlite: DatabaseSync, file: string): void {
  readVersion(sqlite, file);
  const mode = pragma(sqlite, "journal_mode=WAL", "journal_mode");
  // Begun for writing also when the tables are there: who may not write is to be told now.
  sqlite.exec("BEGIN IMMEDIATE");
  try {
    const version = readVersion(sqlite, file);
    if (version === 0) sqlite.exec(`${SCHEMA}; PRAGMA application_id=${APPLICATION_ID}`);
    // An older version of the library that has the file open goes on with it: it does not know the column, and leaves it empty.
    else if (version === 1) sqlite.exec("ALTER TABLE sessions ADD COLUMN written TEXT");
    if (version !== SCHEMA_VERSION) sqlite.exec(`PRAGMA user_version=${SCHEMA_VERSION}`);
    sqlite.exec("COMMIT");
  } catch (error) {
    if (sqlite.isTransaction) sqlite.exec("ROLLBACK");
    throw error;
  }
  if (mode !== "wal") {
    const message = `The store ${file} cannot be used: SQLite keeps its journal in the mode "${mode}" there, and not in "wal". Nothing was written. Keep it on a local file system.`;
    throw new HoldfastError("NOT_SUPPORTED", message, { path: file, journalMode: String(mode) });
  }
}

/** The version of our schema; 0 for an empty database. */
function readVersion(sqlite: DatabaseSync, file: string): number {
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
  return version;
}

function pragma(sqlite: DatabaseSync, text: string, name = text): unknown {
  return sqlite.prepare(`PRAGMA ${text}`).get()?.[name];
}
