import type { Line } from "holdfast/kit";
import type { Database, Row } from "./database.ts";

/** What is read in one go, by whichever limit is met first. */
const CHUNK_ROWS = 1024;
const CHUNK_CHARACTERS = 4 * 1024 * 1024;
const FIRST_ROWS = 32;
/** Reads that are asked for at the same time: the server works on the next ones while these are looked at. */
const UNDER_WAY = 2;

/** Reads the lines of journals. Lines never change, so no snapshot is held between two reads (P6). */
export class Lines {
  readonly #database: Database;

  constructor(database: Database) {
    this.#database = database;
  }

  /** From seq `from` to seq `to`, some at a time. While they are looked at, the next ones are on their way. */
  async *read(place: string, from: number, to: number): AsyncGenerator<readonly Line[]> {
    let count = FIRST_ROWS;
    let next = from;
    const coming: Promise<TextLine[]>[] = [];
    const ask = (): void => {
      while (next <= to && coming.length < UNDER_WAY) {
        const last = Math.min(to, next + count - 1);
        const some = this.#some(place, next, last);
        // If nobody comes back for them, whatever becomes of them is nobody's error.
        some.catch(() => undefined);
        coming.push(some);
        next = last + 1;
        // How long lines are is not known before the first of them are there.
        if (count === FIRST_ROWS) return;
      }
    };
    for (ask(); coming.length > 0; ) {
      const lines = await coming.shift()!;
      // The next ones are most probably as long as these.
      const characters = lines.reduce((sum, { text }) => sum + text.length, 1);
      const fitting = Math.max(1, Math.floor((CHUNK_CHARACTERS * lines.length) / characters));
      count = lines.length === 0 ? CHUNK_ROWS : Math.min(CHUNK_ROWS, fitting);
      ask();
      if (lines.length > 0) yield lines;
    }
  }

  async #some(place: string, from: number, to: number): Promise<TextLine[]> {
    const { rows } = await this.#database.query(
      "read the journal",
      `SELECT seq, line FROM ${this.#database.schema}.lines WHERE place = $1 AND seq BETWEEN $2 AND $3 ORDER BY seq`,
      [place, from, to],
    );
    return rows.map((row) => new TextLine(row));
  }

  async one(place: string, seq: number): Promise<Buffer | null> {
    const { rows } = await this.#database.query(
      "read the journal",
      `SELECT seq, line FROM ${this.#database.schema}.lines WHERE place = $1 AND seq = $2`,
      [place, seq],
    );
    return rows[0] ? new TextLine(rows[0]).bytes : null;
  }
}

/** Text as the driver hands it out. Its bytes are seldom asked for. */
class TextLine implements Line {
  readonly seq: number;
  readonly text: string;

  constructor(row: Row) {
    this.seq = Number(row["seq"]);
    this.text = row["line"] as string;
  }

  get bytes(): Buffer {
    return Buffer.from(this.text);
  }
}
