import type { Durability } from "holdfast";
import type { Segment } from "holdfast/kit";
import type { Database } from "./database.ts";
import { isPassing } from "./failure.ts";
import type { Lease } from "./leases.ts";

/** Statements that are under way at the same time; more only wait for the same disk. */
const STATEMENTS_MAX = 4;
const SESSIONS_MAX = 256;
const BYTES_MAX = 4 * 1024 * 1024;
/** Of a slow network: what is long is on its way for longer, and no sign of a connection that is lost. */
const BYTES_PER_MS = 256;
const STEP_MS = 250;

/** Lines of one session that are to be written at one instant, behind its newest one. */
export interface Write {
  readonly lease: Lease;
  /** The newest seq as this worker knows it. */
  readonly head: number;
  readonly count: number;
  /** The lines, each but the last with its newline. */
  readonly lines: Buffer;
  readonly durability: Durability;
  /** The segments that begin in these lines. */
  readonly segments: readonly Segment[];
  /** The session is no longer closed. */
  readonly opens: boolean;
}

/** `moved`: the lease was lost, or the head is not where it was thought to be. */
export type Written = "written" | "moved";

interface Waiting {
  readonly write: Write;
  readonly resolve: (written: Written) => void;
  readonly reject: (error: unknown) => void;
}

/** Appends of all sessions of a worker. Those that wait together go in one statement, and one that is refused does not keep the others back. */
export class Batch {
  readonly #database: Database;
  #waiting: Waiting[] = [];
  #underWay = 0;
  #isScheduled = false;

  constructor(database: Database) {
    this.#database = database;
  }

  /** Sent once. Rejects with what the driver throws: then it is not known whether it was written. */
  put(write: Write): Promise<Written> {
    return new Promise((resolve, reject) => {
      this.#waiting.push({ write, resolve, reject });
      if (this.#isScheduled) return;
      this.#isScheduled = true;
      // A moment later, so that those who are called one after the other go together.
      queueMicrotask(() => {
        this.#isScheduled = false;
        this.#pump();
      });
    });
  }

  #pump(): void {
    while (this.#underWay < STATEMENTS_MAX && this.#waiting.length > 0) {
      const chosen = this.#choose();
      this.#underWay++;
      void this.#send(chosen).finally(() => {
        this.#underWay--;
        this.#pump();
      });
    }
  }

  /** As many as fit; of those that are written in the same way. */
  #choose(): Waiting[] {
    const durability = this.#waiting[0]!.write.durability;
    const chosen: Waiting[] = [];
    const left: Waiting[] = [];
    let bytes = 0;
    for (const one of this.#waiting) {
      const fits = chosen.length === 0 || (chosen.length < SESSIONS_MAX && bytes + one.write.lines.length <= BYTES_MAX);
      if (one.write.durability === durability && fits) {
        chosen.push(one);
        bytes += one.write.lines.length;
      } else left.push(one);
    }
    this.#waiting = left;
    return chosen;
  }

  async #send(chosen: readonly Waiting[]): Promise<void> {
    try {
      const writes = chosen.map(({ write }) => write);
      const { text, values } = statementOf(this.#database, writes);
      const { rows, rowCount, command } = await this.#database.once(text, values, answerMsOf(this.#database, writes));
      const written = new Set(rows.map((row) => row["place"]));
      // One line is an INSERT that answers nothing but that it was done.
      const isOne = command === "INSERT" && rowCount === 1;
      for (const { write, resolve } of chosen) resolve(isOne || written.has(write.lease.place) ? "written" : "moved");
    } catch (error) {
      // Whoever of them the database refuses is refused alone.
      if (chosen.length > 1 && !isPassing(error)) for (const one of chosen) await this.#send([one]);
      else for (const { reject } of chosen) reject(error);
    }
  }
}

/**
 * One statement for all (S24). Each value is a parameter of its own: an array would have to be quoted, which costs more than all the rest where lines are long. Rows are locked in the order of their places, where that is up to
 * us, so that a statement and its own repetition do not lock each other out.
 */
export function statementOf(
  database: Pick<Database, "schema" | "settings" | "settles" | "answerMs">,
  writes: readonly Write[],
): { readonly text: string; readonly values: unknown[] } {
  const { schema } = database;
  const [first] = writes;
  const { durability, lease } = first!;
  if (writes.length === 1 && first!.count === 1 && first!.segments.length === 0 && !first!.opens)
    return oneLine(database, first!);
  const values: unknown[] = [lease.owner];
  const value = (given: unknown, type: string): string => `$${values.push(given)}::${type}`;
  const given: string[] = [];
  const lines: string[] = [];
  const begun: string[] = [];
  const opened: string[] = [];
  const isSingle = writes.every(({ count }) => count === 1);
  const inOrder = [...writes].sort((a, b) => (a.lease.place < b.lease.place ? -1 : 1));
  for (const write of inOrder) {
    const place = value(write.lease.place, "uuid");
    given.push(
      `(${place}, ${value(write.lease.fence, "bigint")}, ${value(write.head, "bigint")}, ${value(write.count, "bigint")})`,
    );
    lines.push(`(${place}, ${value(write.lines, "text")})`);
    for (const { number, epoch, first } of write.segments)
      begun.push(`(${place}, ${value(number, "integer")}, ${value(epoch, "integer")}, ${value(first, "bigint")})`);
    if (write.opens) opened.push(place);
  }
  const text = `WITH ${database.settings(durability, answerMsOf(database, writes))},
    moved AS (
      UPDATE ${schema}.heads AS h SET head = h.head + g.count
      FROM (VALUES ${given.join(", ")}) AS g (place, fence, head, count), power
      WHERE h.place = g.place AND h.owner = $1 AND h.fence = g.fence AND h.head = g.head AND h.trashed IS NULL
      RETURNING h.place, g.head
    ),
    ${begun.length === 0 ? "" : `begun AS (INSERT INTO ${schema}.segments (place, number, epoch, first) SELECT s.* FROM (VALUES ${begun.join(", ")}) AS s (place, number, epoch, first) JOIN moved USING (place)),`}
    ${opened.length === 0 ? "" : `opened AS (UPDATE ${schema}.catalogue AS c SET closed = false FROM moved WHERE c.place = moved.place AND moved.place IN (${opened.join(", ")})),`}
    put AS (
      INSERT INTO ${schema}.lines (place, seq, line)
      ${
        isSingle
          ? "SELECT moved.place, moved.head + 1, l.lines"
          : "SELECT moved.place, moved.head + line.number, line.line"
      }
      FROM moved JOIN (VALUES ${lines.join(", ")}) AS l (place, lines) USING (place)
      ${isSingle ? "" : "CROSS JOIN LATERAL string_to_table(l.lines, E'\\n') WITH ORDINALITY AS line (line, number)"}
    )
    SELECT place FROM moved`;
  return { text, values };
}

/** The most frequent one, in as few words as it can be said: to plan a statement costs as much as to run it. It answers by the number of its rows. */
function oneLine(
  database: Pick<Database, "schema" | "settles" | "answerMs">,
  write: Write,
): { readonly text: string; readonly values: unknown[] } {
  const { schema } = database;
  const { lease, head, lines, durability } = write;
  const text = `WITH moved AS (
      UPDATE ${schema}.heads AS h SET head = h.head + 1
      WHERE h.place = $1 AND h.owner = $2 AND h.fence = $3 AND h.head = $4 AND h.trashed IS NULL AND ${database.settles(durability, answerMsOf(database, [write]))}
      RETURNING h.place
    )
    INSERT INTO ${schema}.lines (place, seq, line) SELECT place, $4::bigint + 1, $5 FROM moved`;
  return { text, values: [lease.place, lease.owner, lease.fence, head, lines] };
}

/** Whole quarters of a second, so that statements of about the same size are the same text. */
function answerMsOf({ answerMs }: Pick<Database, "answerMs">, writes: readonly Write[]): number {
  const bytes = writes.reduce((sum, { lines }) => sum + lines.length, 0);
  return answerMs + Math.floor(bytes / BYTES_PER_MS / STEP_MS) * STEP_MS;
}
