import type { Segment } from "holdfast/internal";
import type { Durability } from "holdfast/store";
import type { Database, Statement } from "../connection/database.ts";
import { isPassing } from "../failure.ts";
import type { Lease } from "../leases/leases.ts";

/** Concurrent statements; more of them only wait for the same disk. */
const STATEMENTS_MAX = 4;
const SESSIONS_MAX = 256;
const BYTES_MAX = 4 * 1024 * 1024;
/** A slow network: a long statement takes longer, which does not mean that the connection is lost. */
const BYTES_PER_MS = 256;
const STEP_MS = 250;

/** Lines of one session, to append atomically after its newest line. */
export interface Write {
  readonly lease: Lease;
  /** The newest seq as this worker knows it. */
  readonly head: number;
  readonly count: number;
  /** The lines, separated by newlines. */
  readonly lines: Buffer;
  readonly durability: Durability;
  /** Segments that start in these lines. */
  readonly segments: readonly Segment[];
  /** The session is no longer closed. */
  readonly opens: boolean;
}

/** `moved`: the lease was lost, or the head has changed. */
export type WriteResult = "written" | "moved";

interface PendingWrite {
  readonly write: Write;
  readonly resolve: (written: WriteResult) => void;
  readonly reject: (error: unknown) => void;
}

/**
 * Batches the appends of all sessions of a worker. Appends that wait at the same time share one statement. If the
 * database rejects one of them, the others still succeed.
 */
export class Batcher {
  readonly #database: Database;
  #pending: PendingWrite[] = [];
  #inFlight = 0;
  #isScheduled = false;

  constructor(database: Database) {
    this.#database = database;
  }

  /** Sends the write once. If it rejects with a driver error, it is unknown whether the write happened. */
  put(write: Write): Promise<WriteResult> {
    return new Promise((resolve, reject) => {
      this.#pending.push({ write, resolve, reject });
      if (this.#isScheduled) return;
      this.#isScheduled = true;
      // Wait for the end of this task, so that calls made one after the other share a statement.
      queueMicrotask(() => {
        this.#isScheduled = false;
        this.#pump();
      });
    });
  }

  #pump(): void {
    while (this.#inFlight < STATEMENTS_MAX && this.#pending.length > 0) {
      const chosen = this.#choose();
      this.#inFlight++;
      void this.#send(chosen).finally(() => {
        this.#inFlight--;
        this.#pump();
      });
    }
  }

  /** As many as fit, all with the same durability. */
  #choose(): PendingWrite[] {
    const durability = this.#pending[0]!.write.durability;
    const chosen: PendingWrite[] = [];
    const left: PendingWrite[] = [];
    let bytes = 0;
    for (const one of this.#pending) {
      const fits = chosen.length === 0 || (chosen.length < SESSIONS_MAX && bytes + one.write.lines.length <= BYTES_MAX);
      if (one.write.durability === durability && fits) {
        chosen.push(one);
        bytes += one.write.lines.length;
      } else left.push(one);
    }
    this.#pending = left;
    return chosen;
  }

  async #send(chosen: readonly PendingWrite[]): Promise<void> {
    try {
      const writes = chosen.map(({ write }) => write);
      const { rows, rowCount, command } = await this.#database.onceOver(
        (own) => statementOf(this.#database, writes, own),
        answerMsOf(this.#database, writes),
      );
      const written = new Set(rows.map((row) => row["place"]));
      // A single line is a plain INSERT, which returns only the row count.
      const isOne = command === "INSERT" && rowCount === 1;
      for (const { write, resolve } of chosen) resolve(isOne || written.has(write.lease.place) ? "written" : "moved");
    } catch (error) {
      // The database rejected one of them: send each alone to find out which.
      if (chosen.length > 1 && !isPassing(error)) for (const one of chosen) await this.#send([one]);
      else for (const { reject } of chosen) reject(error);
    }
  }
}

/**
 * One statement for all writes (S24). Each value is its own parameter: an array would need quoting, which is expensive
 * for long lines. Rows are locked in order of place where we control it, so that a statement and its retry do not
 * deadlock. `own`: the connection has its limits already.
 */
export function statementOf(
  database: Pick<Database, "schema" | "settings" | "settingsCondition" | "answerMs">,
  writes: readonly Write[],
  own = false,
): Statement {
  const { schema } = database;
  const [first] = writes;
  const { durability, lease } = first!;
  if (writes.length === 1 && first!.count === 1 && first!.segments.length === 0 && !first!.opens)
    return oneLine(database, first!, own);
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
  // Workers of earlier versions left rows ahead of the journal, which its new records would reach.
  const live = (name: string): string => `live_${name} = CASE WHEN c.live_head <= moved.head THEN c.live_${name} END`;
  const text = `WITH ${database.settings(durability, answerMsOf(database, writes), own)},
    moved AS (
      UPDATE ${schema}.heads AS h SET head = h.head + g.count
      FROM (VALUES ${given.join(", ")}) AS g (place, fence, head, count), power
      WHERE h.place = g.place AND h.owner = $1 AND h.fence = g.fence AND h.head = g.head AND h.trashed IS NULL
      RETURNING h.place, g.head, h.fence
    ),
    ${begun.length === 0 ? "" : `begun AS (INSERT INTO ${schema}.segments (place, number, epoch, first) SELECT s.* FROM (VALUES ${begun.join(", ")}) AS s (place, number, epoch, first) JOIN moved USING (place)),`}
    ${opened.length === 0 ? "" : `opened AS (UPDATE ${schema}.catalogue AS c SET closed = false, fence = moved.fence, ${live("head")}, ${live("summary")} FROM moved WHERE c.place = moved.place AND moved.place IN (${opened.join(", ")})),`}
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

/**
 * The most frequent case, kept short because planning a statement costs as much as running it. On a connection of our
 * own, the server keeps the plan. Its row count tells whether it wrote.
 */
function oneLine(
  database: Pick<Database, "schema" | "settingsCondition" | "answerMs">,
  write: Write,
  own: boolean,
): Statement {
  const { schema } = database;
  const { lease, head, lines, durability } = write;
  const answerMs = answerMsOf(database, [write]);
  const text = `WITH moved AS (
      UPDATE ${schema}.heads AS h SET head = h.head + 1
      WHERE h.place = $1 AND h.owner = $2 AND h.fence = $3 AND h.head = $4 AND h.trashed IS NULL AND ${database.settingsCondition(durability, answerMs, own)}
      RETURNING h.place
    )
    INSERT INTO ${schema}.lines (place, seq, line) SELECT place, $4::bigint + 1, $5 FROM moved`;
  const statement = { text, values: [lease.place, lease.owner, lease.fence, head, lines] };
  // The name stands for the text: a connection of our own has one schema.
  return own ? { ...statement, name: `holdfast append, ${durability}, ${answerMs}` } : statement;
}

/** In steps of 250 ms, so that statements of similar size have the same text. */
function answerMsOf({ answerMs }: Pick<Database, "answerMs">, writes: readonly Write[]): number {
  const bytes = writes.reduce((sum, { lines }) => sum + lines.length, 0);
  return answerMs + Math.floor(bytes / BYTES_PER_MS / STEP_MS) * STEP_MS;
}
