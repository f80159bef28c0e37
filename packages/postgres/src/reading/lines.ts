import type { Line } from "holdfast/internal";
import pg from "pg";
import type { Database } from "../connection/database.ts";

/** The size of one read; whichever limit is reached first. */
const CHUNK_ROWS = 1024;
const CHUNK_BYTES = 4 * 1024 * 1024;

/** Reads journal lines. Lines never change, so it does not matter when each is read (P6). */
export class Lines {
  readonly #database: Database;

  constructor(database: Database) {
    this.#database = database;
  }

  /** Reads from seq `from` to seq `to` in chunks, and prefetches the next chunk. */
  async *read(place: string, from: number, to: number): AsyncGenerator<readonly Line[]> {
    let next = from;
    for (let coming: Promise<readonly Line[]> | null = this.#some(place, next, to); coming; ) {
      const lines: readonly Line[] = await coming;
      next = lines.length > 0 ? lines.at(-1)!.seq + 1 : next + CHUNK_ROWS;
      coming = next <= to ? this.#some(place, next, to) : null;
      // If the caller stops here, nobody awaits the prefetch: its error must not be unhandled.
      coming?.catch(() => undefined);
      if (lines.length > 0) yield lines;
    }
  }

  /**
   * The same for a caller that handles each line as it arrives, without waiting. Only what the network delivers at once
   * is in memory, so the line is valid during the call.
   */
  async each(place: string, from: number, to: number, look: (line: Line) => void): Promise<void> {
    const { schema } = this.#database;
    let next = from;
    let failed: { readonly error: unknown } | null = null;
    const take = (seq: number, line: Buffer | string): void => {
      next = seq + 1;
      try {
        look(typeof line === "string" ? new TextLine(seq, line) : { seq, bytes: line });
      } catch (error) {
        failed = { error };
        throw error;
      }
    };
    const goOn = async (): Promise<boolean> => {
      const first = next;
      try {
        // A session that has grown since the last ANALYZE looks short to the planner: it would sort everything before
        // the first row, although the index has the rows in order.
        await this.#database.rows(
          `SELECT seq, line FROM ${schema}.lines WHERE place = ${pg.escapeLiteral(place)} AND seq BETWEEN ${first} AND ${to} ORDER BY seq`,
          "SET LOCAL enable_sort = off;",
          take,
        );
        return true;
      } catch (error) {
        // Lines that have arrived count: continue after them, with full patience.
        if (!failed && next === first) throw error;
        return failed !== null;
      }
    };
    while (!(await this.#database.retry("read the journal", goOn)));
    if (failed) throw (failed as { readonly error: unknown }).error;
  }

  /** The next lines, as many as fit. The server knows the length of a line without decompressing it. */
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

  /** All lines of several ranges, by place, in one statement. Leaves out ranges that together are too long. */
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

/** Text from the driver; its bytes are rarely needed. */
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
