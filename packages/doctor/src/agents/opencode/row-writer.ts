import type { DatabaseSync } from "node:sqlite";
import { type Fields, textIn } from "../../contract/shapes.ts";
import { MIGRATIONS } from "./schema.ts";

type Column = { readonly name: string; readonly isRequired: boolean; readonly isText: boolean };

/** Writes rows into OpenCode's new database: only columns that this version of it has. */
export class RowWriter {
  readonly #database: DatabaseSync;
  readonly #columns = new Map<string, readonly Column[]>();

  constructor(database: DatabaseSync) {
    this.#database = database;
  }

  insert(table: string, values: Fields): void {
    const columns = this.#columnsOf(table).filter(({ name, isRequired }) => isRequired || values[name] !== undefined);
    if (columns.length === 0) return;
    const bound = columns.map(({ name, isText }) => plain(values[name] ?? (isText ? "" : 0)));
    const marks = columns.map(() => "?").join();
    const names = columns.map(({ name }) => `"${name}"`).join();
    this.#database.prepare(`insert or replace into "${table}" (${names}) values (${marks})`).run(...bound);
  }

  update(table: string, id: string, values: Fields): void {
    for (const { name } of this.#columnsOf(table))
      if (values[name] !== undefined)
        this.#database.prepare(`update "${table}" set "${name}" = ? where id = ?`).run(plain(values[name]), id);
  }

  /** The rows that others refer to, and without which OpenCode starts no more. */
  restoreSurroundings(): void {
    const has = (...tables: string[]): boolean => tables.every((table) => this.#columnsOf(table).length > 0);
    if (has("project", "session")) {
      const sql = `select project_id as id, min(time_created) as at, max(time_updated) as late from session
        where project_id not in (select id from project) group by project_id`;
      for (const { id, at, late } of this.#database.prepare(sql).all())
        this.insert("project", { id, worktree: "/", time_created: at, time_updated: late, sandboxes: "[]" });
    }
    if (has("event", "event_sequence")) {
      const sql = `select aggregate_id, max(seq) as seq from event
        where aggregate_id not in (select aggregate_id from event_sequence) group by aggregate_id`;
      for (const row of this.#database.prepare(sql).all()) this.insert("event_sequence", row);
    }
    if (has("migration") && this.#hasLatestTables())
      for (const id of MIGRATIONS)
        this.#database.prepare("insert or ignore into migration (id, time_completed) values (?, 0)").run(id);
  }

  /** Whether its tables are those of the version whose migrations are known. */
  #hasLatestTables(): boolean {
    const { n } = this.#database.prepare("select count(*) as n from migration").get()!;
    return (
      Number(n) < MIGRATIONS.length &&
      LATEST.every(([table, column]) => this.#columnsOf(table).some(({ name }) => name === column))
    );
  }

  #columnsOf(table: string): readonly Column[] {
    let columns = this.#columns.get(table);
    if (!columns) {
      columns = this.#database
        .prepare("select * from pragma_table_info(?)")
        .all(table)
        .map(({ name, type, notnull, dflt_value, pk }) => ({
          name: String(name),
          isRequired: (notnull === 1 || pk === 1) && dflt_value === null,
          isText: /text/i.test(String(type)),
        }));
      this.#columns.set(table, columns);
    }
    return columns;
  }
}

/** What the last migrations made. */
const LATEST = [
  ["session_input", "admitted_seq"],
  ["session_context_epoch", "baseline_seq"],
  ["project_directory", "strategy"],
  ["credential", "connector_id"],
  ["session_message", "seq"],
] as const;

function plain(value: unknown): string | number | bigint | null {
  if (value === null || typeof value === "number" || typeof value === "bigint") return value;
  return textIn(value) ?? JSON.stringify(value) ?? null;
}
