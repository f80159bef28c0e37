import { AGE_MS_MAX, checkNumbers, duration, GRACE_MS } from "holdfast/internal";
import type pg from "pg";
import { parseAddress, quoteName, resolveAddress } from "../connection/address.ts";
import { Database, type Query } from "../connection/database.ts";
import { makePool, tolerate } from "../connection/pools.ts";
import { codeOf } from "../failure.ts";
import { isFree } from "../leases/leases.ts";
import { monthNamed, monthOf, monthOfId, rangeOf } from "../schema/months.ts";
import { PLACE_TABLES } from "../schema/schema.ts";

const PATIENCE_MS = 5000;
const ANSWER_MS = 60_000;
/** While a lock on all lines is waited for, and while it is held, all appends wait. Two tables are locked. */
const LOCK_TIMEOUT = "40ms";
/** Between two tries; doubles up to the maximum. */
const PAUSE_MS = 200;
const PAUSE_MS_MAX = 10_000;
const WAIT_MS = 60_000;
/** How many sessions are hidden, or removed, at a time. */
const TOGETHER = 500;

export interface DropMonthsOptions {
  /** Drops months that ended longer ago than this. */
  readonly olderThanMs: number;
  /** A month is kept if any of its sessions was written within this time. Default: a week. */
  readonly graceMs?: number;
  /** How long to wait for readers, such as a backup, before months are kept as "locked". Default: a minute. */
  readonly waitMs?: number;
  readonly schema?: string;
}

const NUMBERS = {
  olderThanMs: duration(AGE_MS_MAX),
  // A negative one counts only what was written in the future as written lately.
  graceMs: duration(AGE_MS_MAX, -AGE_MS_MAX),
  waitMs: duration(AGE_MS_MAX),
} as const;

type KeepReason = DroppedMonths["kept"][number]["why"];

export interface DroppedMonths {
  /** `2026-11`, and the number of sessions dropped with it. */
  readonly dropped: readonly { readonly month: string; readonly sessions: number }[];
  /** Old enough, but in use. */
  readonly kept: readonly { readonly month: string; readonly why: "written lately" | "being written" | "locked" }[];
}

/**
 * Deletes all sessions created in months that ended long enough ago by the server's clock, by dropping the partitions
 * of these months. Nothing else is blocked for longer than 100 ms: to drop a partition, all appends are locked out for
 * a moment, and if that is not possible at once, it is tried again later. A month with a session that is being written,
 * or was written within the grace time, is kept as a whole. The deletion is permanent: nothing goes to the trash. Needs
 * the role that owns the tables. To delete single sessions, use `delete` and `gc`. Throws QUERY_INVALID for a number
 * that means nothing.
 */
export async function dropMonths(place: string | pg.Pool, options: DropMonthsOptions): Promise<DroppedMonths> {
  // Every month is older than NaN.
  checkNumbers("dropMonths", { ...options, olderThanMs: options.olderThanMs ?? Number.NaN }, NUMBERS);
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
    const { olderThanMs, graceMs = GRACE_MS, waitMs = WAIT_MS } = options;
    const now = await serverNow(database);
    // For all of them: a reader of lines locks every month.
    const until = performance.now() + waitMs;
    const partitions = await partitionsOf(database);
    await resolveHidden(database, new Set(partitions.map(({ month }) => month)));
    for (const { name, month } of partitions) {
      if (monthOf(month, 1) > now - olderThanMs) continue;
      const shown = new Date(month).toISOString().slice(0, 7);
      const one = { name, ...rangeOf(month), writtenSince: new Date(now - graceMs).toISOString(), until };
      const answer = await dropOne(database, one);
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

/** A worker's clock may be years ahead. */
async function serverNow(database: Database): Promise<number> {
  const { rows } = await database.query(
    "ask for the time",
    "SELECT extract(epoch FROM clock_timestamp()) * 1000 AS now",
  );
  return Number(rows[0]?.["now"]);
}

interface Month {
  /** The partition. */
  readonly name: string;
  readonly from: string;
  readonly to: string;
  readonly writtenSince: string;
  readonly until: number;
}

/**
 * Hides the sessions, a few at a time, then drops the partition, then removes their rows. A hidden session is in the
 * trash for ever, with its head negated: nobody can open, restore or collect it. If the month cannot be dropped, its
 * sessions are shown again; if this process dies, by the next call.
 */
async function dropOne(database: Database, month: Month): Promise<number | KeepReason> {
  // Nobody reads for long just now: hide nothing for the length of a backup.
  if (!(await whenUnlocked(database, month, async () => true))) return "locked";
  const hidden = await hide(database, month);
  if (typeof hidden !== "number") {
    await showRange(database, month);
    return hidden;
  }
  const isDropped = await whenUnlocked(database, month, async (query) => {
    // Created since with an id of that month.
    const { schema } = database;
    const { rows } = await query(
      `SELECT FROM ${schema}.heads WHERE trashed IS NULL AND id >= $1 AND id < $2 AND place >= $1 AND place < $2 LIMIT 1`,
      [month.from, month.to],
    );
    if (rows.length === 0) await query(`DROP TABLE ${schema}.${month.name}`);
    return rows.length === 0;
  });
  if (isDropped) {
    await removeRows(database, month);
    return hidden;
  }
  await showRange(database, month);
  return isDropped === null ? "locked" : "being written";
}

/** Runs `work` while nobody uses any line. Null: somebody always does. */
async function whenUnlocked<T>(
  database: Database,
  { until }: Month,
  work: (query: Query) => Promise<T>,
): Promise<T | null> {
  const { schema } = database;
  for (let pauseMs = PAUSE_MS; ; pauseMs = Math.min(pauseMs * 2, PAUSE_MS_MAX)) {
    try {
      return await database.transaction("drop a month", async (query) => {
        // The commit waits for no standby: everybody would wait with it.
        await query(`SET LOCAL lock_timeout = '${LOCK_TIMEOUT}'; SET LOCAL synchronous_commit = local`);
        await query(`LOCK TABLE ONLY ${schema}.lines, ${schema}.lines_other IN ACCESS EXCLUSIVE MODE`);
        return await work(query);
      });
    } catch (error) {
      const code = codeOf((error as { cause?: unknown }).cause);
      // Somebody is reading from it, or an append conflicted with the drop.
      if (code !== "55P03" && code !== "40P01") throw error;
      if (performance.now() + pauseMs > until) return null;
    }
    await database.pause(pauseMs);
  }
}

/** Returns how many sessions are hidden, or why they must be kept. */
async function hide(database: Database, month: Month): Promise<number | KeepReason> {
  let count = 0;
  for (;;) {
    const answer = await hideSome(database, month);
    if (typeof answer !== "number") return answer;
    if (answer === 0) return count;
    count += answer;
  }
}

async function hideSome(database: Database, { from, to, writtenSince }: Month): Promise<number | KeepReason> {
  const { schema } = database;
  const hideIn = async (query: Query): Promise<number | KeepReason> => {
    await query(`SET LOCAL lock_timeout = '${LOCK_TIMEOUT}'`);
    const { rows } = await query(
      `SELECT place, NOT (${isFree(schema)}) AS held FROM ${schema}.heads AS h
      WHERE place >= $1 AND place < $2 AND head > 0 ORDER BY place LIMIT ${TOGETHER} FOR UPDATE OF h`,
      [from, to],
    );
    if (rows.some((row) => row["held"] === true)) return "being written";
    const places = rows.map((row) => row["place"]);
    const lately = await query(
      `SELECT FROM ${schema}.catalogue WHERE place = ANY ($1::uuid[]) AND greatest(coalesce(written, at), coalesce(live_written, live_at)) >= $2 LIMIT 1`,
      [places, writtenSince],
    );
    if (lately.rows.length > 0) return "written lately";
    await query(
      `UPDATE ${schema}.heads SET head = -head, trashed = coalesce(trashed, 'infinity'), owner = NULL, holder = NULL WHERE place = ANY ($1::uuid[])`,
      [places],
    );
    return rows.length;
  };
  try {
    return await database.transaction("drop a month", hideIn);
  } catch (error) {
    if (codeOf((error as { cause?: unknown }).cause) === "55P03") return "being written";
    throw error;
  }
}

/** Hidden by a call that died: shown if the partition of their month is still there, otherwise removed. */
async function resolveHidden(database: Database, months: ReadonlySet<number>): Promise<void> {
  const { rows } = await database.query(
    "drop a month",
    `SELECT place FROM ${database.schema}.heads WHERE trashed = 'infinity'`,
  );
  const found = Map.groupBy(rows, ({ place }) => monthOfId(String(place)));
  for (const month of found.keys()) {
    if (months.has(month)) await showRange(database, rangeOf(month));
    else await removeRows(database, rangeOf(month));
  }
}

async function showRange(database: Database, { from, to }: Pick<Month, "from" | "to">): Promise<void> {
  const { schema } = database;
  // Somebody may have used the id meanwhile: then this session stays in the trash.
  const isTaken = `EXISTS (SELECT FROM ${schema}.heads AS other WHERE other.id = h.id AND other.trashed IS NULL)`;
  await inBatches(
    database,
    `WITH batch AS (SELECT place FROM ${schema}.heads WHERE place >= $1 AND place < $2 AND head < 0 ORDER BY place LIMIT ${TOGETHER} FOR UPDATE)
    UPDATE ${schema}.heads AS h SET head = -h.head,
      trashed = CASE WHEN h.trashed < 'infinity' THEN h.trashed WHEN ${isTaken} THEN clock_timestamp() END
    FROM batch WHERE h.place = batch.place`,
    [from, to],
  );
}

/** What a dropped month leaves behind. The rows of `heads` go last: the next call finds by them what is left. */
async function removeRows(database: Database, { from, to }: Pick<Month, "from" | "to">): Promise<void> {
  const { schema } = database;
  for (const table of [...PLACE_TABLES, "heads"])
    await inBatches(
      database,
      `DELETE FROM ${schema}.${table} WHERE place IN (SELECT place FROM ${schema}.heads WHERE place >= $1 AND place < $2 AND trashed IS NOT NULL
        AND EXISTS (SELECT FROM ${schema}.${table} AS left_over WHERE left_over.place = heads.place) ORDER BY place LIMIT ${TOGETHER})`,
      [from, to],
    );
}

async function inBatches(database: Database, statement: string, values: readonly unknown[]): Promise<void> {
  for (;;) {
    const { rowCount } = await database.query("drop a month", statement, values);
    if (rowCount === 0) return;
  }
}
