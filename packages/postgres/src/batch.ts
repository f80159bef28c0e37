import type { Durability } from "holdfast";
import type { Database } from "./database.ts";
import type { Lease } from "./leases.ts";

/** Statements that are under way at the same time; more only wait for the same disk. */
const STATEMENTS_MAX = 4;
const SESSIONS_MAX = 256;
const CHARACTERS_MAX = 4 * 1024 * 1024;

/** Lines of one session that are to be written at one instant, behind its newest one. */
export interface Write {
  readonly lease: Lease;
  /** The newest seq as this worker knows it. */
  readonly head: number;
  readonly count: number;
  /** The lines, each but the last with its newline. */
  readonly lines: string;
  readonly durability: Durability;
  /** A segment begins with the first of the lines. */
  readonly segment: { readonly number: number; readonly epoch: number; readonly first: number } | null;
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
    let characters = 0;
    for (const one of this.#waiting) {
      const fits =
        chosen.length === 0 || (chosen.length < SESSIONS_MAX && characters + one.write.lines.length <= CHARACTERS_MAX);
      if (one.write.durability === durability && fits) {
        chosen.push(one);
        characters += one.write.lines.length;
      } else left.push(one);
    }
    this.#waiting = left;
    return chosen;
  }

  async #send(chosen: readonly Waiting[]): Promise<void> {
    try {
      const written = await this.#write(chosen.map(({ write }) => write));
      for (const { write, resolve } of chosen) resolve(written.has(write.lease.place) ? "written" : "moved");
    } catch (error) {
      for (const { reject } of chosen) reject(error);
    }
  }

  async #write(writes: readonly Write[]): Promise<Set<unknown>> {
    const { schema } = this.#database;
    const segments = writes.filter(({ segment }) => segment !== null);
    const { rows } = await this.#database.once(
      `WITH ${writes[0]!.durability === "process" ? "fast AS (SELECT set_config('synchronous_commit', 'off', true))," : ""}
      given AS (
        SELECT * FROM unnest($1::uuid[], $2::uuid[], $3::bigint[], $4::bigint[], $5::bigint[], $6::text[], $7::boolean[])
          AS t (place, owner, fence, head, count, lines, opens)
      ),
      moved AS (
        UPDATE ${schema}.heads AS h SET head = h.head + g.count
        FROM given AS g${writes[0]!.durability === "process" ? ", fast" : ""}
        WHERE h.place = g.place AND h.owner = g.owner AND h.fence = g.fence AND h.head = g.head AND h.trashed IS NULL
        RETURNING h.place
      ),
      begun AS (
        INSERT INTO ${schema}.segments (place, number, epoch, first)
        SELECT s.* FROM unnest($8::uuid[], $9::integer[], $10::integer[], $11::bigint[]) AS s (place, number, epoch, first) JOIN moved USING (place)
      ),
      opened AS (
        UPDATE ${schema}.catalogue AS c SET closed = false FROM given AS g JOIN moved USING (place) WHERE c.place = g.place AND g.opens
      ),
      put AS (
        INSERT INTO ${schema}.lines (place, seq, line)
        SELECT g.place, g.head + l.number, l.line
        FROM given AS g JOIN moved USING (place), string_to_table(g.lines, E'\\n') WITH ORDINALITY AS l (line, number)
      )
      SELECT place FROM moved`,
      [
        writes.map(({ lease }) => lease.place),
        writes.map(({ lease }) => lease.owner),
        writes.map(({ lease }) => lease.fence),
        writes.map(({ head }) => head),
        writes.map(({ count }) => count),
        writes.map(({ lines }) => lines),
        writes.map(({ opens }) => opens),
        segments.map(({ lease }) => lease.place),
        segments.map(({ segment }) => segment!.number),
        segments.map(({ segment }) => segment!.epoch),
        segments.map(({ segment }) => segment!.first),
      ],
    );
    return new Set(rows.map((row) => row["place"]));
  }
}
