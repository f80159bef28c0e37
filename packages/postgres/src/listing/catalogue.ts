import type { Json } from "holdfast";
import {
  type ListHints,
  listCursor,
  newestFirst,
  type OrderClock,
  parseListCursor,
  RowFold,
  recordOf,
} from "holdfast/internal";
import type { Listed, ListOptions, Summariser } from "holdfast/store";
import type { Database, Row } from "../connection/database.ts";
import { codeOf } from "../failure.ts";
import { holderOf, isFree, type Lease } from "../leases/leases.ts";
import type { Lines } from "../reading/lines.ts";
import type { HeadState } from "./head-state.ts";

const heldOf = (schema: string): string => `NOT (${isFree(schema)}) AS held`;

/** How many stale rows are brought up to date in one go. */
const TOGETHER = 256;
/** How many rows that their writers have left one list settles. */
const SETTLED_MAX = 2048;
/** How often a worker that writes says which stamps it has given out. */
const NEWEST_MS = 1000;

/** The state of a session after `save`: being written; left for now, but not closed; closed by its writer. */
export type Mark = "live" | "left" | "closed";

export interface CatalogueRow extends Listed {
  readonly place: string;
  readonly stamp: string;
}

/** The rows for lists. They are derived, and lag less than a second behind a journal that is being written (S20). */
export class Catalogue {
  readonly #database: Database;
  readonly #lines: Lines;
  readonly #summariser: Summariser | undefined;
  readonly #clock: OrderClock;
  /** By place: the head for which this worker last saved the row. */
  readonly #saved = new Map<string, number>();
  #toldAt = Number.NEGATIVE_INFINITY;
  #mayOnlyRead = false;

  constructor(database: Database, lines: Lines, summariser: Summariser | undefined, clock: OrderClock) {
    this.#database = database;
    this.#lines = lines;
    this.#summariser = summariser;
    this.#clock = clock;
  }

  /** Makes this worker's next writes sort before everything that others have written, even if clocks differ. */
  async comeFirst(): Promise<void> {
    const { rows } = await this.#database.query("find the newest session", `SELECT ${this.#newest} AS newest`);
    this.#follow(rows);
  }

  get #newest(): string {
    return newestStamp(this.#database.schema);
  }

  #follow(rows: readonly Row[]): void {
    this.#clock.follow((rows[0]?.["newest"] as string | null | undefined) ?? undefined);
  }

  isBehind(place: string, head: number): boolean {
    return this.#saved.get(place) !== head;
  }

  /** A writer started or ended. */
  forget(place: string): void {
    this.#saved.delete(place);
  }

  /**
   * Saves the row of a session that this worker writes. Fenced like an append: a statement that arrives after its
   * worker was replaced changes nothing, and neither does one whose records a server that crashed has forgotten: a row
   * is never ahead of its journal. A session that is live changes only columns that no index has (list-columns.ts). The
   * row is derived, so nobody waits for the disk.
   */
  async save(lease: Lease, state: HeadState, mark: Mark): Promise<void> {
    const rows = mark === "live" ? await this.#saveLive(lease, state) : await this.#saveSettled(lease, state, mark);
    // Others may be ahead of this worker: its next write must sort as newer.
    this.#follow(rows);
    this.#saved.set(lease.place, state.head);
  }

  async #saveLive({ place, owner, fence }: Lease, { at, stamp, head, row }: HeadState): Promise<Row[]> {
    const { schema } = this.#database;
    const tells = performance.now() - this.#toldAt > NEWEST_MS;
    if (tells) this.#toldAt = performance.now();
    const told = `, told AS (UPDATE ${schema}.workers SET newest = $2 WHERE owner = $6 AND coalesce(newest, '') < $2)`;
    // The row has a fence of its own: it can change while this statement waits for it, and then only the row itself is
    // read again.
    const { rows } = await this.#database.query(
      "update the list",
      `WITH ${this.#database.noWait}${tells ? told : ""} UPDATE ${schema}.catalogue AS c
      SET live_at = $2, live_written = $3, live_head = $4, live_summary = $5, closed = false, fence = $7
      FROM power, ${schema}.heads AS h
      WHERE c.place = $1 AND c.head <= $4 AND coalesce(c.live_head, 0) <= $4 AND c.fence <= $7
        AND h.place = c.place AND h.owner = $6 AND h.fence = $7 AND h.head >= $4 RETURNING ${this.#newest} AS newest`,
      [place, stamp, differs(at, stamp), head, jsonb(row), owner, fence],
    );
    return rows;
  }

  /** A settled row is not looked at again, so this waits for the lock of a writer that is about to change it. */
  async #saveSettled({ place, owner, fence }: Lease, state: HeadState, mark: Mark): Promise<Row[]> {
    const { schema } = this.#database;
    const { at, stamp, head, row } = state;
    const { rows } = await this.#database.query(
      "update the list",
      `WITH ${this.#database.noWait}, ours AS (
        SELECT place FROM ${schema}.heads, power WHERE place = $1 AND owner = $6 AND fence = $7 AND head = $4 FOR SHARE OF heads
      )
      UPDATE ${schema}.catalogue AS c
      SET at = $2, written = $3, head = $4, summary = $5, fence = $7, closed = true, unclosed_head = ${mark === "left" ? "$4" : "NULL"}, ${NOT_LIVE}
      FROM ours WHERE c.place = ours.place AND c.head <= $4 RETURNING ${this.#newest} AS newest`,
      [place, stamp, differs(at, stamp), head, jsonb(row), owner, fence],
    );
    return rows;
  }

  /**
   * Lists sessions, newest first. A row that its writer has not updated, because it is busy or dead, appears as if it
   * had just been saved.
   */
  async list(options: ListOptions): Promise<{ readonly sessions: readonly Listed[]; readonly next?: string }> {
    const after = options.after === undefined ? null : parseListCursor(options.after);
    const limit = options.limit ?? Number.POSITIVE_INFINITY;
    const unsaved = await this.#refresh();
    const carried = unsaved.filter((row) => isMatch(row, after, options.where));
    const values: unknown[] = [];
    const value = (given: unknown): string => `$${values.push(given)}`;
    const conditions = ["h.trashed IS NULL", `c.place <> ALL (${value(unsaved.map(({ place }) => place))}::uuid[])`];
    if (after) conditions.push(`(c.at, c.id) < (${value(after.at)}, ${value(after.id)}::uuid)`);
    conditions.push(...whereOf(options.where ?? {}, value), ...hintsOf(options.hints ?? {}, value));
    const { schema } = this.#database;
    const page = limit === Number.POSITIVE_INFINITY ? "" : `LIMIT ${value(limit + 1)}`;
    const pageOf = (rows: string): string =>
      `SELECT c.place, c.id, c.at, c.written, c.head, c.closed, c.unclosed_head, c.summary::text, h.owner, h.holder
      FROM ${rows} AS c JOIN ${schema}.heads AS h USING (place) WHERE ${conditions.join(" AND ")} ORDER BY c.at DESC, c.id DESC ${page}`;
    // The index has the settled rows in order; the others are few. Check whether a worker is alive only for rows on
    // this page.
    const { rows } = await this.#database.query(
      "list sessions",
      `SELECT page.*, ${heldOf(schema)} FROM (
        SELECT * FROM ((${pageOf(settled(schema))}) UNION ALL (${pageOf(unsettled(schema))})) AS both_kinds ORDER BY at DESC, id DESC ${page}
      ) AS page, LATERAL (SELECT page.owner) AS h`,
      values,
    );
    const found = [...rows.map(listedOf), ...carried].sort(newestFirst);
    const sessions = found
      .slice(0, limit)
      .map(({ place: _, stamp, ...listed }) => (stamp === listed.at ? listed : { ...listed, stamp }));
    const last = sessions.at(-1);
    return last && found.length > sessions.length ? { sessions, next: listCursor(last) } : { sessions };
  }

  /** Brings stale rows up to date, as a list does. `freeOnly`: not those of sessions that are being written. */
  async settle(freeOnly: boolean): Promise<void> {
    await this.#refresh(freeOnly);
  }

  /**
   * Brings stale rows up to date and saves them. Returns those it cannot save: a reader may not, or another worker is
   * saving them. It also settles rows that their writers have left, so that no later list looks at them.
   */
  async #refresh(freeOnly = false): Promise<CatalogueRow[]> {
    const { schema } = this.#database;
    const isLeft = `NOT EXISTS (SELECT FROM ${schema}.workers AS w WHERE w.owner = h.owner AND w.expires > now())`;
    const { rows } = await this.#database.query(
      "list sessions",
      `SELECT c.place, c.id, c.at, c.written, c.head, c.closed, c.summary::text, h.holder, ${heldOf(schema)}, h.head AS newest, ${isLeft} AS left, h.trashed IS NOT NULL AS trashed
      FROM ${unsettled(schema)} AS c JOIN ${schema}.heads AS h USING (place) WHERE h.head <> c.head
      UNION ALL (SELECT c.place, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, true, NULL
      FROM ${unsettled(schema)} AS c JOIN ${schema}.heads AS h USING (place) WHERE h.head = c.head AND ${isLeft} LIMIT ${SETTLED_MAX})`,
    );
    const stale = rows.filter((row) => row["newest"] !== null && !(freeOnly && row["held"] === true));
    const unsaved: CatalogueRow[] = [];
    for (let first = 0; first < stale.length; first += TOGETHER) {
      const carried = await this.#bringUpToDate(stale.slice(first, first + TOGETHER));
      const saved = await this.#saveForOthers(carried.filter(({ closed }) => !closed));
      for (const row of carried)
        if (!(row.closed ? await this.#saveClosed(row) : saved.has(row.place))) unsaved.push(row);
    }
    const left = rows.filter((row) => row["left"] === true).map((row) => String(row["place"]));
    if (left.length > 0) await this.#settle(left.slice(0, SETTLED_MAX), isLeft);
    const trashed = new Set(stale.filter((row) => row["trashed"] === true).map((row) => row["place"]));
    return unsaved.filter(({ place }) => !trashed.has(place));
  }

  /** Skips rows that a worker is just taking over, and those with newer records. */
  async #settle(places: readonly string[], isLeft: string): Promise<void> {
    const { schema } = this.#database;
    const isLive = "c.live_head > c.head";
    const fresh = (name: string): string => `${name} = CASE WHEN ${isLive} THEN c.live_${name} ELSE c.${name} END`;
    const heads = "greatest(c.head, c.live_head)";
    await this.#attempt(
      `WITH ${this.#database.noWait}, alone AS (
        SELECT h.place, h.head FROM ${schema}.heads AS h, power WHERE h.place = ANY ($1::uuid[]) AND ${isLeft} ORDER BY h.place FOR SHARE OF h SKIP LOCKED
      )
      UPDATE ${schema}.catalogue AS c SET ${["at", "written", "summary", "head"].map(fresh).join(", ")}, closed = true, unclosed_head = ${heads}, ${NOT_LIVE}
      FROM alone WHERE c.place = alone.place AND NOT c.closed AND ${heads} = alone.head`,
      [places],
    );
  }

  /**
   * Applies all later lines. A row that is too far behind to be read together with the others is read alone. Workers of
   * earlier versions left rows ahead of their journal when the server crashed: such a row starts again.
   */
  async #bringUpToDate(rows: readonly Row[]): Promise<CatalogueRow[]> {
    const stale = rows.map((given) => {
      const row = listedOf(given);
      const to = Number(given["newest"]);
      const saved = row.head > to ? null : row;
      return { row, saved, place: row.place, from: (saved?.head ?? 0) + 1, to };
    });
    const together = await this.#lines.together(stale);
    const carried: CatalogueRow[] = [];
    for (const { row, saved, place, from, to } of stale) {
      const fold = new RowFold(saved, this.#summariser);
      const known = together.get(place);
      const chunks = known ? [known] : this.#lines.read(place, from, to);
      for await (const lines of chunks) for (const line of lines) fold.add(line.seq, recordOf(line));
      carried.push({ ...row, ...fold.row });
    }
    return carried;
  }

  /**
   * Returns the places that were saved. It skips rows that another worker is saving: saving the same rows in a
   * different order would deadlock.
   */
  async #saveForOthers(rows: readonly CatalogueRow[]): Promise<ReadonlySet<unknown>> {
    const { schema } = this.#database;
    if (rows.length === 0) return new Set();
    const saved = await this.#attempt(
      `WITH ${this.#database.noWait}, free AS (SELECT place FROM ${schema}.catalogue, power WHERE place = ANY ($1::uuid[]) FOR UPDATE OF catalogue SKIP LOCKED)
      UPDATE ${schema}.catalogue AS c SET live_at = s.at, live_written = s.written, live_head = s.head, live_summary = s.summary::jsonb
      FROM free JOIN unnest($1::uuid[], $2::text[], $3::text[], $4::bigint[], $5::text[]) AS s (place, at, written, head, summary) USING (place)
        JOIN ${schema}.heads AS h USING (place)
      WHERE c.place = s.place AND NOT c.closed AND s.head <= h.head AND (greatest(c.head, c.live_head) < s.head OR c.live_head > h.head) RETURNING c.place`,
      [
        rows.map(({ place }) => place),
        rows.map(({ stamp }) => stamp),
        rows.map(({ at, stamp }) => differs(at, stamp)),
        rows.map(({ head }) => head),
        rows.map(({ summary }) => jsonb(summary)),
      ],
    );
    return new Set(saved?.map((row) => row["place"]));
  }

  /** Only if nobody has written since: see `#saveSettled`. */
  async #saveClosed({ place, at, stamp, head, summary }: CatalogueRow): Promise<boolean> {
    const { schema } = this.#database;
    const saved = await this.#attempt(
      `WITH ${this.#database.noWait}, alone AS (SELECT place FROM ${schema}.heads, power WHERE place = $1 AND head = $3 FOR SHARE OF heads)
      UPDATE ${schema}.catalogue AS c SET at = $2, written = $5, head = $3, summary = $4, closed = true, unclosed_head = NULL, ${NOT_LIVE}
      FROM alone WHERE c.place = alone.place AND greatest(c.head, c.live_head) <> $3 RETURNING c.place`,
      [place, stamp, head, jsonb(summary), differs(at, stamp)],
    );
    return saved !== null && saved.length === 1;
  }

  /** Null: this role may not save it, or not now. The row stays stale, and the next list tries again. */
  async #attempt(text: string, values: readonly unknown[]): Promise<readonly Row[] | null> {
    if (this.#mayOnlyRead) return null;
    try {
      return (await this.#database.once(text, values)).rows;
    } catch (error) {
      // A reader role, or a standby.
      const code = codeOf(error);
      this.#mayOnlyRead = code === "42501" || code === "25006";
      return null;
    }
  }
}

/**
 * Precedes four hex digits for what JSON can represent and `jsonb` cannot: a NUL, and half of a surrogate pair. It is a
 * noncharacter, so texts do not contain it; if one does, it is escaped in the same way.
 */
const STAND_IN = "\ufdd0";

/** Escapes a row, or part of one, for `jsonb`. */
export function jsonb(row: Json): string {
  return JSON.stringify(row)
    .replaceAll(STAND_IN, `${STAND_IN}fdd0`)
    .replace(/(?<!\\)((?:\\\\)*)\\u(0000|d[89a-f][0-9a-f]{2})/g, `$1${STAND_IN}$2`);
}

/** The same for a plain text. */
function plain(text: string): string {
  return JSON.parse(jsonb(text)) as string;
}

function rowOf(text: string): Json {
  return JSON.parse(text.replace(new RegExp(`${STAND_IN}([0-9a-f]{4})`, "g"), "\\u$1")) as Json;
}

function isMatch(
  row: CatalogueRow,
  after: { readonly at: string; readonly id: string } | null,
  where: ListOptions["where"],
): boolean {
  if (after && newestFirst(row, after) <= 0) return false;
  const { summary } = row;
  const members = typeof summary === "object" && summary !== null ? (summary as Readonly<Record<string, Json>>) : {};
  return Object.entries(where ?? {}).every(
    ([name, wanted]) => (Object.hasOwn(members, name) ? members[name] : null) === wanted,
  );
}

/** The newest stamp of all sessions; null if there are none. Rows that are not settled say it through their workers. */
export function newestStamp(schema: string): string {
  return `greatest((SELECT newest.at FROM ${schema}.catalogue AS newest ORDER BY newest.at DESC LIMIT 1), (SELECT max(w.newest) FROM ${schema}.workers AS w))`;
}

const NOT_LIVE = "live_at = NULL, live_written = NULL, live_head = NULL, live_summary = NULL";

/** The rows that are settled. */
export function settled(schema: string): string {
  return `(SELECT * FROM ${schema}.catalogue WHERE closed)`;
}

/** The rows that are not settled, with their live values. */
export function unsettled(schema: string): string {
  const fresh = (name: string): string => `CASE WHEN live_head > head THEN live_${name} ELSE ${name} END AS ${name}`;
  return `(SELECT place, id, closed, unclosed_head, ${["at", "written", "head", "summary"].map(fresh).join(", ")} FROM ${schema}.catalogue WHERE NOT closed)`;
}

/** The time, if it differs from the stamp. */
export function differs(at: string, stamp: string): string | null {
  return at === stamp ? null : at;
}

/** A missing member counts as null. */
export function whereOf(where: NonNullable<ListOptions["where"]>, value: (given: unknown) => string): string[] {
  const present = Object.entries(where).filter(([, wanted]) => wanted !== null);
  const absent = Object.keys(where).filter((name) => where[name] === null);
  return [
    ...(present.length > 0 ? [`c.summary @> ${value(jsonb(Object.fromEntries(present)))}::jsonb`] : []),
    ...absent.map((name) => `coalesce(c.summary -> ${value(plain(name))}::text, 'null') = 'null'`),
  ];
}

/** These conditions never drop a match, but may keep more: the caller checks again. */
export function hintsOf(
  { since, until, within, noneOf, anyOf }: ListHints,
  value: (given: unknown) => string,
): string[] {
  return [
    ...(since === undefined ? [] : [`c.at >= ${value(since)}`]),
    // Where they differ, the stamp is later.
    ...(until === undefined ? [] : [`(c.at < ${value(until)} OR c.written IS NOT NULL)`]),
    ...(within === undefined ? [] : [`c.summary @> ${value(jsonb(within))}::jsonb`]),
    ...Object.entries(noneOf ?? {}).map(
      ([name, values]) =>
        `coalesce(c.summary ->> ${value(plain(name))}::text, '') <> ALL (${value(values.map(plain))}::text[])`,
    ),
    ...(anyOf === undefined
      ? []
      : [
          `EXISTS (SELECT 1 FROM unnest(${value(anyOf.map(plain))}::text[]) AS name
            WHERE coalesce(c.summary -> name, 'null') NOT IN ('null', 'false', '0', '""', '[]', '{}'))`,
        ]),
  ];
}

export function listedOf(row: Row): CatalogueRow {
  const stamp = String(row["at"]);
  return {
    place: String(row["place"]),
    id: String(row["id"]),
    at: (row["written"] as string | null) ?? stamp,
    stamp,
    head: Number(row["head"]),
    closed: row["closed"] === true && row["unclosed_head"] !== row["head"],
    // As text: an application's own pool may parse JSON differently.
    summary: rowOf((row["summary"] as string | null) ?? "null"),
    holder: row["held"] === true ? holderOf(row) : null,
  };
}
