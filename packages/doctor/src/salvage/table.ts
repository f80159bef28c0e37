import { isUtf8 } from "node:buffer";
import type { DatabaseSync, StatementSync } from "node:sqlite";
import type { SalvagedRow, Value } from "./cells.ts";
import type { Encoding } from "./pages.ts";
import { textOf } from "./rows.ts";

/** SQLITE_ERROR, SQLITE_TOOBIG, SQLITE_CONSTRAINT and SQLITE_MISMATCH. */
const REFUSED: ReadonlySet<number> = new Set([1, 18, 19, 20]);
const STATEMENTS_MAX = 64;

type Affinity = "integer" | "text" | "real" | "any";

interface Column {
  readonly name: string;
  readonly affinity: Affinity;
  readonly isRequired: boolean;
  /** Its value is the number of the row. */
  readonly isRowid: boolean;
  readonly isGenerated: boolean;
}

/** A table of the new database. */
export class Table {
  readonly #database: DatabaseSync;
  readonly #name: string;
  readonly #encoding: Encoding;
  readonly #idPrefix: string;
  /** As they stand in a record. */
  readonly #columns: readonly Column[];
  readonly #statements = new Map<string, StatementSync | null>();
  /** Whether each page of its tree was reached: then a leaf beside it is hardly its own. */
  isWhole = false;

  constructor(database: DatabaseSync, name: string, encoding: Encoding, idPrefix: string) {
    this.#database = database;
    this.#name = name;
    this.#encoding = encoding;
    this.#idPrefix = idPrefix;
    const rows = database.prepare("select * from pragma_table_xinfo(?)").all(name);
    const keys = rows.filter(({ pk }) => Number(pk) > 0).length;
    this.#columns = rows
      // A column that is worked out when it is read has no place in a record.
      .filter(({ hidden }) => hidden !== 2)
      .map(({ name: column, type, notnull, pk, dflt_value, hidden }) => ({
        name: String(column),
        affinity: affinityOf(String(type)),
        isRequired: notnull === 1 && dflt_value === null,
        isRowid: keys === 1 && pk === 1 && String(type).toLowerCase() === "integer",
        isGenerated: hidden === 3,
      }));
  }

  /** How many of these rows could be rows of this table. */
  shareOf(rows: readonly SalvagedRow[]): number {
    if (rows.length === 0) return 0;
    const share = rows.filter((row) => this.#fits(row)).length / rows.length;
    // Of two tables that are alike, the one that lacks a page, whose ids begin so, or that has no column more.
    const isExact = rows.every(({ values }) => values.length === this.#columns.length);
    return share * (this.isWhole ? 0.7 : 1) * (this.#idPrefix === "" ? 0.9 : 1) * (isExact ? 1 : 0.95);
  }

  add(row: SalvagedRow): void {
    const values = row.values.slice(0, this.#columns.length);
    const columns = this.#columns.slice(0, row.isCut ? this.#columns.length : values.length);
    const names = ["rowid"];
    const marks = ["?"];
    const bound: (null | bigint | number | string | Buffer)[] = [row.rowid];
    for (const [index, { name, affinity, isRequired, isRowid, isGenerated }] of columns.entries()) {
      if (isRowid || isGenerated) continue;
      let value: Value = values[index] ?? null;
      // The end of the row is lost; without this it could not be kept at all.
      if (row.isCut && value === null && isRequired) value = affinity === "text" ? { text: Buffer.alloc(0) } : 0n;
      const isBytes = isObject(value) && "text" in value && this.#encoding === "utf8" && !isUtf8(value.text);
      names.push(`"${name.replaceAll('"', '""')}"`);
      marks.push(isBytes ? "cast(? as text)" : "?");
      bound.push(isBytes ? (value as { text: Buffer }).text : this.#plain(value));
    }
    if (this.#insert(names, marks, bound) === 0) this.#insert(names.slice(1), marks.slice(1), bound.slice(1));
  }

  #insert(
    names: readonly string[],
    marks: readonly string[],
    bound: readonly (null | bigint | number | string | Buffer)[],
  ) {
    if (names.length === 0) return 0;
    const table = `"${this.#name.replaceAll('"', '""')}"`;
    const sql = `insert or ignore into ${table} (${names.join()}) values (${marks.join()})`;
    let statement = this.#statements.get(sql);
    try {
      if (statement === undefined) {
        if (this.#statements.size >= STATEMENTS_MAX) this.#statements.clear();
        statement = this.#database.prepare(sql);
        this.#statements.set(sql, statement);
      }
      return Number(statement?.run(...bound).changes ?? 0);
    } catch (error) {
      // A table that is not kept by numbers of rows, or a check that the row does not pass. A full disk is ours.
      if (!(error instanceof Error && "errcode" in error && REFUSED.has(Number(error.errcode) & 0xff))) throw error;
      if (statement === undefined) this.#statements.set(sql, null);
      return 0;
    }
  }

  #fits({ values, isCut }: SalvagedRow): boolean {
    if (values.length > this.#columns.length) return false;
    return this.#columns.every(({ affinity, isRequired, isRowid }, index) => {
      const value = values[index] ?? null;
      if (index === 0 && this.#idPrefix !== "") {
        const id = textOf(value, this.#encoding);
        if (id === null || !id.startsWith(this.#idPrefix)) return false;
      }
      if (value === null) return isRowid || isCut || !isRequired;
      if (affinity === "any") return true;
      if (isObject(value)) return "text" in value && affinity === "text";
      return affinity === "real" || (affinity === "integer" && typeof value === "bigint");
    });
  }

  #plain(value: Value): null | bigint | number | string | Buffer {
    if (!isObject(value)) return value;
    return "blob" in value ? value.blob : textOf(value, this.#encoding);
  }
}

const isObject = (value: Value): value is { readonly text: Buffer } | { readonly blob: Buffer } =>
  typeof value === "object" && value !== null;

function affinityOf(type: string): Affinity {
  if (/int/i.test(type)) return "integer";
  if (/char|clob|text/i.test(type)) return "text";
  return /real|floa|doub/i.test(type) ? "real" : "any";
}
