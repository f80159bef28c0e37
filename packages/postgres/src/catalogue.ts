import type { Json } from "holdfast";
import {
  type Listed,
  type ListHints,
  type ListOptions,
  listCursor,
  newestFirst,
  type OrderClock,
  parseListCursor,
  RowFold,
  recordOf,
  type Summariser,
} from "holdfast/store";
import type { Database, Row } from "./database.ts";
import { codeOf } from "./failure.ts";
import { holderOf, isFree, type Lease } from "./leases.ts";
import type { Lines } from "./lines.ts";
import type { HeadState } from "./session-batch.ts";

const heldOf = (schema: string): string => `NOT (${isFree(schema)}) AS held`;

/** How many stale rows are brought up to date in one go. */
const TOGETHER = 256;

interface Found extends Listed {
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
   * Saves the writer's row. Fenced like an append: a statement that arrives after its worker was replaced changes
   * nothing. The row has a fence of its own, because it can change while this statement waits for it, and then only the
   * row itself is read again. The row is derived, so nobody waits for the disk.
   */
  async save(
    { place, owner, fence }: Lease,
    { at, stamp, head, row }: HeadState,
    closed: boolean,
  ): Promise<void> {
    const { schema } = this.#database;
    const { rows } = await this.#database.query(
      "update the list",
      `WITH ${this.#database.noWait} UPDATE ${schema}.catalogue AS c SET at = $2, written = $6, head = $3, closed = $4, summary = $5, fence = $8
      FROM power, ${schema}.heads AS h
      WHERE c.place = $1 AND c.head <= $3 AND c.fence <= $8 AND h.place = c.place AND h.owner = $7 AND h.fence = $8
      RETURNING ${this.#newest} AS newest`,
      [place, stamp, head, closed, jsonb(row), differs(at, stamp), owner, fence],
    );
    // Others may be ahead of this worker: its next write must sort as newer.
    this.#follow(rows);
    this.#saved.set(place, head);
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
    // Check whether a worker is alive only for rows on this page.
    const { rows } = await this.#database.query(
      "list sessions",
      `SELECT page.*, ${heldOf(this.#database.schema)} FROM (
        SELECT c.place, c.id, c.at, c.written, c.head, c.closed, c.summary::text, h.owner, h.holder
        FROM ${this.#database.schema}.catalogue AS c JOIN ${this.#database.schema}.heads AS h USING (place)
        WHERE ${conditions.join(" AND ")} ORDER BY c.at DESC, c.id DESC ${limit === Number.POSITIVE_INFINITY ? "" : `LIMIT ${value(limit + 1)}`}
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

  /**
   * Brings stale rows up to date and saves them. Returns those it cannot save: a reader may not, or another worker is
   * saving them.
   */
  async #refresh(): Promise<Found[]> {
    const { schema } = this.#database;
    const { rows } = await this.#database.query(
      "list sessions",
      `SELECT c.place, c.id, c.at, c.written, c.head, c.closed, c.summary::text, h.holder, ${heldOf(schema)}, h.head AS newest
      FROM ${schema}.catalogue AS c JOIN ${schema}.heads AS h USING (place) WHERE NOT c.closed AND h.head > c.head AND h.trashed IS NULL`,
    );
    const unsaved: Found[] = [];
    for (let first = 0; first < rows.length; first += TOGETHER) {
      const carried = await this.#bringUpToDate(rows.slice(first, first + TOGETHER));
      const saved = await this.#saveForOthers(carried.filter(({ closed }) => !closed));
      for (const row of carried)
        if (!(row.closed ? await this.#saveClosed(row) : saved.has(row.place))) unsaved.push(row);
    }
    return unsaved;
  }

  /** Applies all later lines. A row that is too far behind to be read together with the others is read alone. */
  async #bringUpToDate(rows: readonly Row[]): Promise<Found[]> {
    const behind = rows.map((row) => ({ row: listedOf(row), newest: Number(row["newest"]) }));
    const stretches = behind.map(({ row: { place, head }, newest }) => ({ place, from: head + 1, to: newest }));
    const together = await this.#lines.together(stretches);
    const carried: Found[] = [];
    for (const { row, newest } of behind) {
      const fold = new RowFold(row, this.#summariser);
      const known = together.get(row.place);
      const chunks = known ? [known] : this.#lines.read(row.place, row.head + 1, newest);
      for await (const lines of chunks) for (const line of lines) fold.add(line.seq, recordOf(line));
      carried.push({ ...row, ...fold.row });
    }
    return carried;
  }

  /**
   * Returns the places that were saved. It skips rows that another worker is saving: saving the same rows in a
   * different order would deadlock.
   */
  async #saveForOthers(rows: readonly Found[]): Promise<ReadonlySet<unknown>> {
    const { schema } = this.#database;
    if (rows.length === 0) return new Set();
    const saved = await this.#attempt(
      `WITH ${this.#database.noWait}, free AS (SELECT place FROM ${schema}.catalogue, power WHERE place = ANY ($1::uuid[]) FOR UPDATE OF catalogue SKIP LOCKED)
      UPDATE ${schema}.catalogue AS c SET at = s.at, written = s.written, head = s.head, summary = s.summary::jsonb
      FROM free JOIN unnest($1::uuid[], $2::text[], $3::text[], $4::bigint[], $5::text[]) AS s (place, at, written, head, summary) USING (place)
      WHERE c.place = s.place AND c.head < s.head RETURNING c.place`,
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

  /**
   * Nobody brings a closed row up to date later, so it may be closed only if nobody has written since. The lock waits
   * for a writer who is about to.
   */
  async #saveClosed({ place, at, stamp, head, summary }: Found): Promise<boolean> {
    const { schema } = this.#database;
    const saved = await this.#attempt(
      `WITH ${this.#database.noWait} UPDATE ${schema}.catalogue SET at = $2, written = $5, head = $3, summary = $4,
        closed = coalesce((SELECT head = $3 FROM (SELECT head FROM ${schema}.heads WHERE place = $1 FOR SHARE) AS h), false)
      FROM power WHERE place = $1 AND head < $3`,
      [place, stamp, head, jsonb(summary), differs(at, stamp)],
    );
    return saved !== null;
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
  row: Found,
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

/** The newest stamp of all sessions; null if there are none. */
export function newestStamp(schema: string): string {
  return `(SELECT newest.at FROM ${schema}.catalogue AS newest ORDER BY newest.at DESC LIMIT 1)`;
}

/** The time, if it differs from the stamp. */
export function differs(at: string, stamp: string): string | null {
  return at === stamp ? null : at;
}

/** A missing member counts as null. */
function whereOf(where: NonNullable<ListOptions["where"]>, value: (given: unknown) => string): string[] {
  const present = Object.entries(where).filter(([, wanted]) => wanted !== null);
  const absent = Object.keys(where).filter((name) => where[name] === null);
  return [
    ...(present.length > 0 ? [`c.summary @> ${value(jsonb(Object.fromEntries(present)))}::jsonb`] : []),
    ...absent.map((name) => `coalesce(c.summary -> ${value(plain(name))}::text, 'null') = 'null'`),
  ];
}

/** These conditions never drop a match, but may keep more: the caller checks again. */
function hintsOf({ since, until, within, noneOf, anyOf }: ListHints, value: (given: unknown) => string): string[] {
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

function listedOf(row: Row): Found {
  const stamp = String(row["at"]);
  return {
    place: String(row["place"]),
    id: String(row["id"]),
    at: (row["written"] as string | null) ?? stamp,
    stamp,
    head: Number(row["head"]),
    closed: row["closed"] === true,
    // As text: an application's own pool may parse JSON differently.
    summary: rowOf((row["summary"] as string | null) ?? "null"),
    holder: row["held"] === true ? holderOf(row) : null,
  };
}
