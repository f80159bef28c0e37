import { type Fields, fieldsOf } from "../../contract/shapes.ts";
import type { DatabaseCopy } from "../../files/database.ts";

const IDS_MAX = 500_000;
/** How many states of a message or part are looked at, from the last one on. */
const STATES_MAX = 8;
/** The ids stand at the beginning of what an event says. */
const HEAD_CHARS = 400;

interface Message {
  /** When it was created, if that is known. */
  readonly at: number | null;
  readonly parts: Set<string>;
}

/** The events of one session: what each message and part said last, and which of them were not removed. */
export class EventLog {
  static readonly none = new EventLog(null);
  readonly #database: DatabaseCopy | null;
  /** The rows of the last events of each message and part, the latest at the end. */
  readonly #rows = new Map<string, number[]>();
  readonly #messages = new Map<string, Message>();
  readonly #removed = new Set<string>();

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
      this.#keep(id, row);
      const at = Number(/"created":(\d+)/.exec(head)?.[1] ?? 0);
      const parts = this.#messages.get(id)?.parts ?? new Set();
      this.#messages.set(id, { at, parts });
    } else if (type === "message.part.updated" && message !== undefined) {
      const id = /"part":\{"id":"([^"]+)"/.exec(head)?.[1];
      if (id === undefined) return;
      this.#keep(id, row);
      // Its own event may be lost.
      if (!this.#messages.has(message) && !this.#removed.has(message))
        this.#messages.set(message, { at: null, parts: new Set() });
      this.#messages.get(message)?.parts.add(id);
    } else if (type === "message.part.removed" && message !== undefined) {
      const id = /"partID":"([^"]+)"/.exec(head)?.[1] ?? "";
      this.#messages.get(message)?.parts.delete(id);
    } else if (type === "message.removed" && message !== undefined) {
      this.#messages.delete(message);
      this.#removed.add(message);
    } else if (type === "session.created" || type === "session.updated")
      this.#keep(/"sessionID":"([^"]+)"/.exec(head)?.[1] ?? "", row);
    else if (type === "session.deleted") this.#messages.clear();
  }

  *messages(): Generator<{ readonly id: string; readonly at: number | null }> {
    for (const [id, { at, parts }] of this.#messages) {
      const [first] = parts;
      yield { id, at: at ?? (first === undefined ? null : (this.timesOf(first)?.[0] ?? null)) };
    }
  }

  partsOf(message: string): Iterable<string> {
    return this.#messages.get(message)?.parts ?? [];
  }

  /** When it was written first and last, of a part. */
  timesOf(id: string): readonly [number, number] | null {
    const times = (this.#rows.get(id) ?? []).flatMap((row) => {
      const [event] = [...this.#database!.rows("select substr(data, -24) as tail from event where rowid = ?", row)];
      const time = /"time":(\d+)\}$/.exec(String(event?.["tail"]))?.[1];
      return time === undefined ? [] : [Number(time)];
    });
    return times.length === 0 ? null : [times[0]!, times.at(-1)!];
  }

  /** What it was, the latest first. */
  *valuesOf(id: string): Generator<Fields> {
    for (const row of this.#rows.get(id)?.toReversed() ?? []) {
      const [event] = [...this.#database!.rows("select data from event where rowid = ?", row)];
      const value = objectIn(String(event?.["data"]));
      if (value?.["id"] === id) yield value;
    }
  }

  #keep(id: string, row: number): void {
    const known = this.#rows.get(id);
    if (!known) this.#rows.set(id, [row]);
    else if (known.push(row) > STATES_MAX) known.shift();
  }
}

function objectIn(event: string): Fields | null {
  try {
    const { info, part } = fieldsOf(JSON.parse(event));
    return fieldsOf(part ?? info);
  } catch {
    return null;
  }
}
