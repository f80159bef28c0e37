import { DatabaseSync } from "node:sqlite";
import type { SalvagedRow } from "./cells.ts";
import { Pages } from "./pages.ts";
import { PageWalk, type SchemaRow, schemaRow } from "./rows.ts";
import { Table } from "./table.ts";

/** What the tables of an agent's database are, for a file that does not say it any more. */
export interface KnownSchema {
  readonly name: string;
  /** The statements that made it. */
  readonly statements: readonly string[];
  /** How the ids in the first column of a table begin. */
  readonly idPrefixes: Readonly<Record<string, string>>;
}

// Only these are carried out, each as one statement: the file is a stranger's.
const NAME = String.raw`(?:"[^"]*"|\x60[^\x60]*\x60|\[[^\]]*\]|\w+)`;
const TABLE = new RegExp(String.raw`^\s*create\s+table\s+${NAME}\s*\(`, "i");
const INDEX = new RegExp(String.raw`^\s*create\s+(unique\s+)?index\s+${NAME}\s+on\s+`, "i");

/** Between a statement and what damage made of it. A version more has a column more. */
const LENGTHS_APART = 8;
const PARTS = /[,()]/;

/** Writes a new database to `target`, with every row of `path` that can be read, whole or in part. */
export function rebuildDatabase(path: string, target: string, known: KnownSchema | null): void {
  using pages = new Pages(path);
  using database = new DatabaseSync(target, { allowExtension: false, enableForeignKeyConstraints: false });
  database.exec(`pragma trusted_schema = off; pragma encoding = '${pages.encoding === "utf8" ? "utf-8" : "utf-16"}';
    pragma page_size = ${pages.size}; pragma journal_mode = off; pragma synchronous = off; begin`);
  const walk = new PageWalk(pages);
  const schema = schemaIn(pages, walk).map((row) => likeKnown(row, known));
  const statements = [...schema.map(({ sql }) => sql ?? ""), ...(known?.statements ?? [])];
  const isUnique = (sql: string): boolean => INDEX.exec(sql)?.[1] !== undefined;
  // The unique ones first: they keep out a row that is there twice.
  for (const sql of statements) if (TABLE.test(sql)) attempt(database, sql);
  for (const sql of statements) if (isUnique(sql)) attempt(database, sql);
  const tables = new Map<string, Table>();
  for (const { name } of database.prepare("select name from sqlite_schema where type = 'table'").all())
    tables.set(String(name), new Table(database, String(name), pages.encoding, known?.idPrefixes[String(name)] ?? ""));
  for (const { type, name, root } of schema) {
    const table = type === "table" ? tables.get(name) : undefined;
    if (!table) continue;
    for (const row of walk.rowsBelow(root, (rows) => table.shareOf(rows) > 0.3)) table.add(row);
    table.isWhole = !walk.isBroken;
  }
  for (const rows of walk.leavesLeft()) {
    const fits = [...tables.values()].map((table) => ({ table, share: table.shareOf(rows) }));
    const best = fits.reduce<(typeof fits)[number] | null>((a, b) => (b.share > (a?.share ?? 0.5) ? b : a), null);
    if (best) for (const row of rows) best.table.add(row);
  }
  for (const sql of statements) if (INDEX.test(sql) && !isUnique(sql)) attempt(database, sql);
  const header = pages.header;
  database.exec(`commit; pragma user_version = ${header?.readInt32BE(60) ?? 0};
    pragma application_id = ${header?.readInt32BE(68) ?? 0}`);
  if (header?.[18] === 2) database.exec("pragma journal_mode = wal; pragma wal_checkpoint(truncate)");
}

function schemaIn(pages: Pages, walk: PageWalk): SchemaRow[] {
  const found = new Map<string, SchemaRow>();
  const add = (row: SchemaRow | null): void => {
    if (row && !found.has(row.name)) found.set(row.name, row);
  };
  const isSchema = (rows: readonly SalvagedRow[]): boolean =>
    rows.length === 0 || rows.some((row) => schemaRow(row, pages.encoding) !== null);
  for (const row of walk.rowsBelow(1, isSchema)) add(schemaRow(row, pages.encoding));
  if (walk.isBroken)
    for (const rows of walk.leavesLeft({ isLook: true })) for (const row of rows) add(schemaRow(row, pages.encoding));
  return [...found.values()];
}

/** A statement with a few wrong characters is the one that is known. */
function likeKnown(row: SchemaRow, known: KnownSchema | null): SchemaRow {
  const text = plain(row.sql ?? "");
  for (const sql of row.type === "table" ? (known?.statements ?? []) : []) {
    const other = plain(sql);
    if (text === other || !TABLE.test(sql) || !isNearly(text, other)) continue;
    return { ...row, sql, name: /(\w+)\s*\($/.exec(TABLE.exec(sql)![0])![1]! };
  }
  return row;
}

const plain = (sql: string): string => sql.toLowerCase().replaceAll(/["`\s]/g, "");

function isNearly(a: string, b: string): boolean {
  if (Math.abs(a.length - b.length) > LENGTHS_APART) return false;
  let begin = 0;
  while (begin < a.length && a[begin] === b[begin]) begin++;
  let end = 0;
  while (end < a.length - begin && a.at(-1 - end) === b.at(-1 - end)) end++;
  if (begin + end > 0.9 * b.length) return true;
  // Changed in several places: most of its columns are the same.
  const mine = new Set(a.split(PARTS));
  const theirs = b.split(PARTS);
  return theirs.filter((part) => mine.has(part)).length > 0.8 * theirs.length;
}

/** A statement that is damaged makes nothing. */
function attempt(database: DatabaseSync, sql: string): boolean {
  try {
    database.prepare(sql).run();
    return true;
  } catch (error) {
    if (!(error instanceof Error && "errcode" in error)) throw error;
    return false;
  }
}
