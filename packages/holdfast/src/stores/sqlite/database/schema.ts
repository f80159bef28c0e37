import type { DatabaseSync } from "node:sqlite";
import { HoldfastError } from "../../../errors.ts";
import { pragma } from "./connection.ts";

/** `PRAGMA application_id`: "hold", to recognise other programs' databases. */
const APPLICATION_ID = 0x686f6c64;
/** `PRAGMA user_version`. Any other one is refused; those below it were never released. */
const SCHEMA_VERSION = 4;

/**
 * `lines` holds the journals: a row is one line, byte for byte, without its newline. Its key has the session's number
 * in the upper half and the seq in the lower half, so a journal is stored together, in order, and an append touches no
 * index.
 *
 * `sessions` is the catalogue. A row is valid as of its `head`. It is written with `segment`, `opened` and `closed` and
 * about once a second, not with every line: readers fold in the later lines. `at` is the sort key of lists, the stamp
 * of the newest record (journal/order.ts), and `written` is its time, if different. `trashed` is when the session was
 * deleted, in milliseconds since 1970.
 *
 * `segments` says where each segment starts, and which one started the epoch it belongs to.
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

/** Creates the tables in an empty database. Runs inside a transaction. Also throws SQLite's errors. */
export function makeTables(sqlite: DatabaseSync, file: string): void {
  if (readVersion(sqlite, file) > 0) return;
  sqlite.exec(`${SCHEMA}; PRAGMA application_id=${APPLICATION_ID}; PRAGMA user_version=${SCHEMA_VERSION}`);
}

/** The schema version; 0 for an empty database. Refuses a database that is not ours, or has another schema. */
export function readVersion(sqlite: DatabaseSync, file: string): number {
  const application = pragma(sqlite, "application_id");
  const version = Number(pragma(sqlite, "user_version"));
  const tables = sqlite.prepare("SELECT count(*) AS tables FROM sqlite_schema").get()!["tables"];
  if (application === 0 && version === 0 && tables === 0) return 0;
  if (application !== APPLICATION_ID) {
    const message = `${file} is another program's SQLite database. Nothing was touched. Use another file.`;
    throw new HoldfastError("STORE_URL_INVALID", message, { path: file, applicationId: Number(application) });
  }
  if (version > SCHEMA_VERSION) {
    const message =
      `The store ${file} has the schema ${version}, but this version of Holdfast knows only ${SCHEMA_VERSION}. ` +
      "Nothing was touched and nothing is lost. Open it with a newer version of Holdfast.";
    throw new HoldfastError("FORMAT_NEWER", message, { path: file, found: version, known: SCHEMA_VERSION });
  }
  const found = { version, encoding: pragma(sqlite, "encoding"), vacuum: pragma(sqlite, "auto_vacuum") };
  if (version === SCHEMA_VERSION && found.encoding === "UTF-8" && found.vacuum === 0) return version;
  // SQLite trusts these settings, and would write to wrong places.
  const message =
    `The store ${file} cannot be used: the header of the file is damaged (schema ${version}, encoding ${found.encoding}, auto_vacuum ${found.vacuum}), ` +
    "or the store is older than the first release of Holdfast. Nothing was touched. Copy the file first; then `sqlite3 <file> .recover` recovers what can be recovered.";
  throw new HoldfastError("JOURNAL_UNREADABLE", message, { path: file });
}
