import { HoldfastError } from "holdfast";
import type { Database, Query, Row } from "../connection/database.ts";
import { assertEngine } from "../connection/probe.ts";
import { codeOf } from "../failure.ts";
import { settledRows } from "./list-columns.ts";
import { monthOf, partitionName, rangeOf } from "./months.ts";
import { partitionFunction } from "./partition-function.ts";
import { makePartitions, type PartitionOptions } from "./partitions.ts";
import { leanSearch, searchTables } from "./search-tables.ts";

/** An arbitrary lock number (`hold`, in hexadecimal): one migration at a time. */
export const MIGRATION_LOCK = 0x686f6c64;
/** The first version with everything the statements use (`string_to_table`). */
const OLDEST_SERVER = 140_000;
/** A migration may take this long, and others wait this long for it. The server ends one that nobody waits for. */
const MIGRATION_MS = 10 * 60_000;
const LOOK_AGAIN_MS = 50;
/**
 * A migration locks tables for a moment, and while it waits for such a lock, everybody else waits behind it. So it
 * gives up soon and tries again after a pause, which doubles up to the maximum: a backup may read for hours.
 */
const MIGRATION_LOCK_TIMEOUT = "50ms";
const PAUSE_MS = 100;
const PAUSE_MS_MAX = 5000;
/** The tables with rows of a session by place, besides `heads` and `lines`: they are deleted with it. */
export const PLACE_TABLES: readonly string[] = ["segments", "catalogue"];

/**
 * `heads` has one row per session: its newest seq, and who may write. Every append updates it, so no column that an
 * append changes is indexed, and pages have room for new versions (S24). A session lives in a `place`, which is its id,
 * unless that id is already used by a session in the trash. `workers` says how long each owner counts as alive: one row
 * to extend, however many leases it has (S26).
 *
 * `lines` holds the journals: a row is one line, byte for byte, without its newline. `segments` says where each segment
 * begins. `catalogue` is derived: a row is correct as of its `head`, and readers bring it up to date with later lines
 * (S20).
 */
const migrations: readonly ((schema: string) => string)[] = [
  (schema) => `
    CREATE TABLE ${schema}.workers (
      owner uuid PRIMARY KEY,
      expires timestamptz NOT NULL,
      watched boolean NOT NULL
    ) WITH (fillfactor = 50);
    CREATE TABLE ${schema}.heads (
      place uuid PRIMARY KEY,
      id uuid NOT NULL,
      head bigint NOT NULL,
      owner uuid,
      fence bigint NOT NULL,
      holder jsonb,
      trashed timestamptz
    ) WITH (fillfactor = 50);
    CREATE UNIQUE INDEX heads_by_id ON ${schema}.heads (id) WHERE trashed IS NULL;
    CREATE INDEX heads_trashed ON ${schema}.heads (trashed) WHERE trashed IS NOT NULL;
    CREATE TABLE ${schema}.segments (
      place uuid NOT NULL,
      number integer NOT NULL,
      epoch integer NOT NULL,
      first bigint NOT NULL,
      PRIMARY KEY (place, number)
    );
    CREATE TABLE ${schema}.catalogue (
      place uuid PRIMARY KEY,
      id uuid NOT NULL,
      at text COLLATE "C" NOT NULL,
      head bigint NOT NULL,
      closed boolean NOT NULL,
      summary jsonb
    ) WITH (fillfactor = 70);
    CREATE INDEX catalogue_by_time ON ${schema}.catalogue (at DESC, id DESC);
    CREATE INDEX catalogue_open ON ${schema}.catalogue (place) WHERE NOT closed;
    CREATE INDEX catalogue_by_member ON ${schema}.catalogue USING gin (summary jsonb_path_ops);
    CREATE TABLE ${schema}.lines (
      place uuid NOT NULL,
      seq bigint NOT NULL,
      line text NOT NULL,
      PRIMARY KEY (place, seq)
    ) PARTITION BY RANGE (place);
    CREATE TABLE ${schema}.lines_other PARTITION OF ${schema}.lines DEFAULT;`,
  searchTables,
  // Lists are ordered by `at`; `written` is the time of the newest record, if that differs. Workers of an earlier
  // version do not know this column and leave it alone.
  (schema) => `
    ALTER TABLE ${schema}.catalogue ADD COLUMN written text;
    ALTER TABLE ${schema}.texts_sessions ADD COLUMN cut boolean NOT NULL DEFAULT false;`,
  // Everything here is quick however large the tables are: no row is rewritten, and no index is built over existing
  // rows.
  (schema) => [attemptColumns, settledRows, leanSearch, partitionFunction].map((part) => part(schema)).join("\n"),
];

/**
 * `attempt`: which call took the lease, so that a statement that arrives late does not take it again. `fence`: that of
 * the writer whose row it is.
 */
function attemptColumns(schema: string): string {
  return `
    ALTER TABLE ${schema}.heads ADD COLUMN attempt uuid;
    ALTER TABLE ${schema}.catalogue ADD COLUMN fence bigint NOT NULL DEFAULT 0;`;
}

/**
 * What has been added to the newest version since. Workers that know nothing of it work as before, and open a database
 * that has it: each part only adds columns with a default, or tables of which nobody else needs to know. The next
 * version takes these parts over.
 */
const additions: readonly ((schema: string) => string)[] = [];

/** The newest migration. A database with a newer one is refused. */
export const SCHEMA_VERSION = migrations.length;
/** How many additions to it this version of Holdfast knows. A database with more of them is used as it is. */
export const SCHEMA_MINOR = additions.length;

/** Brings a schema from one version to a later one, without additions. */
export function upgradeStatements(schema: string, from: number, to: number): string[] {
  return [
    `CREATE TABLE IF NOT EXISTS ${schema}.holdfast_migrations (version integer PRIMARY KEY, made timestamptz NOT NULL DEFAULT now());`,
    ...migrations.slice(from, to).map((migration) => migration(schema)),
    `INSERT INTO ${schema}.holdfast_migrations (version) SELECT generate_series(${from + 1}, ${to});`,
  ];
}

/** Makes the additions to the newest version that are missing. */
function additionStatements(schema: string, from: number): string[] {
  return [
    `ALTER TABLE ${schema}.holdfast_migrations ADD COLUMN IF NOT EXISTS minor integer NOT NULL DEFAULT 0;`,
    ...additions.slice(from).map((addition) => addition(schema)),
    `UPDATE ${schema}.holdfast_migrations SET minor = ${SCHEMA_MINOR} WHERE version = ${SCHEMA_VERSION};`,
  ];
}

export interface MigrateOptions extends PartitionOptions {
  /** How long to wait for a server that is away. */
  readonly patienceMs: number;
}

/** What the server reports about itself, for `warnings`. */
export interface Server {
  readonly fsync: boolean;
}

/**
 * Brings the schema up to date: forward only, one worker at a time, all or nothing. If it is up to date, nothing is
 * locked and read access is enough. Throws FORMAT_NEWER, STORE_URL_INVALID, STORE_FORBIDDEN.
 */
export async function migrate(database: Database, options: MigrateOptions): Promise<Server> {
  const { schema } = database;
  const nextMonth = partitionName(monthOf(options.nowMs, Math.min(1, options.monthsAhead)));
  const look = (query: Query): Promise<Row> => lookAt(schema, nextMonth, query);
  const patiently: Query = (text, values) =>
    database.retry("open the store", () => database.once(text, values), options.patienceMs);
  const found = await look(patiently);
  assertEngine(database.name, found["engine"]);
  database.serverVersion = Number(found["version"]);
  assertVersion(database);
  assertEncoding(database, found["encoding"]);
  const server = { fsync: found["fsync"] !== "off" };
  if (isCurrent(await versionIn(database, found, patiently))) {
    if (found["month"] !== true) await makePartitions(database, options);
    return server;
  }
  await whenUnlocked(database, async (query) => {
    await takeTurn(database, query);
    // Another worker may have been first.
    const now = await look(query);
    const schemaVersion = await versionIn(database, now, query);
    if (isCurrent(schemaVersion)) return;
    const { version, minor } = schemaVersion;
    if (now["schema"] !== true) await query(`CREATE SCHEMA ${schema}`);
    await query(`SET LOCAL lock_timeout = '${MIGRATION_LOCK_TIMEOUT}'; SET LOCAL statement_timeout = ${MIGRATION_MS}`);
    // An update must not depend on the partitions: a month whose first lines are in the default one can have none.
    const partitions = version === 0 ? partitionsAhead(schema, options) : [];
    const upgrade = version === SCHEMA_VERSION ? [] : upgradeStatements(schema, version, SCHEMA_VERSION);
    const statements = [...upgrade, ...additionStatements(schema, minor), ...partitions];
    await query(statements.join("\n"), [], MIGRATION_MS);
  });
  if (found["ours"] === true && found["month"] !== true) await makePartitions(database, options);
  return server;
}

/** Runs the transaction again while others use the tables that it locks. */
async function whenUnlocked(database: Database, work: (query: Query) => Promise<void>): Promise<void> {
  const until = performance.now() + MIGRATION_MS;
  for (let pauseMs = PAUSE_MS; ; pauseMs = Math.min(pauseMs * 2, PAUSE_MS_MAX)) {
    try {
      return await database.transaction("create the schema", work);
    } catch (error) {
      const isLocked = codeOf((error as { cause?: unknown }).cause) === "55P03";
      if (!isLocked || performance.now() + pauseMs > until) throw error;
    }
    await database.pause(pauseMs);
  }
}

/** Polls with short statements: one that waits for the lock would look like a silent server. */
async function takeTurn(database: Database, query: Query): Promise<void> {
  const until = performance.now() + MIGRATION_MS;
  for (;;) {
    const { rows } = await query("SELECT pg_try_advisory_xact_lock($1) AS ours", [MIGRATION_LOCK], database.answerMs);
    if (rows[0]?.["ours"] === true) return;
    if (performance.now() > until) {
      const message = `Another worker is still creating the schema of ${database.name}; gave up waiting. Nothing was touched. Check who holds an advisory lock there (pg_locks), and try again.`;
      throw new HoldfastError("STORE_IO", message, { database: database.name });
    }
    await database.pause(LOOK_AGAIN_MS);
  }
}

/** For a new schema, in which nothing can be in the way. */
function partitionsAhead(schema: string, { nowMs, monthsAhead }: PartitionOptions): string[] {
  return Array.from({ length: monthsAhead + 1 }, (_, ahead) => {
    const month = monthOf(nowMs, ahead);
    const { from, to } = rangeOf(month);
    return `CREATE TABLE IF NOT EXISTS ${schema}.${partitionName(month)} PARTITION OF ${schema}.lines FOR VALUES FROM ('${from}') TO ('${to}');`;
  });
}

/** Returns null or false for what does not exist, because an error would end the transaction. */
async function lookAt(schema: string, month: string, query: Query): Promise<Row> {
  const { rows } = await query(
    `SELECT current_setting('server_encoding') AS encoding, current_setting('fsync') AS fsync, current_setting('server_version_num') AS version, version() AS engine,
      to_regnamespace($1) IS NOT NULL AS schema,
      to_regclass($1 || '.holdfast_migrations') IS NOT NULL AS ours,
      to_regclass($1 || $2) IS NOT NULL AS month,
      EXISTS (SELECT FROM pg_class WHERE relnamespace = to_regnamespace($1) AND relkind IN ('r', 'p', 'v', 'm', 'S', 'f')) AS used`,
    [schema, `.${month}`],
  );
  return rows[0]!;
}

interface SchemaVersion {
  /** The newest migration that has run; 0 if there is none. */
  readonly version: number;
  /** How many additions to it have been made. */
  readonly minor: number;
}

function isCurrent({ version, minor }: SchemaVersion): boolean {
  return version === SCHEMA_VERSION && minor >= SCHEMA_MINOR;
}

async function versionIn({ name, schema }: Database, found: Row, query: Query): Promise<SchemaVersion> {
  if (found["ours"] !== true) {
    // Do not put our tables into a schema that another program uses.
    if (found["used"] !== true) return { version: 0, minor: 0 };
    const message = `The schema ${schema} of ${name} has tables of another program. Nothing was touched. Choose another schema: add "?schema=…" to the address.`;
    throw new HoldfastError("STORE_URL_INVALID", message, { schema });
  }
  // The column may not be there yet.
  const { rows } = await query(
    `SELECT version, to_jsonb(m) ->> 'minor' AS minor FROM ${schema}.holdfast_migrations AS m ORDER BY version DESC LIMIT 1`,
  );
  const version = Number(rows[0]?.["version"] ?? 0);
  const minor = version === SCHEMA_VERSION ? Number(rows[0]?.["minor"] ?? 0) : 0;
  if (version <= SCHEMA_VERSION) return { version, minor };
  const message =
    `The database ${name} has schema version ${version}, but this version of Holdfast supports only ${SCHEMA_VERSION}. ` +
    "Nothing was touched, and no data is lost. Use a newer version of Holdfast.";
  throw new HoldfastError("FORMAT_NEWER", message, { found: version, known: SCHEMA_VERSION });
}

function assertVersion({ name, serverVersion }: Database): void {
  if (serverVersion >= OLDEST_SERVER) return;
  const message = `The server of ${name} is PostgreSQL ${Math.floor(serverVersion / 10_000)}, which is too old. Nothing was touched. Use PostgreSQL ${OLDEST_SERVER / 10_000} or newer.`;
  throw new HoldfastError("STORE_URL_INVALID", message, { version: serverVersion });
}

function assertEncoding({ name }: Database, encoding: unknown): void {
  if (encoding === "UTF8") return;
  const message = `The database ${name} uses the encoding ${String(encoding)}, which cannot store every message. Nothing was touched. Use a database with UTF8 encoding.`;
  throw new HoldfastError("STORE_URL_INVALID", message, { encoding: String(encoding) });
}
