import { HoldfastError } from "holdfast";
import type { Database, Query } from "./database.ts";
import { monthOf, partitionName, rangeOf } from "./months.ts";

/** Of the newest migration below. A newer one in the database is refused. */
export const SCHEMA_VERSION = 1;

/** Any number that no other program takes: one migration at a time (`hold`, in hexadecimal). */
const MIGRATION_LOCK = 0x686f6c64;
/** Partitions are made so many months ahead; what no partition is made for goes to the default one. */
const MONTHS_AHEAD = 12;

/**
 * `heads` has one row for each session: its newest seq, and who may write. It is updated by every append, so nothing in it that an append changes is indexed, and pages have room for new versions (S24).
 * A session lives in a `place`, which is its id; only one whose id was used before, and is in the trash, has another.
 *
 * `lines` holds the journals: a row is one line, byte for byte, without its newline. `segments` says where each segment begins. `catalogue` is derived: a row is true as of its `head`, and readers carry it on over the lines
 * that came later (S20).
 */
const migrations: readonly ((schema: string, nowMs: number) => readonly string[])[] = [
  (schema, nowMs) => [
    `CREATE TABLE ${schema}.heads (
      place uuid PRIMARY KEY,
      id uuid NOT NULL,
      head bigint NOT NULL,
      owner uuid,
      fence bigint NOT NULL,
      expires timestamptz,
      holder jsonb,
      watched boolean NOT NULL DEFAULT false,
      trashed timestamptz
    ) WITH (fillfactor = 50)`,
    `CREATE UNIQUE INDEX heads_by_id ON ${schema}.heads (id) WHERE trashed IS NULL`,
    `CREATE INDEX heads_trashed ON ${schema}.heads (trashed) WHERE trashed IS NOT NULL`,
    `CREATE TABLE ${schema}.segments (
      place uuid NOT NULL,
      number integer NOT NULL,
      epoch integer NOT NULL,
      first bigint NOT NULL,
      PRIMARY KEY (place, number)
    )`,
    `CREATE TABLE ${schema}.catalogue (
      place uuid PRIMARY KEY,
      id uuid NOT NULL,
      at text COLLATE "C" NOT NULL,
      head bigint NOT NULL,
      closed boolean NOT NULL,
      summary jsonb
    ) WITH (fillfactor = 70)`,
    `CREATE INDEX catalogue_by_time ON ${schema}.catalogue (at DESC, id DESC)`,
    `CREATE INDEX catalogue_open ON ${schema}.catalogue (place) WHERE NOT closed`,
    `CREATE INDEX catalogue_by_member ON ${schema}.catalogue USING gin (summary jsonb_path_ops)`,
    `CREATE TABLE ${schema}.lines (
      place uuid NOT NULL,
      seq bigint NOT NULL,
      line text NOT NULL,
      PRIMARY KEY (place, seq)
    ) PARTITION BY RANGE (place)`,
    `CREATE TABLE ${schema}.lines_other PARTITION OF ${schema}.lines DEFAULT`,
    ...partitionsAhead(schema, nowMs),
  ],
];

/** The statements that make the partitions of this month and of those to come; they do nothing where there is one. */
export function partitionsAhead(schema: string, nowMs: number): string[] {
  return Array.from({ length: MONTHS_AHEAD + 1 }, (_, ahead) => {
    const month = monthOf(nowMs, ahead);
    const { from, to } = rangeOf(month);
    return `CREATE TABLE IF NOT EXISTS ${schema}.${partitionName(month)} PARTITION OF ${schema}.lines FOR VALUES FROM ('${from}') TO ('${to}')`;
  });
}

/**
 * Brings the schema up to date: forward only, one worker at a time, all of it or nothing. Where it is up to date, nothing is locked and no right but to read is needed. Throws FORMAT_NEWER, STORE_URL_INVALID, STORE_FORBIDDEN.
 */
export async function migrate(database: Database, nowMs: number): Promise<void> {
  await assertEncoding(database);
  const found = await versionIn(database, (text, values) => database.query("read the schema", text, values));
  assertKnown(found, database);
  if (found === SCHEMA_VERSION) return;
  await database.transaction("make the schema", async (query) => {
    await query("SELECT pg_advisory_xact_lock($1)", [MIGRATION_LOCK]);
    const { schema } = database;
    // Another worker may have been first.
    const now = await versionIn(database, query);
    assertKnown(now, database);
    if (now === 0) {
      await query(`CREATE SCHEMA IF NOT EXISTS ${schema}`);
      await query(
        `CREATE TABLE IF NOT EXISTS ${schema}.migrations (version integer PRIMARY KEY, made timestamptz NOT NULL DEFAULT now())`,
      );
    }
    for (const [index, statements] of migrations.entries()) {
      if (index < now) continue;
      for (const statement of statements(schema, nowMs)) await query(statement);
      await query(`INSERT INTO ${schema}.migrations (version) VALUES ($1)`, [index + 1]);
    }
  });
}

/** The newest migration that was made; 0 if there is none. */
async function versionIn({ name, schema }: Database, query: Query): Promise<number> {
  // `to_regclass` answers null where nothing is there, which is no error that would end a transaction.
  const there = await query("SELECT to_regclass($1) IS NOT NULL AS there", [`${schema}.migrations`]);
  if (there.rows[0]?.["there"] !== true) {
    await assertEmpty(name, schema, query);
    return 0;
  }
  const { rows } = await query(`SELECT coalesce(max(version), 0) AS version FROM ${schema}.migrations`);
  return Number(rows[0]?.["version"]);
}

/** A schema of that name that somebody else uses is not filled with tables of ours. */
async function assertEmpty(name: string, schema: string, query: Query): Promise<void> {
  const { rows } = await query("SELECT count(*) AS tables FROM pg_tables WHERE schemaname = $1", [
    schema.replace(/^"|"$/g, "").replaceAll('""', '"'),
  ]);
  if (Number(rows[0]?.["tables"]) === 0) return;
  const message = `The schema ${schema} of ${name} holds tables of another program. Nothing was touched. Name another schema: "?schema=…" behind the address.`;
  throw new HoldfastError("STORE_URL_INVALID", message, { schema });
}

function assertKnown(found: number, { name }: Database): void {
  if (found <= SCHEMA_VERSION) return;
  const message =
    `The database ${name} has the schema ${found}, and this version of Holdfast knows ${SCHEMA_VERSION} only. ` +
    "Nothing was touched and nothing is lost. Open it with a newer version of Holdfast.";
  throw new HoldfastError("FORMAT_NEWER", message, { found, known: SCHEMA_VERSION });
}

async function assertEncoding(database: Database): Promise<void> {
  const { rows } = await database.query("look at the database", "SHOW server_encoding");
  const encoding = String(rows[0]?.["server_encoding"]);
  if (encoding === "UTF8") return;
  const message = `The database ${database.name} keeps text as ${encoding}, which cannot hold every message. Nothing was touched. Use a database with the encoding UTF8.`;
  throw new HoldfastError("STORE_URL_INVALID", message, { encoding });
}
