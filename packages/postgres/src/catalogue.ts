import type { Json, Listed, ListHints, ListOptions, Summariser } from "holdfast";
import {
  aheadAfter,
  aheadOf,
  type Line,
  listCursor,
  newestFirst,
  type OrderClock,
  parseListCursor,
  recordOf,
  rowIn,
  stampOf,
} from "holdfast/kit";
import type { Database, Row } from "./database.ts";
import { codeOf } from "./failure.ts";
import { holderOf, isFree } from "./leases.ts";
import type { Lines } from "./lines.ts";
import type { Standing } from "./lot.ts";

const heldOf = (schema: string): string => `NOT (${isFree(schema)}) AS held`;

/** So many rows that were left behind are carried on in one go. */
const TOGETHER = 256;

interface Found extends Listed {
  readonly place: string;
  readonly stamp: string;
}

/** The rows that lists show. They are derived, and less than a second behind their journals while these are written (S20). */
export class Catalogue {
  readonly #database: Database;
  readonly #lines: Lines;
  readonly #summariser: Summariser | undefined;
  readonly #clock: OrderClock;
  /** By place: what a row was last saved for, by this worker. */
  readonly #saved = new Map<string, number>();
  #mayOnlyRead = false;

  constructor(database: Database, lines: Lines, summariser: Summariser | undefined, clock: OrderClock) {
    this.#database = database;
    this.#lines = lines;
    this.#summariser = summariser;
    this.#clock = clock;
  }

  /** What this worker writes from now on comes before all that others have written, whatever the clocks say. */
  async comeFirst(): Promise<void> {
    const { rows } = await this.#database.query("look for the newest session", `SELECT ${this.#newest} AS newest`);
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

  /** A writer has begun, or ended. */
  forget(place: string): void {
    this.#saved.delete(place);
  }

  async save(place: string, { at, stamp, head, row }: Standing, closed: boolean): Promise<void> {
    const { rows } = await this.#database.query(
      "save the row of the list",
      `UPDATE ${this.#database.schema}.catalogue SET at = $2, written = $6, head = $3, closed = $4, summary = $5
      WHERE place = $1 AND head <= $3 RETURNING ${this.#newest} AS newest`,
      [place, stamp, head, closed, jsonb(row), differs(at, stamp)],
    );
    // Others may be ahead of this worker: what it writes next is newer.
    this.#follow(rows);
    this.#saved.set(place, head);
  }

  /** Newest first. Rows that their writers have left behind, because they are at work or have died, are shown as they would be if they had been saved just now. */
  async list(options: ListOptions): Promise<{ readonly sessions: readonly Listed[]; readonly next?: string }> {
    const after = options.after === undefined ? null : parseListCursor(options.after);
    const limit = options.limit ?? Number.POSITIVE_INFINITY;
    const unsaved = await this.#carryOn();
    const carried = unsaved.filter((row) => fits(row, after, options.where));
    const values: unknown[] = [];
    const value = (given: unknown): string => `$${values.push(given)}`;
    const conditions = ["h.trashed IS NULL", `c.place <> ALL (${value(unsaved.map(({ place }) => place))}::uuid[])`];
    if (after) conditions.push(`(c.at, c.id) < (${value(after.at)}, ${value(after.id)}::uuid)`);
    conditions.push(...whereOf(options.where ?? {}, value), ...hintsOf(options.hints ?? {}, value));
    // Whether a worker lives is asked for those of the page alone.
    const { rows } = await this.#database.query(
      "list the sessions",
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

  /** Saves what it can; what it may not save, as a mere reader, or what another is just saving, is returned. */
  async #carryOn(): Promise<Found[]> {
    const { schema } = this.#database;
    const { rows } = await this.#database.query(
      "list the sessions",
      `SELECT c.place, c.id, c.at, c.written, c.head, c.closed, c.summary::text, h.holder, ${heldOf(schema)}, h.head AS newest
      FROM ${schema}.catalogue AS c JOIN ${schema}.heads AS h USING (place) WHERE NOT c.closed AND h.head > c.head AND h.trashed IS NULL`,
    );
    const unsaved: Found[] = [];
    for (let first = 0; first < rows.length; first += TOGETHER) {
      const carried = await this.#carried(rows.slice(first, first + TOGETHER));
      const saved = await this.#saveForOthers(carried.filter(({ closed }) => !closed));
      for (const row of carried)
        if (!(row.closed ? await this.#saveClosed(row) : saved.has(row.place))) unsaved.push(row);
    }
    return unsaved;
  }

  /** Over all lines that came later. Who is too far behind to be read with the others is read for itself. */
  async #carried(rows: readonly Row[]): Promise<Found[]> {
    const behind = rows.map((row) => ({ row: listedOf(row), newest: Number(row["newest"]) }));
    const stretches = behind.map(({ row: { place, head }, newest }) => ({ place, from: head + 1, to: newest }));
    const together = await this.#lines.together(stretches);
    const carried: Found[] = [];
    for (const { row, newest } of behind) {
      let found = this.#over(row, together.get(row.place) ?? []);
      if (!together.has(row.place))
        for await (const lines of this.#lines.read(row.place, row.head + 1, newest)) found = this.#over(found, lines);
      carried.push(found);
    }
    return carried;
  }

  #over(row: Found, lines: readonly Line[]): Found {
    let { at, head, closed, summary } = row;
    let ahead = aheadOf(row.stamp, at);
    for (const line of lines) {
      head = line.seq;
      const record = recordOf(line);
      if (!record) continue;
      at = record.at;
      ahead = aheadAfter(ahead, record);
      closed = record.kind === "closed";
      const carried = rowIn(record, this.#summariser);
      if (carried !== undefined) summary = carried;
      else if (this.#summariser) summary = this.#summariser.add(summary, record);
    }
    return { ...row, at, stamp: stampOf(at, ahead), head, closed, summary };
  }

  /** Answers the places that are saved. Not those that another is just saving: two who save the same in another order would wait for each other for ever. */
  async #saveForOthers(rows: readonly Found[]): Promise<ReadonlySet<unknown>> {
    const { schema } = this.#database;
    if (rows.length === 0) return new Set();
    const saved = await this.#attempt(
      `WITH free AS (SELECT place FROM ${schema}.catalogue WHERE place = ANY ($1::uuid[]) FOR UPDATE SKIP LOCKED)
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

  /** A row that is closed is not carried on: it is only while nobody has written on since, and the lock waits for whoever is about to. */
  async #saveClosed({ place, at, stamp, head, summary }: Found): Promise<boolean> {
    const { schema } = this.#database;
    const saved = await this.#attempt(
      `UPDATE ${schema}.catalogue SET at = $2, written = $5, head = $3, summary = $4,
        closed = coalesce((SELECT head = $3 FROM (SELECT head FROM ${schema}.heads WHERE place = $1 FOR SHARE) AS h), false)
      WHERE place = $1 AND head < $3`,
      [place, stamp, head, jsonb(summary), differs(at, stamp)],
    );
    return saved !== null;
  }

  /** Null: it may not be saved, or not now. The row stays behind, and is carried on again. */
  async #attempt(text: string, values: readonly unknown[]): Promise<readonly Row[] | null> {
    if (this.#mayOnlyRead) return null;
    try {
      return (await this.#database.once(text, values)).rows;
    } catch (error) {
      // A reader, or a standby.
      const code = codeOf(error);
      this.#mayOnlyRead = code === "42501" || code === "25006";
      return null;
    }
  }
}

/** Stands before four digits for what JSON can say and `jsonb` cannot: a NUL, and half of a surrogate pair. No character, so nobody else writes it; if somebody does, it stands for itself in the same way. */
const STAND_IN = "\ufdd0";

/** A row, or a part of one, as the database can hold it. */
export function jsonb(row: Json): string {
  return JSON.stringify(row)
    .replaceAll(STAND_IN, `${STAND_IN}fdd0`)
    .replace(/(?<!\\)((?:\\\\)*)\\u(0000|d[89a-f][0-9a-f]{2})/g, `$1${STAND_IN}$2`);
}

/** The same of one text, where there is no JSON around it. */
function plain(text: string): string {
  return JSON.parse(jsonb(text)) as string;
}

function rowOf(text: string): Json {
  return JSON.parse(text.replace(new RegExp(`${STAND_IN}([0-9a-f]{4})`, "g"), "\\u$1")) as Json;
}

function fits(
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

/** The stamp of the session that was written to last; null if there is none. */
export function newestStamp(schema: string): string {
  return `(SELECT newest.at FROM ${schema}.catalogue AS newest ORDER BY newest.at DESC LIMIT 1)`;
}

/** The time, where it is not the stamp. */
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

/** None of these leaves out what fits; the rest is up to whoever asks. */
function hintsOf({ since, until, within, noneOf, anyOf }: ListHints, value: (given: unknown) => string): string[] {
  return [
    ...(since === undefined ? [] : [`c.at >= ${value(since)}`]),
    // Where the two differ, the stamp is the later one.
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
    // As text: what JSON is read as is up to an application's own pool.
    summary: rowOf((row["summary"] as string | null) ?? "null"),
    holder: row["held"] === true ? holderOf(row) : null,
  };
}
