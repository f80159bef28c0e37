import { readFileSync } from "node:fs";
import { DatabaseSync } from "node:sqlite";

/** Which pages of a healthy database each of its rows needs, as SQLite itself says it. */

export interface RowPages {
  readonly table: string;
  /** The row as JSON. */
  readonly row: string;
  readonly pages: ReadonlySet<number>;
}

export interface PagesOfDatabase {
  readonly size: number;
  readonly bytes: Buffer;
  readonly rows: readonly RowPages[];
}

export function pagesOf(path: string): PagesOfDatabase {
  const bytes = readFileSync(path);
  using database = new DatabaseSync(path, { readOnly: true });
  const tables = database.prepare("select name from sqlite_schema where type = 'table'").all();
  const rows = tables.flatMap(({ name }) => rowsOf(database, String(name)));
  return { size: Number(database.prepare("pragma page_size").get()!["page_size"]), bytes, rows };
}

function rowsOf(database: DatabaseSync, table: string): RowPages[] {
  const stat = database
    .prepare("select path, pageno, pagetype, ncell from dbstat where name = ? order by path")
    .all(table);
  const all = database.prepare(`select * from "${table}" order by rowid`).all();
  const found: RowPages[] = [];
  // Leaves in the order of their paths hold the rows in the order of their numbers.
  for (const { path, pageno, ncell } of stat.filter(({ pagetype }) => pagetype === "leaf"))
    for (let cell = 0; cell < Number(ncell); cell++) {
      const overflow = `${path}${cell.toString(16).padStart(3, "0")}+`;
      const more = stat
        .filter((each) => String(each["path"]).startsWith(overflow))
        .map((each) => Number(each["pageno"]));
      found.push({ table, row: "", pages: new Set([Number(pageno), ...more]) });
    }
  if (found.length !== all.length) throw new Error(`${table}: ${all.length} rows, and cells for ${found.length}`);
  return found.map((each, index) => ({ ...each, row: JSON.stringify(all[index]) }));
}
