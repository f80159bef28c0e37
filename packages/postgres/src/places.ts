import { newId } from "holdfast";
import type { Segment } from "holdfast/kit";
import { differs, jsonb, newestStamp } from "./catalogue.ts";
import type { Database } from "./database.ts";
import { holderNow, type Lease, type Leases } from "./leases.ts";
import type { Standing } from "./lot.ts";
import { PLACE_TABLES } from "./schema.ts";

/** Where a session is, and how far it has come. */
export interface Place {
  readonly place: string;
  readonly head: number;
  readonly segments: readonly Segment[];
}

/** Lines are removed so many at a time, so that nothing is locked for long. */
const REMOVE_ROWS = 5000;

/** Finds, makes and removes sessions. */
export class Places {
  readonly #database: Database;

  constructor(database: Database) {
    this.#database = database;
  }

  async find(id: string): Promise<Place | null> {
    const { schema } = this.#database;
    const { rows } = await this.#database.query(
      "look for the session",
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

  /** Also of one that is in the trash; null if it is removed. */
  async head(place: string): Promise<number | null> {
    const { rows } = await this.#database.query(
      "look for the session",
      `SELECT head FROM ${this.#database.schema}.heads WHERE place = $1`,
      [place],
    );
    return rows[0] ? Number(rows[0]["head"]) : null;
  }

  /** Where a new session would live, and the newest stamp of those that are there. */
  async look(id: string): Promise<{ readonly place: string; readonly newest: string | undefined }> {
    const { schema } = this.#database;
    const { rows } = await this.#database.query(
      "create a session",
      `SELECT EXISTS (SELECT FROM ${schema}.heads WHERE place = $1) AS taken, ${newestStamp(schema)} AS newest`,
      [id],
    );
    // Only an id that was used before, and is in the trash, lives elsewhere than at its own place.
    const place = rows[0]?.["taken"] === true ? newId() : id;
    return { place, newest: (rows[0]?.["newest"] as string | null) ?? undefined };
  }

  /** A new session with its first lines, held by this worker, in one statement. Null if there is one with this id. */
  async create(
    place: string,
    id: string,
    leases: Leases,
    first: {
      readonly app: string;
      readonly count: number;
      /** Each but the last with its newline. */
      readonly lines: Buffer;
      readonly standing: Standing;
    },
  ): Promise<Lease | null> {
    const { schema } = this.#database;
    const { at, stamp, row } = first.standing;
    const { rows } = await this.#database.query(
      "create a session",
      `WITH ${this.#database.power}, made AS (
        INSERT INTO ${schema}.heads (place, id, head, owner, fence, holder)
        SELECT $1, $2, $3, $4, 1, $5 FROM power ON CONFLICT DO NOTHING RETURNING place
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
        JSON.stringify(holderNow(first.app)),
        stamp,
        jsonb(row),
        first.lines,
        differs(at, stamp),
      ],
    );
    const lease = { place, owner: leases.owner, fence: "1", head: first.count };
    if (rows.length === 1) return lease;
    // It may have been made by an attempt whose answer was lost.
    const mine = await this.#database.query(
      "create a session",
      `SELECT 1 FROM ${schema}.heads AS h JOIN ${schema}.lines AS l USING (place)
      WHERE h.place = $1 AND h.owner = $2 AND h.fence = 1 AND h.head = $3 AND l.seq = $3 AND l.line = $4::text`,
      [place, leases.owner, first.count, first.lines.subarray(first.lines.lastIndexOf("\n") + 1)],
    );
    return mine.rows.length === 1 ? lease : null;
  }

  /** To the trash. False if the lease is gone. */
  async trash({ place, owner, fence }: Lease): Promise<boolean> {
    const { rowCount } = await this.#database.query(
      "delete a session",
      // Its fence tells an attempt whose answer was lost.
      `WITH ${this.#database.power} UPDATE ${this.#database.schema}.heads SET trashed = coalesce(trashed, clock_timestamp()), owner = NULL, holder = NULL FROM power
      WHERE place = $1 AND fence = $3 AND (owner = $2 OR trashed IS NOT NULL)`,
      [place, owner, fence],
    );
    return rowCount === 1;
  }

  /** Removes what has been in the trash for longer than the grace time. */
  async emptyTrash(graceMs: number): Promise<string[]> {
    const { schema } = this.#database;
    const { rows } = await this.#database.query(
      "collect garbage",
      `SELECT place, id FROM ${schema}.heads WHERE trashed <= clock_timestamp() - $1 * interval '1 millisecond' ORDER BY place`,
      [graceMs],
    );
    const removed: string[] = [];
    for (const { place, id } of rows) {
      // Of a session that is just being taken over: from now on that attempt adds nothing, nor is it finished.
      const still = await this.#database.query(
        "collect garbage",
        `UPDATE ${schema}.heads SET owner = NULL WHERE place = $1 AND trashed IS NOT NULL`,
        [place],
      );
      if (still.rowCount === 0) continue;
      // The lines first: a session whose row is gone would leave them behind for ever.
      for (let count = REMOVE_ROWS; count === REMOVE_ROWS; ) {
        const gone = await this.#database.query(
          "collect garbage",
          `DELETE FROM ${schema}.lines WHERE place = $1 AND seq IN (SELECT seq FROM ${schema}.lines WHERE place = $1 ORDER BY seq LIMIT $2)`,
          [place, REMOVE_ROWS],
        );
        count = gone.rowCount ?? 0;
      }
      const { rowCount } = await this.#database.query(
        "collect garbage",
        `WITH ${PLACE_TABLES.map((table) => `from_${table} AS (DELETE FROM ${schema}.${table} WHERE place = $1)`).join(", ")}
        DELETE FROM ${schema}.heads WHERE place = $1 AND trashed IS NOT NULL`,
        [place],
      );
      if (rowCount === 1) removed.push(String(id));
    }
    // A worker that has been silent for so long is no more; what it had is free with or without its row.
    await this.#database.query(
      "collect garbage",
      `DELETE FROM ${schema}.workers WHERE expires < clock_timestamp() - interval '1 day'`,
    );
    return removed;
  }
}

/** In order; a session that has none recorded is one segment. */
export function segmentsOf({ segments }: Place): readonly Segment[] {
  return segments.length > 0 ? segments : [{ number: 1, epoch: 1, first: 1 }];
}

export function newestOf(found: Place): Segment {
  return segmentsOf(found).at(-1)!;
}
