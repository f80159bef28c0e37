import type { Database, Row } from "../connection/database.ts";
import { holderOf, lockOf, newHolder } from "../leases/leases.ts";
import { jsonb, settled, unsettled } from "../listing/catalogue.ts";

/** Long messages are cut: the row is read often. */
const ERROR_CHARACTERS_MAX = 2000;

/** Which interrupted sessions a worker wants. Each condition that is given must hold. */
export interface ClaimFilter {
  /** All of these labels must exist with these values. */
  readonly labels?: Readonly<Record<string, string>>;
  /** The program that created the session. */
  readonly app?: string;
  readonly cwd?: string;
  /**
   * Only sessions last written at least this long ago, in milliseconds. Default: 0. The time is that of the worker that
   * wrote; one in the future tells no age, and counts as long ago.
   */
  readonly olderThanMs?: number;
  /**
   * Only sessions last written within this time, in milliseconds. Default: a day, so that a new fleet does not finish
   * everything that was ever interrupted. Infinity: all.
   */
  readonly youngerThanMs?: number;
  /**
   * Also claim turns that the application ended as failed (`turn.fail`) or that somebody aborted (`turn.abort`).
   * Default: only turns cut off by the death, a signal or the shutdown of their worker.
   */
  readonly ended?: boolean;
}

export interface ClaimRules {
  /** How often a turn is claimed before the fleet gives up on it. */
  readonly maxTries: number;
  /** The pause after the first failed try; it doubles with each. */
  readonly backoffMs: number;
  readonly backoffMaxMs: number;
}

/** A session that this worker may try to finish. Its lease is taken next, as for any session. */
export interface Reserved {
  readonly place: string;
  readonly id: string;
  /** The newest seq. */
  readonly head: number;
  /** This one included. */
  readonly tries: number;
}

/** A session whose last turn the fleet has tried to finish, and has not finished. */
export interface FailedClaim {
  readonly id: string;
  readonly tries: number;
  /** When a worker claimed it last, and which. */
  readonly claimedAt: string;
  readonly claimedBy: { readonly app: string; readonly host: string; readonly pid: number };
  /** When it may be claimed again; null: the fleet has given up. */
  readonly dueAt: string | null;
  /** What the last try failed with; null if its worker died, or is still at it. */
  readonly error: string | null;
}

/**
 * The claims of a fleet: who tries to finish which interrupted turn, how often that was tried, and when it may be tried
 * again. A claim is only a reservation: what keeps others from writing is the session's lease and fence.
 */
export class Claims {
  readonly #database: Database;
  readonly #owner: string;
  readonly #app: string;

  constructor(database: Database, owner: string, app: string) {
    this.#database = database;
    this.#owner = owner;
    this.#app = app;
  }

  /**
   * Reserves the session that has been due longest. Rows that another worker is reserving are skipped, so workers do
   * not wait for each other. Sessions that have used up their tries are marked as given up. Null: nothing is due.
   */
  async reserve(filter: ClaimFilter, rules: ClaimRules): Promise<Reserved | null> {
    for (;;) {
      const { rows } = await this.#database.retry("claim a session", () =>
        this.#database.once(...this.#reserveStatement(filter, rules)),
      );
      const [row] = rows;
      if (!row) return null;
      // Another worker has reserved it since this statement began, or it has just been given up: look again.
      if (row["tries"] === null || row["gave_up"] === true) continue;
      const { place, id, head, tries } = row;
      return { place: String(place), id: String(id), head: Number(head), tries: Number(tries) };
    }
  }

  #reserveStatement(filter: ClaimFilter, { maxTries, backoffMs, backoffMaxMs }: ClaimRules): [string, unknown[]] {
    const { schema } = this.#database;
    const { labels, app, cwd, olderThanMs = 0, youngerThanMs = DAY_MS, ended = false } = filter;
    const values: unknown[] = [];
    const value = (given: unknown, type: string): string => `$${values.push(given)}::${type}`;
    const members = { ...(app === undefined ? {} : { app }), ...(cwd === undefined ? {} : { cwd }) };
    const wanted = { ...members, ...(labels === undefined ? {} : { labels: { ...labels } }) };
    const conditions = [`c.summary @> ${value(jsonb(wanted), "jsonb")}`];
    // `at` is the order of lists, which follows the clock that is furthest ahead.
    const written = "coalesce(c.written, c.at)";
    if (olderThanMs > 0)
      conditions.push(`(${written} <= ${ago(value(olderThanMs, "float8"))} OR ${written} > ${ago(String(-AHEAD_MS))})`);
    if (youngerThanMs !== Number.POSITIVE_INFINITY) {
      const since = ago(value(youngerThanMs, "float8"));
      conditions.push(`c.at >= ${since}`, `(c.at <= ${ago(String(-AHEAD_MS))} OR ${written} >= ${since})`);
    }
    // Those that were ended on purpose are not even looked at: they may be many, and are the oldest.
    if (!ended) conditions.push("c.summary -> 'ended' IS NULL");
    const passedHead = ended ? "k.passed_ended_head" : "k.passed_head";
    const owner = value(this.#owner, "uuid");
    const holder = value(JSON.stringify(newHolder(this.#app)), "jsonb");
    const max = value(maxTries, "integer");
    const again = `now() + least(${value(backoffMaxMs, "float8")}, ${value(backoffMs, "float8")} * 2.0 ^ least(30, k.tries)) * interval '1 millisecond'`;
    const isSame = "k.turn = excluded.turn";
    const isSpent = `(${isSame} AND k.tries >= ${max})`;
    const text = `WITH alive AS MATERIALIZED (
        SELECT w.owner FROM ${schema}.workers AS w
        WHERE w.expires > now() AND CASE WHEN w.watched THEN NOT pg_try_advisory_xact_lock_shared(${lockOf("w.owner")}) ELSE true END
      ),
      next AS (
        SELECT h.place, h.id, h.head, c.summary ->> 'turns' AS turn,
          CASE WHEN c.summary -> 'ended' IS NOT NULL THEN h.head END AS passed_head
        FROM ((${unfinished(settled(schema))}) UNION ALL (${unfinished(unsettled(schema))})) AS c
        JOIN ${schema}.heads AS h USING (place) LEFT JOIN ${schema}.claims AS k USING (place)
        WHERE c.head = h.head AND h.trashed IS NULL
          AND c.summary ->> 'parentSession' IS NULL AND c.summary ->> 'turns' IS NOT NULL AND ${conditions.join(" AND ")}
          AND (k.place IS NULL OR k.turn <> c.summary ->> 'turns' OR (k.due <= now() AND k.gave_up IS NULL))
          AND ${passedHead} IS DISTINCT FROM h.head
          AND (h.owner IS NULL OR NOT EXISTS (SELECT FROM alive WHERE alive.owner = h.owner))
        ORDER BY CASE WHEN k.turn = c.summary ->> 'turns' THEN ${stampOf("k.due")} ELSE c.at END, h.place
        LIMIT 1 FOR UPDATE OF h SKIP LOCKED
      ),
      made AS (
        INSERT INTO ${schema}.claims AS k (place, turn, tries, owner, holder, claimed, passed_head, due)
        SELECT place, turn, 1, ${owner}, ${holder}, now(), passed_head, now() + ${value(backoffMs, "float8")} * interval '1 millisecond' FROM next
        ON CONFLICT (place) DO UPDATE SET turn = excluded.turn, owner = excluded.owner, passed_head = excluded.passed_head,
          tries = CASE WHEN ${isSpent} THEN k.tries WHEN ${isSame} THEN k.tries + 1 ELSE 1 END,
          holder = CASE WHEN ${isSpent} THEN k.holder ELSE excluded.holder END,
          claimed = CASE WHEN ${isSpent} THEN k.claimed ELSE excluded.claimed END,
          due = CASE WHEN ${isSame} THEN ${again} ELSE excluded.due END,
          gave_up = CASE WHEN ${isSpent} THEN now() END,
          error = CASE WHEN ${isSpent} THEN k.error END
        WHERE NOT ${isSame} OR (k.due <= now() AND k.gave_up IS NULL)
        RETURNING k.place, k.tries, k.gave_up IS NOT NULL AS gave_up
      )
      SELECT next.place, next.id, next.head, made.tries, made.gave_up FROM next LEFT JOIN made USING (place)`;
    return [text, values];
  }

  /** The turn is over: the next one starts with all its tries. */
  async forget(reserved: Reserved): Promise<void> {
    await this.#update(reserved, (where) => `DELETE FROM ${this.#database.schema}.claims AS k ${where}`);
  }

  /** This try does not count: another worker has the session, or this one is shutting down. */
  async giveBack(reserved: Reserved, pauseMs: number): Promise<void> {
    await this.#update(
      reserved,
      (where) =>
        `UPDATE ${this.#database.schema}.claims AS k SET tries = k.tries - 1, due = now() + ${Number(pauseMs)} * interval '1 millisecond' ${where}`,
    );
  }

  /** There is nothing to do in the session until it is written to again. `ended`: not even for who asks for those. */
  async pass(reserved: Reserved, ended: boolean): Promise<void> {
    await this.#update(
      reserved,
      (where) =>
        `UPDATE ${this.#database.schema}.claims AS k SET tries = 0, due = now(), passed_head = $4, passed_ended_head = $5, error = NULL ${where}`,
      [reserved.head, ended ? reserved.head : null],
    );
  }

  /** Returns whether the fleet has given up on it. */
  async fail(reserved: Reserved, error: unknown, { maxTries, backoffMs, backoffMaxMs }: ClaimRules): Promise<boolean> {
    const words = (error instanceof Error ? `${error.name}: ${error.message}` : String(error))
      .slice(0, ERROR_CHARACTERS_MAX)
      .replaceAll("\0", "\ufffd")
      .toWellFormed();
    const pauseMs = Math.min(backoffMaxMs, backoffMs * 2 ** (reserved.tries - 1));
    const rows = await this.#update(
      reserved,
      (where) =>
        `UPDATE ${this.#database.schema}.claims AS k SET error = $4, due = now() + $5 * interval '1 millisecond',
        gave_up = CASE WHEN k.tries >= $6 THEN now() END ${where} RETURNING k.gave_up`,
      [words, pauseMs, maxTries],
    );
    return rows[0]?.["gave_up"] != null;
  }

  /**
   * Sessions that the fleet has tried to finish at least once, those it has given up on first. Not those whose turn is
   * over: somebody may have finished it, or ended it on purpose, without the fleet. One that was claimed although it
   * had been ended on purpose says so in `passed_head`.
   */
  async failures(): Promise<FailedClaim[]> {
    const { schema } = this.#database;
    const { rows } = await this.#database.query(
      "list the claims",
      `SELECT h.id, k.tries, k.holder, ${stampOf("k.claimed")} AS claimed, CASE WHEN k.gave_up IS NULL THEN ${stampOf("k.due")} END AS due, k.error
      FROM ${schema}.claims AS k JOIN ${schema}.heads AS h USING (place)
        JOIN (SELECT place, summary FROM ${settled(schema)} AS s UNION ALL SELECT place, summary FROM ${unsettled(schema)} AS u) AS c USING (place)
      WHERE h.trashed IS NULL AND k.tries > 0 AND c.summary ->> 'turns' = k.turn AND c.summary ->> 'state' IN ('open', 'cut')
        AND (c.summary -> 'ended' IS NULL OR k.passed_head = h.head)
      ORDER BY k.gave_up DESC NULLS LAST, k.due, h.id`,
    );
    return rows.map((row) => {
      const { app, host, pid } = holderOf(row);
      return {
        id: String(row["id"]),
        tries: Number(row["tries"]),
        claimedAt: String(row["claimed"]),
        claimedBy: { app, host, pid },
        dueAt: (row["due"] as string | null) ?? null,
        error: (row["error"] as string | null) ?? null,
      };
    });
  }

  /** The session may be claimed at once, with all its tries. False: no claim is known. */
  async retry(id: string): Promise<boolean> {
    const { schema } = this.#database;
    const { rowCount } = await this.#database.query(
      "reset a claim",
      `DELETE FROM ${schema}.claims AS k USING ${schema}.heads AS h WHERE k.place = h.place AND h.id = $1 AND h.trashed IS NULL`,
      [id],
    );
    return rowCount === 1;
  }

  /** Only the row of this very claim: another worker may have claimed the session since. */
  async #update(
    { place, tries }: Reserved,
    statement: (where: string) => string,
    values: readonly unknown[] = [],
  ): Promise<readonly Row[]> {
    const where = "WHERE k.place = $1 AND k.owner = $2 AND k.tries = $3";
    const { rows } = await this.#database.query("update a claim", statement(where), [
      place,
      this.#owner,
      tries,
      ...values,
    ]);
    return rows;
  }
}

const DAY_MS = 24 * 3600 * 1000;
/** A session that was written this far in the future was written by a clock that is wrong. */
const AHEAD_MS = 60_000;

/** Those of these rows whose last turn did not complete. */
function unfinished(rows: string): string {
  return `SELECT place, at, written, head, summary FROM ${rows} AS r WHERE r.summary @> '{"state":"open"}' OR r.summary @> '{"state":"cut"}'`;
}

/** A time as records have it. */
function stampOf(time: string): string {
  return `to_char(${time} AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"')`;
}

function ago(ms: string): string {
  return stampOf(`(now() - ${ms} * interval '1 millisecond')`);
}
