import { HoldfastError } from "holdfast";
import type { Database, Query, Row } from "./database.ts";
import { codeOf } from "./failure.ts";
import { monthOf, partitionName, rangeOf } from "./months.ts";
import { searchTables } from "./search.ts";

/** Any number that no other program takes: one migration at a time (`hold`, in hexadecimal). */
export const MIGRATION_LOCK = 0x686f6c64;
/** It has all that the statements use (`string_to_table`). */
const OLDEST_SERVER = 140_000;
/** A migration may take its time, and others wait for it as long. What nobody waits for is ended by the server. */
const MIGRATION_MS = 10 * 60_000;
const LOOK_AGAIN_MS = 50;
/** Partitions are made so many months ahead; what no partition is made for goes to the default one. */
export const MONTHS_AHEAD = 12;

/** Whoever reads for long, as a backup does, keeps a partition from being made; and what waits for that keeps others from the lines that are in none. So it is not waited for. */
const LOCK_TIMEOUT = "500ms";

/** Why a partition may be left for later: lines go to the default one until then. */
const MAY_WAIT = new Set([
  "42501", // insufficient_privilege: a worker's role may not
  "25006", // read_only_sql_transaction: a reader, or a standby
  "42P07", // duplicate_table: another worker is just doing it
  "23505", // unique_violation: the same
  "23514", // check_violation: a month whose first lines are in the default partition stays there
  "55P03", // lock_not_available
]);

/** The tables that have rows of a session beside `heads` and `lines`, by its place: they go with it. */
export const PLACE_TABLES: readonly string[] = ["segments", "catalogue"];

/**
 * `heads` has one row for each session: its newest seq, and who may write. It is updated by every append, so nothing in it that an append changes is indexed, and pages have room for new versions (S24).
 * A session lives in a `place`, which is its id; only one whose id was used before, and is in the trash, has another. `workers` says until when each owner is taken to live: one row to extend, whatever it holds (S26).
 *
 * `lines` holds the journals: a row is one line, byte for byte, without its newline. `segments` says where each segment begins. `catalogue` is derived: a row is true as of its `head`, and readers carry it on over the lines
 * that came later (S20).
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
  // `at` is what lists are ordered by, and `written` the time of the newest record where that is another. Workers of an earlier version know nothing of it, and leave it as it is.
  (schema) => `
    ALTER TABLE ${schema}.catalogue ADD COLUMN written text;
    ALTER TABLE ${schema}.texts_sessions ADD COLUMN cut boolean NOT NULL DEFAULT false;`,
];

/** Of the newest migration. A newer one in the database is refused. */
export const SCHEMA_VERSION = migrations.length;

export interface MigrateOptions {
  readonly nowMs: number;
  readonly monthsAhead: number;
  /** How long a server that is away is waited for. */
  readonly patienceMs: number;
}

/** What the server says of itself, for `warnings`. */
export interface Server {
  readonly fsync: boolean;
}

/**
 * Brings the schema up to date: forward only, one worker at a time, all of it or nothing. Where it is up to date, nothing is locked and no right but to read is needed. Throws FORMAT_NEWER, STORE_URL_INVALID, STORE_FORBIDDEN.
 */
export async function migrate(database: Database, options: MigrateOptions): Promise<Server> {
  const { schema } = database;
  const nextMonth = partitionName(monthOf(options.nowMs, Math.min(1, options.monthsAhead)));
  const look = (query: Query): Promise<Row> => lookAt(schema, nextMonth, query);
  const patiently: Query = (text, values) =>
    database.retry("open the store", () => database.once(text, values), options.patienceMs);
  const found = await look(patiently);
  database.serverVersion = Number(found["version"]);
  assertVersion(database);
  assertEncoding(database, found["encoding"]);
  const server = { fsync: found["fsync"] !== "off" };
  if ((await versionIn(database, found, patiently)) === SCHEMA_VERSION) {
    if (found["month"] !== true) await makePartitions(database, options);
    return server;
  }
  await database.transaction("make the schema", async (query) => {
    await takeTurn(database, query);
    // Another worker may have been first.
    const now = await look(query);
    const version = await versionIn(database, now, query);
    if (version === SCHEMA_VERSION) return;
    if (now["schema"] !== true) await query(`CREATE SCHEMA ${schema}`);
    const statements = [
      `CREATE TABLE IF NOT EXISTS ${schema}.holdfast_migrations (version integer PRIMARY KEY, made timestamptz NOT NULL DEFAULT now());`,
      ...migrations.slice(version).map((migration) => migration(schema)),
      ...partitionsAhead(schema, options),
      `INSERT INTO ${schema}.holdfast_migrations (version) SELECT generate_series(${version + 1}, ${SCHEMA_VERSION})`,
    ];
    await query(statements.join("\n"), [], MIGRATION_MS);
  });
  return server;
}

/** Asked for again and again, in short statements: one that waits for the lock could not be told from a server that is silent. */
async function takeTurn(database: Database, query: Query): Promise<void> {
  const until = performance.now() + MIGRATION_MS;
  for (;;) {
    const { rows } = await query("SELECT pg_try_advisory_xact_lock($1) AS ours", [MIGRATION_LOCK], database.answerMs);
    if (rows[0]?.["ours"] === true) return;
    if (performance.now() > until) {
      const message = `The schema of ${database.name} is being made by another worker, and that does not end. Nothing was touched. See who holds an advisory lock there (pg_locks), and try again.`;
      throw new HoldfastError("STORE_IO", message, { database: database.name });
    }
    await database.pause(LOOK_AGAIN_MS);
  }
}

/** For this month and those to come, where there are none yet. Does nothing where this role may not: lines go to the default partition then. */
export async function makePartitions(
  database: Database,
  options: Pick<MigrateOptions, "nowMs" | "monthsAhead">,
): Promise<void> {
  for (const statement of partitionsAhead(database.schema, options)) {
    try {
      await database.transaction("make the partitions of the months to come", async (query) => {
        await query(`SET LOCAL lock_timeout = '${LOCK_TIMEOUT}'`);
        await query(statement);
      });
    } catch (error) {
      if (!MAY_WAIT.has(codeOf((error as { cause?: unknown }).cause) ?? "")) throw error;
    }
  }
}

function partitionsAhead(
  schema: string,
  { nowMs, monthsAhead }: Pick<MigrateOptions, "nowMs" | "monthsAhead">,
): string[] {
  return Array.from({ length: monthsAhead + 1 }, (_, ahead) => {
    const month = monthOf(nowMs, ahead);
    const { from, to } = rangeOf(month);
    return `CREATE TABLE IF NOT EXISTS ${schema}.${partitionName(month)} PARTITION OF ${schema}.lines FOR VALUES FROM ('${from}') TO ('${to}');`;
  });
}

/** Answers null or false where nothing is there, which is no error that would end a transaction. */
async function lookAt(schema: string, month: string, query: Query): Promise<Row> {
  const { rows } = await query(
    `SELECT current_setting('server_encoding') AS encoding, current_setting('fsync') AS fsync, current_setting('server_version_num') AS version,
      to_regnamespace($1) IS NOT NULL AS schema,
      to_regclass($1 || '.holdfast_migrations') IS NOT NULL AS ours,
      to_regclass($1 || $2) IS NOT NULL AS month,
      EXISTS (SELECT FROM pg_class WHERE relnamespace = to_regnamespace($1) AND relkind IN ('r', 'p', 'v', 'm', 'S', 'f')) AS used`,
    [schema, `.${month}`],
  );
  return rows[0]!;
}

/** The newest migration that was made; 0 if there is none. */
async function versionIn({ name, schema }: Database, found: Row, query: Query): Promise<number> {
  if (found["ours"] !== true) {
    // A schema of that name that somebody else uses is not filled with tables of ours.
    if (found["used"] !== true) return 0;
    const message = `The schema ${schema} of ${name} holds tables of another program. Nothing was touched. Name another schema: "?schema=…" behind the address.`;
    throw new HoldfastError("STORE_URL_INVALID", message, { schema });
  }
  const { rows } = await query(`SELECT coalesce(max(version), 0) AS version FROM ${schema}.holdfast_migrations`);
  const version = Number(rows[0]?.["version"]);
  if (version <= SCHEMA_VERSION) return version;
  const message =
    `The database ${name} has the schema ${version}, and this version of Holdfast knows ${SCHEMA_VERSION} only. ` +
    "Nothing was touched and nothing is lost. Open it with a newer version of Holdfast.";
  throw new HoldfastError("FORMAT_NEWER", message, { found: version, known: SCHEMA_VERSION });
}

function assertVersion({ name, serverVersion }: Database): void {
  if (serverVersion >= OLDEST_SERVER) return;
  const message = `The server of ${name} is PostgreSQL ${Math.floor(serverVersion / 10_000)}, which is too old. Nothing was touched. Use PostgreSQL ${OLDEST_SERVER / 10_000} or newer.`;
  throw new HoldfastError("STORE_URL_INVALID", message, { version: serverVersion });
}

function assertEncoding({ name }: Database, encoding: unknown): void {
  if (encoding === "UTF8") return;
  const message = `The database ${name} keeps text as ${String(encoding)}, which cannot hold every message. Nothing was touched. Use a database with the encoding UTF8.`;
  throw new HoldfastError("STORE_URL_INVALID", message, { encoding: String(encoding) });
}
