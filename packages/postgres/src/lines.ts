import type { Line } from "holdfast/kit";
import pg from "pg";
import type { Database } from "./database.ts";

/** What is read in one go, by whichever limit is met first. */
const CHUNK_ROWS = 1024;
const CHUNK_BYTES = 4 * 1024 * 1024;

/** Reads the lines of journals. Lines never change, so it does not matter when each of them is read (P6). */
export class Lines {
  readonly #database: Database;

  constructor(database: Database) {
    this.#database = database;
  }

  /** From seq `from` to seq `to`, some at a time. While they are looked at, the next ones are on their way. */
  async *read(place: string, from: number, to: number): AsyncGenerator<readonly Line[]> {
    let next = from;
    for (let coming: Promise<readonly Line[]> | null = this.#some(place, next, to); coming; ) {
      const lines: readonly Line[] = await coming;
      next = lines.length > 0 ? lines.at(-1)!.seq + 1 : next + CHUNK_ROWS;
      coming = next <= to ? this.#some(place, next, to) : null;
      // If nobody comes back for them, whatever becomes of them is nobody's error.
      coming?.catch(() => undefined);
      if (lines.length > 0) yield lines;
    }
  }

  /** The same for one who looks at each line as it arrives, and keeps nobody waiting: no more of them are held than the network brings at once. */
  async each(place: string, from: number, to: number, look: (line: Line) => void): Promise<void> {
    const { schema } = this.#database;
    let next = from;
    let failed: { readonly error: unknown } | null = null;
    const take = ([seq, line]: readonly unknown[]): void => {
      next = Number(seq) + 1;
      try {
        look(new TextLine(Number(seq), line as string));
      } catch (error) {
        failed = { error };
        throw error;
      }
    };
    const goOn = async (): Promise<boolean> => {
      const first = next;
      try {
        // A session that grew since the server last counted looks short to it: it would sort all of it before the first line, though the index has them in order.
        await this.#database.rows(
          `SET LOCAL enable_sort = off;
          SELECT seq, line FROM ${schema}.lines WHERE place = ${pg.escapeLiteral(place)} AND seq BETWEEN ${first} AND ${to} ORDER BY seq`,
          take,
        );
        return true;
      } catch (error) {
        // What has come counts: it goes on behind that, with all its patience.
        if (!failed && next === first) throw error;
        return failed !== null;
      }
    };
    while (!(await this.#database.retry("read the journal", goOn)));
    if (failed) throw (failed as { readonly error: unknown }).error;
  }

  /** Of the next ones, as many as fit. How long a line is, the server knows without unpacking it. */
  async #some(place: string, from: number, to: number): Promise<TextLine[]> {
    const { rows } = await this.#database.query(
      "read the journal",
      `SELECT seq, line FROM (
        SELECT seq, line, sum(octet_length(line)) OVER (ORDER BY seq) - octet_length(line) AS before
        FROM ${this.#database.schema}.lines WHERE place = $1 AND seq BETWEEN $2 AND $3
      ) AS sized WHERE before < ${CHUNK_BYTES} ORDER BY seq`,
      [place, from, Math.min(to, from + CHUNK_ROWS - 1)],
    );
    return rows.map((row) => new TextLine(Number(row["seq"]), row["line"] as string));
  }

  /** All lines of several stretches, by place, in one statement; but of those that together are too long. */
  async together(
    stretches: readonly { readonly place: string; readonly from: number; readonly to: number }[],
  ): Promise<Map<string, readonly Line[]>> {
    const { rows } = await this.#database.query(
      "read the journals",
      `SELECT place, seq, line FROM (
        SELECT *, sum(bytes) OVER (ORDER BY own, place, seq) AS so_far FROM (
          SELECT l.*, octet_length(l.line) AS bytes, sum(octet_length(l.line)) OVER (PARTITION BY l.place) AS own
          FROM unnest($1::uuid[], $2::bigint[], $3::bigint[]) AS s (place, first, last)
          CROSS JOIN LATERAL (
            SELECT place, seq, line FROM ${this.#database.schema}.lines WHERE place = s.place AND seq BETWEEN s.first AND s.last ORDER BY seq LIMIT ${CHUNK_ROWS}
          ) AS l
        ) AS sized
      ) AS shortest_first WHERE so_far < ${CHUNK_BYTES} ORDER BY place, seq`,
      [stretches.map(({ place }) => place), stretches.map(({ from }) => from), stretches.map(({ to }) => to)],
    );
    const found = Map.groupBy(rows, (row) => String(row["place"]));
    return new Map(
      stretches.flatMap(({ place, from, to }) => {
        const of = found.get(place) ?? [];
        const isAll = of.length === to - from + 1;
        return isAll ? [[place, of.map((row) => new TextLine(Number(row["seq"]), row["line"] as string))]] : [];
      }),
    );
  }

  async one(place: string, seq: number): Promise<Buffer | null> {
    const { rows } = await this.#database.query(
      "read the journal",
      `SELECT line FROM ${this.#database.schema}.lines WHERE place = $1 AND seq = $2`,
      [place, seq],
    );
    return rows[0] ? Buffer.from(rows[0]["line"] as string) : null;
  }
}

/** Text as the driver hands it out. Its bytes are seldom asked for. */
class TextLine implements Line {
  readonly seq: number;
  readonly text: string;

  constructor(seq: number, text: string) {
    this.seq = seq;
    this.text = text;
  }

  get bytes(): Buffer {
    return Buffer.from(this.text);
  }
}
