import type { ReadItem } from "../../contract/agent.ts";
import { problem } from "../../contract/problem.ts";
import type { Place, RecordState, SessionRecord } from "../../contract/record.ts";
import { type Fields, textIn } from "../../contract/shapes.ts";
import type { DatabaseCopy } from "../../files/database.ts";
import { readPrefix } from "../../scan/read-prefix.ts";
import { isContent, unitsOfMessage } from "./format.ts";

/** The rows of goose's `sessions.db`: `sessions`, and `messages` in the order in which goose reads them. */

export interface MessageRow {
  readonly id: number;
  readonly role: string;
  readonly created: number;
  readonly text: string;
  /** The blocks, or what can be read of them. */
  readonly content: unknown;
  readonly isWhole: boolean;
}

const COLUMNS: Readonly<Record<string, readonly string[]>> = {
  sessions: ["id", "working_dir"],
  messages: ["id", "session_id", "role", "content_json", "created_timestamp"],
};

export const isOfGoose = (tables: ReadonlyMap<string, readonly string[]>): boolean =>
  Object.entries(COLUMNS).every(([table, columns]) => columns.every((column) => tables.get(table)?.includes(column)));

/** Also those whose own row is lost. */
export function sessionsIn(database: DatabaseCopy): { readonly id: string; readonly folder: string | null }[] {
  const sql = `select id, working_dir from sessions
    union select distinct session_id, null from messages where session_id not in (select id from sessions)`;
  return [...database.rows(sql)].map((row) => ({ id: String(row["id"]), folder: textIn(row["working_dir"]) }));
}

export function* messagesIn(database: DatabaseCopy, session: string): Generator<MessageRow> {
  const sql = `select id, role, content_json, created_timestamp from messages
    where session_id = ? order by created_timestamp, id`;
  for (const { id, role, content_json, created_timestamp } of database.rows(sql, session)) {
    const text = typeof content_json === "string" ? content_json : "";
    const row = { id: Number(id), role: String(role), created: Number(created_timestamp), text };
    const whole = parsed(text);
    yield { ...row, content: whole ?? readPrefix(text).value, isWhole: isContent(whole) };
  }
}

export function* readRows(database: DatabaseCopy, session: string): Generator<ReadItem> {
  const place: Place = { file: database.path, line: null, offset: null };
  for (const { kind, words } of database.damage)
    yield { type: "problem", problem: problem(kind, place, { detail: words }) };
  const [facts] = [...database.rows("select * from sessions where id = ?", session)];
  const own = { ...place, row: { table: "sessions", id: session } };
  if (facts) {
    const title = textIn(facts["name"]) || textIn(facts["description"]);
    const units: SessionRecord["units"] = title ? [{ type: "title", text: title }] : [];
    yield recordOf(own, "facts", session, JSON.stringify({ table: "sessions", ...facts }), facts, "intact", units);
  } else yield { type: "problem", problem: problem("missing-row", own, { detail: session, means: LOST_SESSION }) };
  for (const row of messagesIn(database, session)) {
    const at = { ...place, row: { table: "messages", id: row.id } };
    const message = { role: row.role, created: row.created, content: row.content };
    if (!row.isWhole)
      yield { type: "problem", problem: problem("damaged-row", at, { detail: String(row.id), ...DAMAGED }) };
    const isKnown = row.role === "user" || row.role === "assistant";
    const state = row.isWhole ? "intact" : Array.isArray(row.content) ? "partial" : "unreadable";
    const bytes = JSON.stringify({
      table: "messages",
      id: row.id,
      role: row.role,
      created_timestamp: row.created,
      content_json: row.text,
    });
    const units = isKnown && state !== "unreadable" ? unitsOfMessage(message) : [];
    yield recordOf(
      at,
      isKnown ? row.role : "unknown",
      String(row.id),
      bytes,
      message,
      state,
      units,
      row.created * 1_000,
    );
  }
}

function recordOf(
  place: Place,
  kind: string,
  id: string,
  text: string,
  value: Fields,
  state: RecordState,
  units: SessionRecord["units"],
  at: number | null = null,
): ReadItem {
  const bytes = Buffer.from(text);
  const own = { place, bytes, length: bytes.length, kind, state, value: state === "unreadable" ? undefined : value };
  return {
    type: "record",
    record: {
      ...own,
      thread: "main",
      id: `${kind === "facts" ? "session" : "message"} ${id}`,
      parent: null,
      sequence: null,
      at,
      units,
    },
  };
}

const LOST_SESSION = "The row of the session is lost. goose neither lists nor loads it; its messages are there.";
const DAMAGED = {
  means: "This message cannot be read. goose refuses the whole session.",
  fix: "Keeps what can be read of the message, with a mark where it ends.",
};

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
