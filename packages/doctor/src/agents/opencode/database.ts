import { isUtf8 } from "node:buffer";
import { type Problem, problem } from "../../contract/problem.ts";
import type { Place } from "../../contract/record.ts";
import { type Fields, textIn, timeIn } from "../../contract/shapes.ts";
import type { DatabaseCopy } from "../../files/database.ts";
import { EventLog } from "./events.ts";
import type { Listed, Row, Rows } from "./rows.ts";

/** The database of OpenCode: `session`, `message` and `part`, and `event`, which says each state of them again. */

/** The columns that a database has if it is one of OpenCode. */
export const COLUMNS: Readonly<Record<string, readonly string[]>> = {
  session: ["id", "parent_id", "directory", "title", "time_created"],
  message: ["id", "session_id", "time_created", "data"],
  part: ["id", "message_id", "session_id", "time_created", "data"],
};

const NOT_DELETED = `select distinct aggregate_id as id from event
  where aggregate_id not in (select aggregate_id from event where type like 'session.deleted%')`;
const IDS_MAX = 500_000;

/** OpenCode parses these of each session, and refuses all if it cannot. */
export const JSON_COLUMNS = ["summary_diffs", "metadata", "revert", "permission", "model"] as const;

type Columns = Readonly<Record<string, unknown>>;

export class DatabaseRows implements Rows {
  readonly #database: DatabaseCopy;
  readonly #tables: ReadonlyMap<string, readonly string[]>;
  readonly #isDamaged: boolean;
  #log: { readonly session: string; readonly events: EventLog } | null = null;
  constructor(database: DatabaseCopy) {
    this.#database = database;
    this.#tables = database.tables();
    this.#isDamaged = database.damage.length > 0;
  }

  *problems(): Generator<Problem> {
    const place: Place = { file: this.#database.path, line: null, offset: null };
    for (const { kind, words } of this.#database.damage)
      yield problem(kind, place, { detail: words, means: `${words}. OpenCode may refuse all its sessions.` });
    if (this.#isDamaged) return;
    for (const [table, columns] of Object.entries(COLUMNS))
      if (!columns.every((column) => this.#tables.get(table)?.includes(column)))
        yield problem("damaged-database", place, { detail: `it has no table ${table}, or another one` });
  }

  /** The sessions that are no sub-agents of others, also those whose own row is lost. */
  roots(): { readonly id: string; readonly folder: string | null }[] {
    const folders = new Map<string, { readonly parent: string | null; readonly folder: string | null }>();
    for (const { id, parent_id, directory } of this.#read("session", "select id, parent_id, directory from session"))
      folders.set(String(id), { parent: textIn(parent_id), folder: textIn(directory) });
    for (const table of ["message", "part"])
      for (const { id } of this.#read(table, `select distinct session_id as id from ${table}`))
        if (!folders.has(String(id))) folders.set(String(id), { parent: null, folder: null });
    if (this.#isDamaged && this.#hasEvents())
      for (const { id } of this.#database.rows(NOT_DELETED))
        if (String(id).startsWith("ses_") && !folders.has(String(id)))
          folders.set(String(id), { parent: null, folder: null });
    // Two that name each other as parents have no root: both are listed.
    return [...folders].flatMap(([id, { parent, folder }]) => {
      const isChild = parent !== null && parent !== id && folders.has(parent) && folders.get(parent)!.parent !== id;
      return isChild ? [] : [{ id, folder }];
    });
  }

  session(id: string): Listed {
    const place = this.#place("session", id);
    const [columns] = [...this.#read("session", "select * from session where id = ?", id)];
    if (!columns) return { id, row: null, place };
    const text = JSON_COLUMNS.every((name) => isJson(columns[name])) ? JSON.stringify(columns) : null;
    const bytes = Buffer.from(JSON.stringify({ table: "session", ...columns }));
    return { id, place, row: { id, place, bytes, text, isUtf8: true, at: timeIn(columns["time_created"]) } };
  }

  children(id: string): readonly string[] {
    const sql = "select id from session where parent_id = ? order by time_created, id";
    return [...this.#read("session", sql, id)].map((columns) => String(columns["id"]));
  }

  *messages(session: string): Generator<Listed> {
    const times = new Map<string, number>();
    const add = (id: unknown, at: unknown): void => {
      if (times.size < IDS_MAX && !times.has(String(id))) times.set(String(id), timeIn(at) ?? 0);
    };
    const sql = "select id, time_created as at from message where session_id = ?";
    for (const { id, at } of this.#read("message", sql, session)) add(id, at);
    const parts = "select message_id as id, min(time_created) as at from part where session_id = ? group by message_id";
    for (const { id, at } of this.#read("part", parts, session)) add(id, at);
    for (const { id, at } of this.#events(session).messages()) add(id, at);
    const ids = [...times].toSorted(([a, at], [b, bt]) => at - bt || (a < b ? -1 : 1)).map(([id]) => id);
    for (const id of ids) yield this.#listed("message", id);
  }

  *parts(session: string, message: string): Generator<Listed> {
    const rows = new Map<string, Columns | null>();
    for (const columns of this.#read("part", "select * from part where message_id = ?", message))
      rows.set(String(columns["id"]), columns);
    for (const id of this.#events(session).partsOf(message)) if (!rows.has(id)) rows.set(id, null);
    for (const id of [...rows.keys()].toSorted((a, b) => (a < b ? -1 : 1)))
      yield this.#listed("part", id, rows.get(id) ?? null);
  }

  /** When a part was written first and last, as the log has it. */
  timesOf(session: string, id: string): readonly [number, number] | null {
    return this.#events(session).timesOf(id);
  }

  twins(session: string, id: string): Iterable<Fields> {
    return this.#events(session).valuesOf(id);
  }

  #listed(table: "message" | "part", id: string, known: Columns | null = null): Listed {
    const place = this.#place(table, id);
    const columns = known ?? [...this.#read(table, `select * from ${table} where id = ?`, id)][0];
    return { id, place, row: columns ? this.#row(table, id, place, columns) : null };
  }

  #row(table: "message" | "part", id: string, place: Place, columns: Columns): Row {
    const text = textOf(columns["data"]);
    // What is not UTF-8 was read as U+FFFD, so few rows need a closer look.
    const [raw] = text?.includes("\ufffd")
      ? [...this.#read(table, `select cast(data as blob) as data from ${table} where id = ?`, id)]
      : [];
    const bytes = raw?.["data"];
    return {
      ...{ id, place, text, at: timeIn(columns["time_created"]) },
      bytes: Buffer.from(JSON.stringify({ table, ...columns })),
      isUtf8: !(bytes instanceof Uint8Array) || isUtf8(bytes),
    };
  }

  #events(session: string): EventLog {
    if (this.#log?.session !== session) {
      this.#log = { session, events: this.#hasEvents() ? EventLog.of(session, this.#database) : EventLog.none };
    }
    return this.#log.events;
  }

  #hasEvents(): boolean {
    const columns = this.#tables.get("event");
    return ["aggregate_id", "seq", "type", "data"].every((column) => columns?.includes(column));
  }

  /** The rows of a table; none if it is not there, or is another one. */
  *#read(table: string, sql: string, ...parameters: (string | number)[]): Generator<Columns> {
    const columns = this.#tables.get(table);
    if (COLUMNS[table]!.every((column) => columns?.includes(column))) yield* this.#database.rows(sql, ...parameters);
  }

  #place(table: string, id: string): Place {
    return { file: this.#database.path, line: null, offset: null, row: { table, id } };
  }
}

function isJson(value: unknown): boolean {
  if (value === null || value === undefined) return true;
  try {
    JSON.parse(String(value));
    return true;
  } catch {
    return false;
  }
}

function textOf(value: unknown): string | null {
  if (typeof value === "string") return value;
  return value instanceof Uint8Array ? Buffer.from(value).toString("utf8") : null;
}

/** Whether the tables are those of OpenCode. */
export function isOfOpenCode(tables: ReadonlyMap<string, readonly string[]>): boolean {
  return Object.entries(COLUMNS).every(([table, columns]) =>
    columns.every((column) => tables.get(table)?.includes(column)),
  );
}
