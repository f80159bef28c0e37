import type { Line } from "holdfast/kit";
import type { Database, Row } from "./database.ts";

/** What is read in one go, by whichever limit is met first. */
const CHUNK_ROWS = 1024;
const CHUNK_BYTES = 4 * 1024 * 1024;

/** Reads the lines of journals. Lines never change, so no snapshot is held between two reads (P6). */
export class Lines {
  readonly #database: Database;

  constructor(database: Database) {
    this.#database = database;
  }

  /** From seq `from` to seq `to`, some at a time. */
  async *read(place: string, from: number, to: number): AsyncGenerator<readonly Line[]> {
    let rowsMax = CHUNK_ROWS;
    for (let next = from; next <= to; ) {
      const { rows } = await this.#database.query(
        "read the journal",
        `SELECT seq, line FROM ${this.#database.schema}.lines WHERE place = $1 AND seq BETWEEN $2 AND $3 ORDER BY seq LIMIT $4`,
        [place, next, to, rowsMax],
      );
      const lines = rows.map(lineOf);
      yield lines;
      if (lines.length < rowsMax) return;
      next = lines.at(-1)!.seq + 1;
      // The next ones are most probably as long as these.
      const bytes = lines.reduce((sum, line) => sum + line.bytes.length, 0);
      rowsMax = Math.min(CHUNK_ROWS, Math.max(1, Math.floor((CHUNK_BYTES * lines.length) / bytes)));
    }
  }

  async one(place: string, seq: number): Promise<Buffer | null> {
    const { rows } = await this.#database.query(
      "read the journal",
      `SELECT seq, line FROM ${this.#database.schema}.lines WHERE place = $1 AND seq = $2`,
      [place, seq],
    );
    return rows[0] ? lineOf(rows[0]).bytes : null;
  }
}

function lineOf(row: Row): Line {
  return { seq: Number(row["seq"]), bytes: Buffer.from(row["line"] as string) };
}
