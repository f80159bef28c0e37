import { HoldfastError, isHoldfastError } from "holdfast";
import type { TextBacklog, TextBehind, TextProgress } from "holdfast/internal";
import type { Database, Row } from "../connection/database.ts";
import { unsettled } from "../listing/catalogue.ts";

/** How many changes, or sessions of the first comparison, one page holds. */
const PAGE = 200;
const PAGE_BACKGROUND = 20;
/** A process that indexes in the background has this long for a page before another one may take over. */
const CLAIM_MS = 60_000;
/** The first comparison goes from the newest session to the oldest. */
const ABOVE_ALL = "ffffffff-ffff-ffff-ffff-ffffffffffff";
const BELOW_ALL = "00000000-0000-0000-0000-000000000000";
/** So many changes are kept without looking whether they are still of use. */
const CHANGES_KEPT = 100_000;

/**
 * Finds the sessions that are to be indexed. Those being written are compared each time, for they are few. Triggers
 * name the others that have changed (search-tables.ts). Only the first time are all of them compared, page by page, and
 * the database remembers how far that has come.
 */
export class Backlog {
  readonly #database: Database;
  readonly #list: () => Promise<unknown>;
  /** Whether rows of forgotten sessions were left when it was last asked. */
  hasGone = true;

  /** `list` brings stale rows up to date. */
  constructor(database: Database, list: () => Promise<unknown>) {
    this.#database = database;
    this.#list = list;
  }

  async *pages({ background = false }: { readonly background?: boolean } = {}): AsyncGenerator<TextBacklog> {
    if (background) {
      if (await this.#claim()) yield* this.#sweep(PAGE_BACKGROUND);
      return;
    }
    let rows = await this.#changed(0);
    if (rows.some((row) => row["stale"] === true)) {
      await this.#list();
      rows = await this.#changed(0);
    }
    const state = rows.find((row) => row["kind"] === "state");
    this.hasGone = state?.["gone"] === true;
    const swept = state?.["swept"] === true;
    if (state?.["reader"] === true && (!swept || rows.some(isBehind))) throw mayNotIndex(this.#database.name);
    if (!swept) {
      yield* this.#sweep(PAGE);
      rows = await this.#changed(0);
    }
    // After a first comparison nearly all changes are done.
    yield* this.#changes(rows, swept ? await this.#count(rows) : 0);
  }

  /** Everything that `#changed` finds, from its first answer on. Reports how far it is, if `total` is large. */
  async *#changes(first: Row[], total: number): AsyncGenerator<TextBacklog> {
    let rows = first;
    let done = 0;
    const progress = (): TextProgress | null =>
      total > PAGE_BACKGROUND ? { done: Math.min(done, total), total } : null;
    for (;;) {
      const found = rows.filter((row) => row["kind"] !== "state");
      for (let begin = 0; begin < found.length; begin += PAGE) {
        const page = found.slice(begin, begin + PAGE);
        yield this.#page(page, progress());
        done += page.length;
      }
      const last = Math.max(0, ...rows.map((row) => Number(row["n"] ?? 0)));
      if (last === 0) break;
      rows = (await this.#changed(last)).filter((row) => row["n"] !== null);
    }
    done = total;
    if (progress()) yield this.#page([], progress());
  }

  /** How many rows there are in all, these included. */
  async #count(rows: readonly Row[]): Promise<number> {
    const changes = rows.filter((row) => row["n"] !== null).length;
    const others = rows.length - 1 - changes;
    if (changes < PAGE) return others + changes;
    const { rows: counted } = await this.#query(`SELECT count(*) AS total FROM ${this.#database.schema}.texts_changes`);
    return others + Number(counted[0]?.["total"]);
  }

  /**
   * Everything that may be behind, in one statement: usually there is nothing. Always returns a row of the kind
   * `state`.
   */
  async #changed(after: number): Promise<Row[]> {
    const { schema } = this.#database;
    const differs = "(t.id IS NULL OR t.head <> c.head OR t.at <> c.at)";
    const { rows } = await this.#query(
      `SELECT 'live' AS kind, c.id, c.at, c.head, NULL::bigint AS n, h.head <> c.head AS stale, NULL::boolean AS gone, NULL::boolean AS behind, NULL::boolean AS swept, NULL::boolean AS reader
      FROM ${unsettled(schema)} AS c JOIN ${schema}.heads AS h USING (place) LEFT JOIN ${schema}.texts_sessions AS t ON t.id = c.id
      WHERE h.trashed IS NULL AND (h.head <> c.head OR ${differs})
      UNION ALL SELECT 'change', ch.id, c.at, c.head, ch.n, NULL, h.id IS NULL AND t.id IS NOT NULL, c.closed AND ${differs}, NULL, NULL
      FROM (SELECT n, id FROM ${schema}.texts_changes WHERE n > $1 ORDER BY n LIMIT ${PAGE}) AS ch
      LEFT JOIN ${schema}.heads AS h ON h.id = ch.id AND h.trashed IS NULL LEFT JOIN ${schema}.catalogue AS c ON c.place = h.place
      LEFT JOIN ${schema}.texts_sessions AS t ON t.id = ch.id
      UNION ALL SELECT 'blind', t.id, c.at, c.head, NULL, NULL, NULL, NULL, NULL, NULL
      FROM ${schema}.texts_sessions AS t JOIN ${schema}.heads AS h ON h.id = t.id AND h.trashed IS NULL JOIN ${schema}.catalogue AS c ON c.place = h.place
      WHERE t.blind AND c.closed
      UNION ALL SELECT 'state', NULL, NULL, NULL, NULL, NULL, EXISTS (SELECT FROM ${schema}.texts_gone), NULL,
        EXISTS (SELECT FROM ${schema}.texts_sweep WHERE below = '${BELOW_ALL}') AND EXISTS (SELECT FROM ${schema}.texts_sessions),
        current_setting('transaction_read_only') = 'on'`,
      [after],
    );
    return rows;
  }

  #page(rows: readonly Row[], progress: TextProgress | null): TextBacklog {
    const sessions = new Map(rows.filter(isBehind).map((row) => [String(row["id"]), behindOf(row)]));
    const gone = rows.filter((row) => row["kind"] === "change" && row["gone"] === true).map((row) => String(row["id"]));
    const finish = async (unread: readonly string[]): Promise<void> => {
      const done = rows
        .filter((row) => row["n"] !== null && !unread.includes(String(row["id"])))
        .map((row) => row["n"]);
      if (done.length === 0) return;
      try {
        await this.#query(
          `WITH ${this.#database.longNoWait} DELETE FROM ${this.#database.schema}.texts_changes USING power WHERE n = ANY ($1::bigint[])`,
          [done],
        );
      } catch (error) {
        // A reader: others remove them.
        const nothing = sessions.size === 0 && gone.length === 0;
        if (!nothing || !isHoldfastError(error, "STORE_FORBIDDEN")) throw error;
      }
    };
    return { sessions: [...sessions.values()], gone: [...new Set(gone)], progress, finish };
  }

  /** Compares all sessions, from where the last process stopped. */
  async *#sweep(size: number): AsyncGenerator<TextBacklog> {
    const { schema } = this.#database;
    let { below, done } = await this.#begin();
    const { rows: counted } = await this.#query(`SELECT count(*) AS total FROM ${schema}.catalogue`);
    const total = Number(counted[0]?.["total"]);
    while (below !== BELOW_ALL) {
      const { rows } = await this.#query(
        `SELECT c.place, c.id, c.at, c.head, c.closed AND h.trashed IS NULL AND (t.id IS NULL OR t.head <> c.head OR t.at <> c.at) AS behind
        FROM (SELECT * FROM ${schema}.catalogue WHERE place < $1 ORDER BY place DESC LIMIT ${size}) AS c
        JOIN ${schema}.heads AS h USING (place) LEFT JOIN ${schema}.texts_sessions AS t ON t.id = c.id ORDER BY c.place DESC`,
        [below],
      );
      below = rows.length === 0 ? BELOW_ALL : String(rows.at(-1)!["place"]);
      const progress: TextProgress = { done: rows.length === 0 ? total : Math.min(done, total), total };
      done += rows.length;
      const [next, count] = [below, done];
      const finish = (unread: readonly string[]): Promise<void> => this.#move(next, count, unread);
      const sessions = rows.filter((row) => row["behind"] === true).map(behindOf);
      yield { sessions, gone: [], progress, finish };
    }
  }

  /** Where to go on. From the start, if the tables were emptied. */
  async #begin(): Promise<{ below: string; done: number }> {
    const { schema } = this.#database;
    const { rows } = await this.#query(
      `SELECT below, done FROM ${schema}.texts_sweep WHERE EXISTS (SELECT FROM ${schema}.texts_sessions)`,
    );
    if (rows[0]) return { below: String(rows[0]["below"]), done: Number(rows[0]["done"]) };
    await this.#query(
      `WITH ${this.#database.longNoWait} INSERT INTO ${schema}.texts_sweep (done, below) SELECT 0, '${ABOVE_ALL}' FROM power ON CONFLICT (one) DO UPDATE SET done = 0, below = excluded.below`,
    );
    return { below: ABOVE_ALL, done: 0 };
  }

  /** Several processes may be at it: what one of them has compared counts. */
  async #move(below: string, done: number, unread: readonly string[]): Promise<void> {
    const { schema } = this.#database;
    await this.#query(
      `WITH ${this.#database.longNoWait}, again AS (INSERT INTO ${schema}.texts_changes (id) SELECT unnest($3::uuid[]))
      UPDATE ${schema}.texts_sweep SET below = least(below, $1), done = greatest(done, $2), claimed = NULL FROM power`,
      [below, done, unread],
    );
  }

  /** False: there is nothing to compare, or another process is at it. */
  async #claim(): Promise<boolean> {
    const { schema } = this.#database;
    const { rowCount } = await this.#query(
      `WITH ${this.#database.longNoWait}
      INSERT INTO ${schema}.texts_sweep AS s (done, below, claimed) SELECT 0, '${ABOVE_ALL}', now() FROM power
      ON CONFLICT (one) DO UPDATE SET claimed = now()
      WHERE (s.claimed IS NULL OR s.claimed < now() - ${CLAIM_MS} * interval '1 millisecond')
        AND (s.below <> '${BELOW_ALL}' OR NOT EXISTS (SELECT FROM ${schema}.texts_sessions))`,
    );
    return rowCount === 1;
  }

  /** Without searches, nobody takes the changes away. Keeps the newest, and those that still matter. */
  async trim(): Promise<void> {
    const { schema } = this.#database;
    await this.#query(
      `WITH ${this.#database.longNoWait} DELETE FROM ${schema}.texts_changes AS ch USING power WHERE ch.n <= (SELECT max(n) FROM ${schema}.texts_changes) - ${CHANGES_KEPT}
        AND (NOT EXISTS (SELECT FROM ${schema}.texts_sweep) OR EXISTS (
          SELECT FROM ${schema}.heads AS h JOIN ${schema}.catalogue AS c USING (place) JOIN ${schema}.texts_sessions AS t ON t.id = h.id
          WHERE h.id = ch.id AND h.trashed IS NULL AND t.head = c.head AND t.at = c.at))`,
    );
  }

  #query(text: string, values: readonly unknown[] = []): ReturnType<Database["query"]> {
    return this.#database.query("search", text, values);
  }
}

function isBehind(row: Row): boolean {
  return row["kind"] === "change" ? row["behind"] === true : row["kind"] !== "state";
}

function behindOf(row: Row): TextBehind {
  return { id: String(row["id"]), at: String(row["at"]), head: Number(row["head"]) };
}

/** A standby, or a read-only role: the layer above then uses its own index. */
function mayNotIndex(name: string): HoldfastError {
  const message = `Cannot update the full-text index in ${name}: the database is read-only. Nothing was touched.`;
  return new HoldfastError("STORE_FORBIDDEN", message, { database: name });
}
