import type { StatementSync } from "node:sqlite";
import type { DerivedDatabase, DerivedSchema } from "../disk/derived-database.ts";
import type { TextChange, TextFound, TextMark, TextQuery, TextTables } from "../journal/texts.ts";
import { ftsOf, HIT_BEGINS, HIT_ENDS, searchable, stretchesOf } from "../text/search-words.ts";

/**
 * A row of `texts` is a stretch of a message, or a title. Its number combines the session's key, the record's seq and
 * the stretch, so that the rows of a session are adjacent: they are found and removed without touching any others.
 * (2^24 sessions, 2^28 records each.) A title has the highest seq.
 */
const STRETCH_BITS = 11;
const SEQ_BITS = 28;
const STRETCH_MAX = 2 ** STRETCH_BITS - 1;
const SEQ_MAX = 2 ** SEQ_BITS - 1;
const KEY_SHIFT = SEQ_BITS + STRETCH_BITS;
const SWEPT_ROWS = 256;

export const SCHEMA: DerivedSchema = {
  version: 3,
  sql: `
  CREATE TABLE sessions (key INTEGER PRIMARY KEY AUTOINCREMENT, id TEXT NOT NULL UNIQUE, seq INTEGER NOT NULL, crc TEXT NOT NULL, head INTEGER NOT NULL,
    at TEXT NOT NULL, dialect TEXT, blind INTEGER NOT NULL, cut INTEGER NOT NULL);
  CREATE TABLE gone (key INTEGER PRIMARY KEY);
  CREATE TABLE messages (session INTEGER NOT NULL, id TEXT NOT NULL, seq INTEGER, step TEXT, hidden INTEGER NOT NULL, PRIMARY KEY (session, id)) WITHOUT ROWID;
  CREATE INDEX hidden_steps ON messages (session, step) WHERE hidden = 1;
  CREATE VIRTUAL TABLE texts USING fts5 (text, message UNINDEXED, tokenize = 'unicode61 remove_diacritics 2')`,
};

/**
 * The tables of an index, in a file or in memory. Every call is one synchronous transaction, and throws SQLite's
 * errors.
 */
export class Tables implements TextTables {
  readonly #database: DerivedDatabase;
  readonly #statements = new Map<string, StatementSync>();

  constructor(database: DerivedDatabase) {
    this.#database = database;
  }

  marks(): Map<string, TextMark> {
    const rows = this.#all(`SELECT ${MARK} FROM sessions`) as unknown as MarkRow[];
    return new Map(rows.map((row) => [row.id, markOf(row)]));
  }

  mark(id: string): TextMark | null {
    const row = this.#get(`SELECT ${MARK} FROM sessions WHERE id = ?`, id);
    return row ? markOf(row as unknown as MarkRow) : null;
  }

  cut(): string[] {
    return this.#all("SELECT id FROM sessions WHERE cut = 1 ORDER BY at DESC, id DESC").map((row) => String(row["id"]));
  }

  add(
    id: string,
    before: TextMark | null,
    changes: readonly TextChange[],
    { seq, crc, head, at, dialect, blind, cut }: TextMark,
  ): boolean {
    return this.#database.write(() => {
      const now = this.mark(id);
      if (now?.seq !== before?.seq || now?.crc !== before?.crc) return false;
      if (!now)
        this.#run("INSERT INTO sessions (id, seq, crc, head, at, blind, cut) VALUES (?, 0, '', 0, '', 0, 0)", id);
      const key = this.#key(id)!;
      for (const change of changes) this.#apply(key, change);
      const set =
        "UPDATE sessions SET seq = ?, crc = ?, head = ?, at = ?, dialect = ?, blind = ?, cut = ? WHERE key = ?";
      this.#run(set, seq, crc, head, at, dialect, blind ? 1 : 0, cut ? 1 : 0, key);
      return true;
    });
  }

  forget(id: string): void {
    this.#database.write(() => {
      this.#run("INSERT INTO gone SELECT key FROM sessions WHERE id = ?", id);
      this.#run("DELETE FROM sessions WHERE id = ?", id);
    });
  }

  sweep(): boolean {
    const key = this.#get("SELECT key FROM gone LIMIT 1")?.["key"] as number | undefined;
    if (key === undefined) return false;
    this.#database.write(() => {
      const some = `SELECT rowid FROM texts WHERE rowid BETWEEN ?1 << ${KEY_SHIFT} AND (?1 + 1 << ${KEY_SHIFT}) - 1 LIMIT ${SWEPT_ROWS}`;
      if (Number(this.#run(`DELETE FROM texts WHERE rowid IN (${some})`, key).changes) > 0) return;
      this.#run("DELETE FROM messages WHERE session = ?", key);
      this.#run("DELETE FROM gone WHERE key = ?", key);
    });
    return true;
  }

  sessionsWith(query: TextQuery): string[] {
    const keys = `SELECT DISTINCT rowid >> ${KEY_SHIFT} FROM texts WHERE texts MATCH ?`;
    const rows = this.#all(`SELECT id FROM sessions WHERE key IN (${keys}) ORDER BY at DESC, id DESC`, ftsOf(query));
    return rows.map((row) => row["id"] as string);
  }

  hits(id: string, query: TextQuery, before: number | null, limit: number): TextFound[] {
    const key = this.#key(id);
    if (key === null) return [];
    const rows = this.#all(
      `SELECT rowid >> ${STRETCH_BITS} & ${SEQ_MAX} AS seq, message,
        highlight(texts, 0, '${HIT_BEGINS}', '${HIT_ENDS}') AS marked
      FROM texts WHERE texts MATCH ?1 AND rowid BETWEEN ?2 << ${KEY_SHIFT} AND (?2 << ${KEY_SHIFT}) + (?3 << ${STRETCH_BITS}) - 1
        AND NOT EXISTS (SELECT 1 FROM messages AS said JOIN messages AS hid ON hid.session = ?2 AND hid.step = said.step AND hid.hidden = 1
          WHERE said.session = ?2 AND said.id = texts.message)
      ORDER BY rowid DESC LIMIT ?4`,
      ftsOf(query),
      key,
      before ?? SEQ_MAX + 1,
      limit,
    );
    return rows as unknown as TextFound[];
  }

  #apply(key: number, change: TextChange): void {
    switch (change.kind) {
      case "title":
        this.#run(`DELETE FROM texts WHERE rowid = (? << ${KEY_SHIFT} | ${rowOf(SEQ_MAX, 0)})`, key);
        this.#addText(key, SEQ_MAX, "", change.title);
        return;
      case "hiding":
        // The two records may come in either order (C31): the message may follow later.
        this.#run(
          "INSERT INTO messages (session, id, hidden) VALUES (?, ?, ?) ON CONFLICT DO UPDATE SET hidden = excluded.hidden",
          key,
          change.id,
          change.hidden ? 1 : 0,
        );
        return;
      case "message": {
        const { id, seq, step, text, hidden, carried } = change;
        const known = this.#get("SELECT seq, hidden FROM messages WHERE session = ? AND id = ?", key, id) as
          | { readonly seq: number | null; readonly hidden: number }
          | undefined;
        const isHidden = known && !carried ? known.hidden : hidden ? 1 : 0;
        const put = "INSERT OR REPLACE INTO messages (session, id, seq, step, hidden) VALUES (?, ?, ?, ?, ?)";
        this.#run(put, key, id, known?.seq ?? seq, step, isHidden);
        if ((known?.seq ?? null) === null && seq < SEQ_MAX) this.#addText(key, seq, id, text);
      }
    }
  }

  #addText(key: number, seq: number, message: string, text: string): void {
    const line = searchable(text);
    if (line === "") return;
    let stretch = 0;
    for (const piece of stretchesOf(line)) {
      if (stretch > STRETCH_MAX) return;
      const put = `INSERT INTO texts (rowid, text, message) VALUES (? << ${KEY_SHIFT} | ?, ?, ?)`;
      this.#run(put, key, rowOf(seq, stretch++), piece, message);
    }
  }

  #key(id: string): number | null {
    return (this.#get("SELECT key FROM sessions WHERE id = ?", id)?.["key"] as number | undefined) ?? null;
  }

  #all(sql: string, ...values: Value[]): Record<string, unknown>[] {
    return this.#database.read(() => this.#prepared(sql).all(...values));
  }
  #get(sql: string, ...values: Value[]): Record<string, unknown> | undefined {
    return this.#database.read(() => this.#prepared(sql).get(...values));
  }
  #run(sql: string, ...values: Value[]): { readonly changes: number | bigint } {
    return this.#prepared(sql).run(...values);
  }

  #prepared(sql: string): StatementSync {
    const known = this.#statements.get(sql) ?? this.#database.sqlite.prepare(sql);
    this.#statements.set(sql, known);
    return known;
  }
}

type Value = string | number | null;
type MarkRow = Omit<TextMark, "blind" | "cut"> & { readonly id: string; readonly blind: number; readonly cut: number };
const MARK = "id, seq, crc, head, at, dialect, blind, cut";

function markOf({ seq, crc, head, at, dialect, blind, cut }: MarkRow): TextMark {
  return { seq, crc, head, at, dialect, blind: blind === 1, cut: cut === 1 };
}

/**
 * The number of a row within its session. The first stretch of a message has the highest number, so it is found first.
 */
function rowOf(seq: number, stretch: number): number {
  return seq * 2 ** STRETCH_BITS + STRETCH_MAX - stretch;
}
