import { newId } from "holdfast";
import type { Segment } from "holdfast/internal";
import type { Trashed } from "holdfast/store";
import type { Database } from "../connection/database.ts";
import { type Lease, type Leases, newHolder } from "../leases/leases.ts";
import { differs, jsonb, newestStamp } from "../listing/catalogue.ts";
import type { HeadState } from "../listing/head-state.ts";
import { startsWithTime } from "../schema/months.ts";
import { PLACE_TABLES } from "../schema/schema.ts";

/** Where a session is stored, and its newest seq. */
export interface SessionRow {
  readonly place: string;
  readonly head: number;
  readonly segments: readonly Segment[];
}

/** What a new session begins with. */
interface FirstLines {
  readonly app: string;
  readonly count: number;
  /** Separated by newlines. */
  readonly lines: Buffer;
  readonly headState: HeadState;
}

/** How many lines to delete at a time, so that nothing is locked for long. */
const REMOVE_ROWS = 5000;

/** Finds, creates and deletes sessions. */
export class SessionRows {
  readonly #database: Database;

  constructor(database: Database) {
    this.#database = database;
  }

  async find(id: string): Promise<SessionRow | null> {
    const { schema } = this.#database;
    const { rows } = await this.#database.query(
      "find the session",
      `SELECT h.place, h.head, (SELECT json_agg(json_build_array(s.number, s.epoch, s.first) ORDER BY s.number)
        FROM ${schema}.segments AS s WHERE s.place = h.place)::text AS segments
      FROM ${schema}.heads AS h WHERE h.id = $1 AND h.trashed IS NULL`,
      [id],
    );
    const [row] = rows;
    if (!row) return null;
    const found = JSON.parse((row["segments"] as string | null) ?? "[]") as [number, number, number][];
    const segments = found.map(([number, epoch, first]) => ({ number, epoch, first }));
    return { place: String(row["place"]), head: Number(row["head"]), segments };
  }

  /** Works for a session in the trash too. Null if it is deleted. */
  async head(place: string): Promise<number | null> {
    const { rows } = await this.#database.query(
      "find the session",
      `SELECT head FROM ${this.#database.schema}.heads WHERE place = $1`,
      [place],
    );
    return rows[0] ? Number(rows[0]["head"]) : null;
  }

  /** The place for a new session, and the newest stamp of the existing ones. */
  async look(id: string): Promise<{ readonly place: string; readonly newest: string | undefined }> {
    const { schema } = this.#database;
    const { rows } = await this.#database.query(
      "create a session",
      `SELECT EXISTS (SELECT FROM ${schema}.heads WHERE place = $1) AS taken, ${newestStamp(schema)} AS newest`,
      [id],
    );
    // The place is the id, unless a session in the trash has it, or it does not begin with the time: lines are
    // partitioned by the month of their place.
    const place = rows[0]?.["taken"] === true || !startsWithTime(id) ? newId() : id;
    return { place, newest: (rows[0]?.["newest"] as string | null) ?? undefined };
  }

  /** Creates a session with its first lines, leased to this worker, in one statement. Null if the id is taken. */
  create(place: string, id: string, leases: Leases, first: FirstLines): Promise<Lease | null> {
    return leases.withAttempt(id, (attempt) => this.#create(place, id, leases, first, attempt));
  }

  async #create(place: string, id: string, leases: Leases, first: FirstLines, attempt: string): Promise<Lease | null> {
    const { schema } = this.#database;
    const { at, stamp, row } = first.headState;
    const { rows } = await this.#database.query(
      "create a session",
      `WITH ${this.#database.power}, made AS (
        INSERT INTO ${schema}.heads (place, id, head, owner, fence, holder, attempt)
        SELECT $1, $2, $3, $4, 1, $5, $10 FROM power ON CONFLICT DO NOTHING RETURNING place
      ),
      begun AS (INSERT INTO ${schema}.segments (place, number, epoch, first) SELECT place, 1, 1, 1 FROM made),
      listed AS (INSERT INTO ${schema}.catalogue (place, id, at, head, closed, summary, written) SELECT place, $2, $6, $3, false, $7, $9 FROM made),
      put AS (
        INSERT INTO ${schema}.lines (place, seq, line)
        SELECT made.place, l.number, l.line FROM made, string_to_table($8, E'\\n') WITH ORDINALITY AS l (line, number)
      )
      SELECT place FROM made`,
      [
        place,
        id,
        first.count,
        leases.owner,
        // It has written these records.
        JSON.stringify(newHolder(first.app, Date.parse(at))),
        stamp,
        jsonb(row),
        first.lines,
        differs(at, stamp),
        attempt,
      ],
    );
    const lease = { place, owner: leases.owner, fence: "1", head: first.count, attempt };
    if (rows.length === 1) return lease;
    // An attempt whose answer was lost may have created it.
    const mine = await this.#database.query(
      "create a session",
      `WITH ${this.#database.durable} SELECT 1 FROM durable, ${schema}.heads AS h JOIN ${schema}.lines AS l USING (place)
      WHERE h.place = $1 AND h.owner = $2 AND h.fence = 1 AND h.head = $3 AND l.seq = $3 AND l.line = $4::text`,
      [place, leases.owner, first.count, first.lines.subarray(first.lines.lastIndexOf("\n") + 1)],
    );
    return mine.rows.length === 1 ? lease : null;
  }

  /** Whether the session is there, and stays there. */
  async isDurable(id: string): Promise<boolean> {
    const { rows } = await this.#database.query(
      "restore a session",
      `WITH ${this.#database.durable} SELECT 1 FROM durable, ${this.#database.schema}.heads WHERE id = $1 AND trashed IS NULL`,
      [id],
    );
    return rows.length === 1;
  }

  /** Moves the session to the trash. False if the lease is gone. */
  async trash({ place, owner, fence }: Lease): Promise<boolean> {
    const { rowCount } = await this.#database.query(
      "delete a session",
      // The fence identifies an earlier attempt whose answer was lost.
      `WITH ${this.#database.power} UPDATE ${this.#database.schema}.heads SET trashed = coalesce(trashed, clock_timestamp()), owner = NULL, holder = NULL FROM power
      WHERE place = $1 AND fence = $3 AND (owner = $2 OR trashed IS NOT NULL)`,
      [place, owner, fence],
    );
    return rowCount === 1;
  }

  /** The sessions in the trash that can be restored. Without a head, a session is being copied in or being removed. */
  async trashed(): Promise<Trashed[]> {
    const { schema } = this.#database;
    const { rows } = await this.#database.query(
      "list the trash",
      `SELECT h.id, h.trashed, coalesce(c.live_summary, c.summary) AS summary FROM ${schema}.heads AS h LEFT JOIN ${schema}.catalogue AS c USING (place)
      WHERE h.trashed IS NOT NULL AND h.head > 0 ORDER BY h.trashed DESC, h.place DESC`,
    );
    return rows.map(({ id, trashed, summary }) => ({
      id: String(id),
      trashedAt: new Date(trashed as Date | string).toISOString(),
      summary: (summary as Trashed["summary"] | undefined) ?? null,
    }));
  }

  /** Takes the session that was deleted last out of the trash. False if there is none. Throws if the id is taken. */
  async untrash(id: string): Promise<boolean> {
    const { schema } = this.#database;
    const { rowCount } = await this.#database.query(
      "restore a session",
      `WITH ${this.#database.power}, last AS (
        SELECT place FROM ${schema}.heads, power WHERE id = $1 AND trashed IS NOT NULL AND head > 0
        ORDER BY trashed DESC, place DESC LIMIT 1 FOR UPDATE OF heads
      )
      UPDATE ${schema}.heads AS h SET trashed = NULL FROM last WHERE h.place = last.place AND h.trashed IS NOT NULL AND h.head > 0`,
      [id],
    );
    return rowCount === 1;
  }

  /** Deletes sessions that have been in the trash for longer than the grace time. */
  async emptyTrash(graceMs: number): Promise<string[]> {
    const { schema } = this.#database;
    const { rows } = await this.#database.query(
      "collect garbage",
      `SELECT place, id FROM ${schema}.heads WHERE trashed <= clock_timestamp() - $1 * interval '1 millisecond' ORDER BY place`,
      [graceMs],
    );
    const removed: string[] = [];
    for (const { place, id } of rows) {
      // If a copy into this session is under way, it can now neither add lines nor finish. Without a head, the session
      // cannot be restored: nobody gets one that is half removed.
      const still = await this.#database.query(
        "collect garbage",
        `WITH ${this.#database.local} UPDATE ${schema}.heads SET owner = NULL, head = 0 FROM power WHERE place = $1 AND trashed IS NOT NULL`,
        [place],
      );
      if (still.rowCount === 0) continue;
      // Delete the lines first: without the session's row, they would stay forever.
      for (let count = REMOVE_ROWS; count === REMOVE_ROWS; ) {
        const gone = await this.#database.query(
          "collect garbage",
          `WITH ${this.#database.local} DELETE FROM ${schema}.lines USING power
          WHERE place = $1 AND seq IN (SELECT seq FROM ${schema}.lines WHERE place = $1 ORDER BY seq LIMIT $2)`,
          [place, REMOVE_ROWS],
        );
        count = gone.rowCount ?? 0;
      }
      const { rowCount } = await this.#database.query(
        "collect garbage",
        `WITH ${this.#database.local},
        ${PLACE_TABLES.map((table) => `from_${table} AS (DELETE FROM ${schema}.${table} USING power WHERE place = $1)`).join(", ")}
        DELETE FROM ${schema}.heads USING power WHERE place = $1 AND trashed IS NOT NULL`,
        [place],
      );
      if (rowCount === 1) removed.push(String(id));
    }
    // A worker that has been silent this long is gone; its leases are free with or without its row.
    await this.#database.query(
      "collect garbage",
      `WITH ${this.#database.local} DELETE FROM ${schema}.workers USING power WHERE expires < clock_timestamp() - interval '1 day'`,
    );
    return removed;
  }
}

/** In order. A session without recorded segments has one. */
export function segmentsOf({ segments }: SessionRow): readonly Segment[] {
  return segments.length > 0 ? segments : [{ number: 1, epoch: 1, first: 1 }];
}

export function newestSegment(found: SessionRow): Segment {
  return segmentsOf(found).at(-1)!;
}
