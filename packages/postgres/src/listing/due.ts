import type { DueQuery, Listed } from "holdfast/store";
import type { Database } from "../connection/database.ts";
import { lockOf } from "../leases/leases.ts";
import { hintsOf, listedOf, settled, unsettled, whereOf } from "./catalogue.ts";

/** From here on the pause is at its longest, or the tries have ended long ago. */
const ATTEMPTS_MAX = 40;
/** A session that was written this far in the future was written by a clock that is wrong. */
const AHEAD_MS = 60_000;

/**
 * The sessions that a worker can continue, for `JournalStore.due`: one statement, whose cost depends on how many turns
 * are unfinished, not on how many sessions there are. Times are compared as texts: rows may come from anywhere, and one
 * that is no time must not fail the statement for all.
 */
export async function dueSessions(database: Database, query: DueQuery): Promise<Listed[]> {
  const { schema } = database;
  const { nowMs, ended, olderThanMs, youngerThanMs, backoffMs, backoffMaxMs, skip, limit } = query;
  const values: unknown[] = [];
  const value = (given: unknown): string => `$${values.push(given)}`;
  const ago = (ms: number): string => new Date(nowMs - ms).toISOString();
  const pauses = Array.from({ length: ATTEMPTS_MAX + 1 }, (_, tries) =>
    tries === 0 ? 0 : Math.min(backoffMaxMs, backoffMs * 2 ** (tries - 1)),
  );
  // `at` is the order of lists, which follows the clock that is furthest ahead.
  const written = 'coalesce(c.written, c.at) COLLATE "C"';
  const wakes = `(c.summary ->> 'wakeAt') COLLATE "C"`;
  const attempts = `CASE WHEN jsonb_typeof(c.summary -> 'attempts') = 'number' THEN greatest(0, least(${ATTEMPTS_MAX}, (c.summary ->> 'attempts')::numeric))::int ELSE 0 END`;
  const isAhead = `${written} > ${value(ago(-AHEAD_MS))}`;
  const hasPaused = `${written} <= (${value(pauses.map(ago))}::text[])[1 + ${attempts}]`;
  const isDue = [
    `CASE WHEN ${wakes} IS NULL THEN ${isAhead} OR ${hasPaused} ELSE ${wakes} <= ${value(ago(0))} END`,
    ...(olderThanMs > 0 ? [`(${isAhead} OR ${written} <= ${value(ago(olderThanMs))})`] : []),
  ];
  const conditions = [
    "c.head = h.head AND h.trashed IS NULL",
    `h.id <> ALL (${value(skip)}::uuid[])`,
    ...whereOf(query.where, value),
    ...hintsOf(query.hints, value),
    // Those that were ended on purpose are not even looked at: they may be many, and are the oldest.
    ...(ended ? [] : ["c.summary -> 'ended' IS NULL"]),
    ...(youngerThanMs === Number.POSITIVE_INFINITY
      ? []
      : [`(${isAhead} OR greatest(${written}, ${wakes}) >= ${value(ago(youngerThanMs))})`]),
    `(h.owner IS NULL OR NOT EXISTS (SELECT FROM alive WHERE alive.owner = h.owner))`,
  ];
  const columns = "id, place, at, written, head, closed, unclosed_head, summary::text, NULL AS holder, false AS held";
  const { rows } = await database.query(
    "find work",
    `WITH alive AS MATERIALIZED (
        SELECT w.owner FROM ${schema}.workers AS w
        WHERE w.expires > now() AND CASE WHEN w.watched THEN NOT pg_try_advisory_xact_lock_shared(${lockOf("w.owner")}) ELSE true END
      ),
      found AS MATERIALIZED (
        SELECT c.*, coalesce(${wakes}, ${written}) AS since, ${wakes} IS NOT NULL AS wakes, ${attempts} AS attempts, ${isDue.join(" AND ")} AS due
        FROM ((${unfinished(settled(schema))}) UNION ALL (${unfinished(unsettled(schema))})) AS c JOIN ${schema}.heads AS h USING (place)
        WHERE ${conditions.join(" AND ")}
      )
      (SELECT ${columns} FROM found WHERE due ORDER BY since, place LIMIT ${value(limit)})
      UNION ALL (SELECT DISTINCT ON (wakes, attempts) ${columns} FROM found WHERE NOT due ORDER BY wakes, attempts, since)`,
    values,
  );
  return rows.map((row) => {
    const { place: _, stamp, ...listed } = listedOf(row);
    return stamp === listed.at ? listed : { ...listed, stamp };
  });
}

/** Those of these rows whose last turn did not complete, and does not wait for a person. */
function unfinished(rows: string): string {
  return `SELECT id, place, at, written, head, closed, unclosed_head, summary FROM ${rows} AS r
    WHERE r.summary @> '{"state":"open"}' OR r.summary @> '{"state":"cut"}'
      OR (r.summary @> '{"state":"waiting"}' AND r.summary -> 'wakeAt' IS NOT NULL AND r.summary -> 'parked' IS NULL)`;
}
