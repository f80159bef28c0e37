import { createHash } from "node:crypto";
import {
  searchable,
  stretchesOf,
  type TextBacklog,
  type TextChange,
  type TextFound,
  type TextMark,
  type TextQuery,
} from "holdfast/internal";
import type { TextTables } from "holdfast/store";
import type { Database, Query, Row } from "../connection/database.ts";
import { LEXEME_CHARACTERS } from "../schema/search-tables.ts";
import { Backlog } from "./search-backlog.ts";
import { phrasesOf, tokensOf, withMarks } from "./tokens.ts";

/** A title sorts before all messages. */
const TITLE_SEQ = Number.MAX_SAFE_INTEGER;
const SWEPT_ROWS = 2000;
/** Applications choose ids, and a database index cannot hold long ones. */
const KEY_CHARACTERS = 256;

/** The full-text index of all sessions, in the database. */
export class Texts implements TextTables {
  readonly #database: Database;
  readonly #backlog: Backlog;

  /** `list` brings stale rows up to date. */
  constructor(database: Database, list: () => Promise<unknown>) {
    this.#database = database;
    this.#backlog = new Backlog(database, list);
  }

  async marks(): Promise<Map<string, TextMark>> {
    const { rows } = await this.#query(`SELECT ${MARK} FROM ${this.#schema}.texts_sessions`);
    return new Map(rows.map((row) => [String(row["id"]), markOf(row)]));
  }

  async mark(id: string): Promise<TextMark | null> {
    const { rows } = await this.#query(`SELECT ${MARK} FROM ${this.#schema}.texts_sessions WHERE id = $1`, [id]);
    return rows[0] ? markOf(rows[0]) : null;
  }

  async cut(): Promise<string[]> {
    const { rows } = await this.#query(
      `SELECT id FROM ${this.#schema}.texts_sessions WHERE cut ORDER BY at DESC, id DESC`,
    );
    return rows.map((row) => String(row["id"]));
  }

  behind(options?: { readonly background?: boolean }): AsyncIterable<TextBacklog> {
    return this.#backlog.pages(options);
  }

  /** Removes what nobody needs any more. */
  trim(): Promise<void> {
    return this.#backlog.trim();
  }

  async add(
    id: string,
    before: TextMark | null,
    changes: readonly TextChange[],
    { seq, crc, head, at, dialect, blind, cut }: TextMark,
  ): Promise<boolean> {
    const named = dialect === null ? null : JSON.stringify(dialect);
    const put = async (query: Query): Promise<boolean> => {
      const key = before ? await lockMark(query, this.#schema, id, before) : await insertMark(query, this.#schema, id);
      if (key === null) return false;
      await new Additions(query, this.#schema, key).put(changes);
      await query(
        `UPDATE ${this.#schema}.texts_sessions SET seq = $2, crc = $3, head = $4, at = $5, dialect = $6, blind = $7, cut = $8 WHERE key = $1`,
        [key, seq, crc, head, at, named, blind, cut],
      );
      return true;
    };
    // If an attempt whose answer was lost did it, it looks as if another worker had.
    return this.#database.transaction("index a session", put, true);
  }

  async forget(id: string): Promise<void> {
    await this.#query(
      `WITH ${this.#database.longNoWait},
      gone AS (DELETE FROM ${this.#schema}.texts_sessions USING power WHERE id = $1 RETURNING key)
      INSERT INTO ${this.#schema}.texts_gone SELECT key FROM gone`,
      [id],
    );
    this.#backlog.hasGone = true;
  }

  async sweep(): Promise<boolean> {
    if (!this.#backlog.hasGone) return false;
    const { rows } = await this.#query(`SELECT key FROM ${this.#schema}.texts_gone LIMIT 1`);
    const key = rows[0]?.["key"];
    this.#backlog.hasGone = key !== undefined;
    if (key === undefined) return false;
    const { rowCount } = await this.#query(
      `WITH ${this.#database.longNoWait} DELETE FROM ${this.#schema}.texts USING power WHERE session = $1
        AND (seq, stretch) IN (SELECT seq, stretch FROM ${this.#schema}.texts WHERE session = $1 LIMIT ${SWEPT_ROWS})`,
      [key],
    );
    if (rowCount === SWEPT_ROWS) return true;
    await this.#query(
      `WITH ${this.#database.longNoWait},
      messages AS (DELETE FROM ${this.#schema}.texts_messages USING power WHERE session = $1)
      DELETE FROM ${this.#schema}.texts_gone USING power WHERE key = $1`,
      [key],
    );
    return true;
  }

  async sessionsWith(query: TextQuery): Promise<string[]> {
    const values: unknown[] = [];
    const phrases = phrasesOf(query);
    const matches = [wordCondition(this.#schema, phrases, values), ...phraseConditions(phrases, values, isInIndex)];
    const { rows } = await this.#query(
      `SELECT s.id FROM ${this.#schema}.texts_sessions AS s
      WHERE s.key IN (SELECT DISTINCT t.session FROM ${this.#schema}.texts AS t WHERE ${matches.join(" AND ")}) ORDER BY s.at DESC, s.id DESC`,
      values,
    );
    return rows.map((row) => String(row["id"]));
  }

  async hits(id: string, query: TextQuery, before: number | null, limit: number): Promise<TextFound[]> {
    const phrases = phrasesOf(query);
    const values: unknown[] = [id, before ?? null, limit];
    // Not by the index of words: it has the rows of all sessions.
    const matches = phraseConditions(phrases, values);
    const { rows } = await this.#query(
      `SELECT t.seq, t.message, t.text FROM ${this.#schema}.texts AS t
      WHERE t.session = (SELECT key FROM ${this.#schema}.texts_sessions WHERE id = $1) AND ($2::bigint IS NULL OR t.seq < $2) AND ${matches.join(" AND ")}
        AND NOT EXISTS (
          SELECT 1 FROM ${this.#schema}.texts_messages AS said
          JOIN ${this.#schema}.texts_messages AS hid ON hid.session = said.session AND hid.step = said.step AND hid.hidden
          WHERE said.session = t.session AND said.id = t.said
        )
      ORDER BY t.seq DESC, t.stretch LIMIT $3`,
      values,
    );
    return rows.map((row) => ({
      seq: Number(row["seq"]),
      message: JSON.parse(String(row["message"])) as string,
      marked: withMarks(String(row["text"]), phrases),
    }));
  }

  get #schema(): string {
    return this.#database.schema;
  }

  #query(text: string, values: readonly unknown[] = []): ReturnType<Database["query"]> {
    return this.#database.query("search", text, values);
  }
}

const MARK = "id, seq, crc, head, at, dialect, blind, cut";

function markOf(row: Row): TextMark {
  const dialect = row["dialect"];
  return {
    seq: Number(row["seq"]),
    crc: String(row["crc"]),
    head: Number(row["head"]),
    at: String(row["at"]),
    dialect: typeof dialect === "string" ? (JSON.parse(dialect) as string) : null,
    blind: row["blind"] === true,
    cut: row["cut"] === true,
  };
}

/** Locks the session and returns its key; null if another worker has indexed further. */
async function lockMark(query: Query, schema: string, id: string, { seq, crc }: TextMark): Promise<string | null> {
  const { rows } = await query(
    `SELECT key FROM ${schema}.texts_sessions WHERE id = $1 AND seq = $2 AND crc = $3 FOR UPDATE`,
    [id, seq, crc],
  );
  return rows[0] ? String(rows[0]["key"]) : null;
}

async function insertMark(query: Query, schema: string, id: string): Promise<string | null> {
  const { rows } = await query(
    `INSERT INTO ${schema}.texts_sessions (id, seq, crc, head, at, blind) VALUES ($1, 0, '', 0, '', false)
    ON CONFLICT DO NOTHING RETURNING key`,
    [id],
  );
  return rows[0] ? String(rows[0]["key"]) : null;
}

interface Message {
  seq: number | null;
  step: string | null;
  hidden: boolean;
}

/** The changes of one session, written in a few statements however many there are. */
class Additions {
  readonly #query: Query;
  readonly #schema: string;
  readonly #key: string;
  readonly #messages = new Map<string, Message>();
  readonly #texts: Stretch[] = [];
  #title: string | null = null;

  constructor(query: Query, schema: string, key: string) {
    this.#query = query;
    this.#schema = schema;
    this.#key = key;
  }

  async put(changes: readonly TextChange[]): Promise<void> {
    await this.#read(changes);
    for (const change of changes) this.#apply(change);
    await this.#writeMessages();
    if (this.#title !== null) {
      await this.#query(`DELETE FROM ${this.#schema}.texts WHERE session = $1 AND seq = $2`, [this.#key, TITLE_SEQ]);
      this.#texts.push(...stretches(TITLE_SEQ, "", this.#title));
    }
    await this.#writeTexts();
  }

  async #read(changes: readonly TextChange[]): Promise<void> {
    const ids = changes.flatMap((change) => (change.kind === "title" ? [] : [keyOf(change.id)]));
    if (ids.length === 0) return;
    const { rows } = await this.#query(
      `SELECT id, seq, step, hidden FROM ${this.#schema}.texts_messages WHERE session = $1 AND id = ANY ($2::text[])`,
      [this.#key, ids],
    );
    for (const { id, seq, step, hidden } of rows) {
      this.#messages.set(String(id), {
        seq: seq === null ? null : Number(seq),
        step: step as string | null,
        hidden: hidden === true,
      });
    }
  }

  #apply(change: TextChange): void {
    if (change.kind === "title") {
      this.#title = change.title;
      return;
    }
    const key = keyOf(change.id);
    const known = this.#messages.get(key);
    if (change.kind === "hiding") {
      // In any order (C31): the message may come later.
      this.#messages.set(key, { seq: known?.seq ?? null, step: known?.step ?? null, hidden: change.hidden });
      return;
    }
    const { id, seq, step, text, hidden, carried } = change;
    this.#messages.set(key, {
      seq: known?.seq ?? seq,
      step: keyOf(step),
      hidden: known && !carried ? known.hidden : hidden,
    });
    if ((known?.seq ?? null) === null) this.#texts.push(...stretches(seq, id, text));
  }

  async #writeMessages(): Promise<void> {
    if (this.#messages.size === 0) return;
    const messages = [...this.#messages.values()];
    await this.#query(
      `INSERT INTO ${this.#schema}.texts_messages (session, id, seq, step, hidden)
      SELECT $1, * FROM unnest($2::text[], $3::bigint[], $4::text[], $5::boolean[])
      ON CONFLICT (session, id) DO UPDATE SET seq = excluded.seq, step = excluded.step, hidden = excluded.hidden`,
      [
        this.#key,
        [...this.#messages.keys()],
        messages.map(({ seq }) => seq),
        messages.map(({ step }) => step),
        messages.map(({ hidden }) => hidden),
      ],
    );
  }

  async #writeTexts(): Promise<void> {
    if (this.#texts.length === 0) return;
    const of = <T>(member: (text: Stretch) => T): T[] => this.#texts.map(member);
    await this.#query(
      `INSERT INTO ${this.#schema}.texts (session, seq, stretch, said, message, text, words)
      SELECT $1, * FROM unnest($2::bigint[], $3::integer[], $4::text[], $5::text[], $6::text[], $7::text[])`,
      [
        this.#key,
        of(({ seq }) => seq),
        of(({ stretch }) => stretch),
        of(({ id }) => keyOf(id)),
        of(({ id }) => JSON.stringify(id)),
        of(({ text }) => text),
        of(({ words }) => ` ${words.join(" ")} `),
      ],
    );
  }
}

interface Stretch {
  readonly seq: number;
  readonly stretch: number;
  readonly id: string;
  readonly text: string;
  readonly words: readonly string[];
}

/** Only stretches that contain a word: nothing else can be found. */
function stretches(seq: number, id: string, text: string): Stretch[] {
  const line = searchable(text);
  if (line === "") return [];
  return [...stretchesOf(line)]
    .map((piece, stretch) => ({
      seq,
      stretch,
      id,
      text: piece,
      words: tokensOf(piece).map(({ word }) => word),
    }))
    .filter(({ words }) => words.length > 0);
}

/** A condition on a row `t`, for the index: the words in any order. */
function wordCondition(schema: string, phrases: readonly (readonly string[])[], values: unknown[]): string {
  const lexemes = phrases.flatMap((phrase, number) =>
    phrase.map((word, index) => {
      const mayBegin = number === phrases.length - 1 && index === phrase.length - 1;
      // Only letters and digits: nothing to escape.
      return `'${lexemeOf(word)}'${mayBegin ? ":*" : ""}`;
    }),
  );
  return `${schema}.lexemes(t.words) @@ $${values.push(lexemes.join(" & "))}::tsquery`;
}

/** Conditions on a row `t`, exactly. `except`: phrases for which the index is exact. */
function phraseConditions(
  phrases: readonly (readonly string[])[],
  values: unknown[],
  except: (phrase: readonly string[]) => boolean = () => false,
): string[] {
  return phrases.flatMap((phrase, number) => {
    if (except(phrase)) return [];
    const isLast = number === phrases.length - 1;
    return [`position($${values.push(` ${phrase.join(" ")}${isLast ? "" : " "}`)} in t.words) > 0`];
  });
}

function isInIndex(phrase: readonly string[]): boolean {
  return phrase.length === 1 && lexemeOf(phrase[0]!) === phrase[0];
}

function lexemeOf(word: string): string {
  // In characters, as `left` counts them.
  return word.length <= LEXEME_CHARACTERS ? word : Array.from(word).slice(0, LEXEME_CHARACTERS).join("");
}

/** An id as a key: database text cannot hold everything that JSON can, and a key must be short. */
function keyOf(id: string): string {
  const text = JSON.stringify(id);
  return text.length <= KEY_CHARACTERS ? text : createHash("sha256").update(text).digest("hex");
}
