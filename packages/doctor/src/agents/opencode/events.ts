import { type Fields, fieldsOf } from "../../contract/shapes.ts";
import type { DatabaseCopy } from "../../files/database.ts";

const IDS_MAX = 500_000;
/** The ids stand at the beginning of what an event says. */
const HEAD_CHARS = 400;

interface Message {
  readonly at: number;
  readonly parts: Set<string>;
}

/** The events of one session: what each message and part said last, and which of them were not removed. */
export class EventLog {
  static readonly none = new EventLog(null);
  readonly #database: DatabaseCopy | null;
  /** The row of the last event of each message and part. */
  readonly #rows = new Map<string, number>();
  readonly #messages = new Map<string, Message>();

  private constructor(database: DatabaseCopy | null) {
    this.#database = database;
  }

  static of(session: string, database: DatabaseCopy): EventLog {
    const log = new EventLog(database);
    const sql = `select rowid as n, type, substr(data, 1, ${HEAD_CHARS}) as head from event where aggregate_id = ? order by seq`;
    for (const { n, type, head } of database.rows(sql, session)) {
      if (log.#rows.size >= IDS_MAX) break;
      log.#add(Number(n), String(type).replace(/\.\d+$/, ""), String(head));
    }
    return log;
  }

  #add(row: number, type: string, head: string): void {
    const message = /"messageID":"([^"]+)"/.exec(head)?.[1];
    if (type === "message.updated") {
      const id = /"info":\{"id":"([^"]+)"/.exec(head)?.[1];
      if (id === undefined) return;
      this.#rows.set(id, row);
      const at = Number(/"created":(\d+)/.exec(head)?.[1] ?? 0);
      if (!this.#messages.has(id)) this.#messages.set(id, { at, parts: new Set() });
    } else if (type === "message.part.updated" && message !== undefined) {
      const id = /"part":\{"id":"([^"]+)"/.exec(head)?.[1];
      if (id === undefined) return;
      this.#rows.set(id, row);
      this.#messages.get(message)?.parts.add(id);
    } else if (type === "message.part.removed" && message !== undefined) {
      const id = /"partID":"([^"]+)"/.exec(head)?.[1] ?? "";
      this.#messages.get(message)?.parts.delete(id);
    } else if (type === "message.removed" && message !== undefined) this.#messages.delete(message);
    else if (type === "session.created" || type === "session.updated")
      this.#rows.set(/"sessionID":"([^"]+)"/.exec(head)?.[1] ?? "", row);
    else if (type === "session.deleted") this.#messages.clear();
  }

  *messages(): Generator<{ readonly id: string; readonly at: number }> {
    for (const [id, { at }] of this.#messages) yield { id, at };
  }

  partsOf(message: string): Iterable<string> {
    return this.#messages.get(message)?.parts ?? [];
  }

  /** What the last event about it says. */
  valueOf(id: string): Fields | null {
    const row = this.#rows.get(id);
    if (row === undefined || this.#database === null) return null;
    const [event] = [...this.#database.rows("select data from event where rowid = ?", row)];
    try {
      const { info, part } = fieldsOf(JSON.parse(String(event?.["data"])));
      const value = fieldsOf(part ?? info);
      return value["id"] === id ? value : null;
    } catch {
      return null;
    }
  }
}
