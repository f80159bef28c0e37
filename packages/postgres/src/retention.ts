import type pg from "pg";
import { parseAddress, quoteName, resolveAddress } from "./address.ts";
import { Database, type Query } from "./database.ts";
import { codeOf } from "./failure.ts";
import { isFree } from "./leases.ts";
import { monthNamed, monthOf, rangeOf } from "./months.ts";
import { makePool, tolerate } from "./pools.ts";
import { PLACE_TABLES } from "./schema.ts";

const WEEK_MS = 7 * 24 * 3600 * 1000;
const PATIENCE_MS = 5000;
const ANSWER_MS = 60_000;
/** All appends wait while a partition is dropped, and the drop waits for readers: give up soon, and try again. */
const LOCK_TIMEOUT = "500ms";
const TRIES = 20;

export interface DropMonthsOptions {
  /** Drops months that ended longer ago than this. */
  readonly olderThanMs: number;
  /** A month is kept if any of its sessions was written within this time. Default: a week. */
  readonly graceMs?: number;
  readonly schema?: string;
  readonly clock?: () => number;
}

export interface DroppedMonths {
  /** `2026-11`, and the number of sessions dropped with it. */
  readonly dropped: readonly { readonly month: string; readonly sessions: number }[];
  /** Old enough, but in use. */
  readonly kept: readonly { readonly month: string; readonly why: "written lately" | "being written" | "locked" }[];
}

/**
 * Deletes all sessions created in months that ended long enough ago, by dropping the partitions of these months, at the
 * same cost however much they hold. A month with a session that is being written, or was written within the grace time,
 * is kept as a whole. The deletion is permanent: nothing goes to the trash. Needs the role that owns the tables. To
 * delete single sessions, use `delete` and `gc`.
 */
export async function dropMonths(place: string | pg.Pool, options: DropMonthsOptions): Promise<DroppedMonths> {
  const address = typeof place === "string" ? parseAddress(await resolveAddress(place)) : null;
  const schema = options.schema === undefined ? (address?.schema ?? quoteName("holdfast")) : quoteName(options.schema);
  const own = address
    ? makePool({ url: address.url, connections: 1, app: "holdfast retention", answerMs: ANSWER_MS })
    : null;
  const pool = own?.pool ?? (place as pg.Pool);
  const stopTolerating = own ? null : tolerate(pool);
  const database = new Database(pool, {
    name: address?.name ?? "postgres:(a pool)",
    schema,
    patienceMs: PATIENCE_MS,
    answerMs: ANSWER_MS,
  });
  try {
    const dropped: { month: string; sessions: number }[] = [];
    const kept: { month: string; why: DroppedMonths["kept"][number]["why"] }[] = [];
    const { olderThanMs, graceMs = WEEK_MS, clock = Date.now } = options;
    const now = clock();
    for (const { name, month } of await partitionsOf(database)) {
      if (monthOf(month, 1) > now - olderThanMs) continue;
      const shown = new Date(month).toISOString().slice(0, 7);
      const answer = await dropOne(database, name, month, new Date(now - graceMs).toISOString());
      if (typeof answer === "number") dropped.push({ month: shown, sessions: answer });
      else kept.push({ month: shown, why: answer });
    }
    return { dropped, kept };
  } finally {
    await own?.end();
    stopTolerating?.();
  }
}

async function partitionsOf(database: Database): Promise<{ readonly name: string; readonly month: number }[]> {
  const { rows } = await database.query(
    "list the partitions",
    `SELECT c.relname AS name FROM pg_inherits AS i JOIN pg_class AS c ON c.oid = i.inhrelid
    WHERE i.inhparent = to_regclass($1) ORDER BY c.relname`,
    [`${database.schema}.lines`],
  );
  return rows.flatMap(({ name }) => {
    const month = monthNamed(String(name));
    return month === null ? [] : [{ name: String(name), month }];
  });
}

async function dropOne(
  database: Database,
  name: string,
  month: number,
  writtenSince: string,
): Promise<number | DroppedMonths["kept"][number]["why"]> {
  for (let tries = 1; ; tries++) {
    try {
      return await database.transaction("drop a month", (query) =>
        dropIn(query, database.schema, name, month, writtenSince),
      );
    } catch (error) {
      const code = codeOf((error as { cause?: unknown }).cause);
      // Somebody is reading from it, or an append conflicted with the drop.
      if (code !== "55P03" && code !== "40P01") throw error;
      if (tries === TRIES) return "locked";
    }
  }
}

/** Lock the rows of the sessions first: anyone about to open one waits, and then finds none. */
async function dropIn(
  query: Query,
  schema: string,
  name: string,
  month: number,
  writtenSince: string,
): Promise<number | "written lately" | "being written"> {
  const { from, to } = rangeOf(month);
  await query(`SET LOCAL lock_timeout = '${LOCK_TIMEOUT}'`);
  await query(`SELECT FROM ${schema}.heads WHERE place >= $1 AND place < $2 ORDER BY place FOR UPDATE`, [from, to]);
  const { rows } = await query(
    `SELECT count(*) AS sessions, bool_or(NOT (${isFree(schema)})) AS held, bool_or(coalesce(c.written, c.at) >= $3) AS lately
    FROM ${schema}.heads AS h LEFT JOIN ${schema}.catalogue AS c USING (place) WHERE h.place >= $1 AND h.place < $2`,
    [from, to, writtenSince],
  );
  const { sessions, held, lately } = rows[0] ?? {};
  if (held === true) return "being written";
  if (lately === true) return "written lately";
  for (const table of ["heads", ...PLACE_TABLES])
    await query(`DELETE FROM ${schema}.${table} WHERE place >= $1 AND place < $2`, [from, to]);
  await query(`DROP TABLE ${schema}.${name}`);
  return Number(sessions);
}
