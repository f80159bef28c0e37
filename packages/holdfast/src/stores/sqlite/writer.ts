import type { Ledger, Prepared } from "../../journal/ledger.ts";
import { segmentRecord } from "../../journal/lifecycle.ts";
import type { Segment } from "../../journal/lines/account.ts";
import type { NewRecord } from "../../journal/record.ts";
import type { Database } from "./database/database.ts";
import type { Rows } from "./rows/rows.ts";
import type { SessionRow } from "./rows/session-row.ts";

const NEWLINE = 0x0a;

/**
 * Writes the lines of one session to the database. Each call is one transaction; if it throws (SQLite's errors),
 * nothing was done.
 */
export class SessionWriter {
  readonly #database: Database;
  readonly #rows: Rows;
  readonly #ledger: Ledger;
  readonly #id: string;
  readonly #key: number;
  #segment: Segment;
  /** The head for which the catalogue row was last saved. */
  #savedHead: number;

  private constructor(place: WriterPlace, key: number, segment: Segment, savedHead: number) {
    this.#database = place.database;
    this.#rows = place.database.rows;
    this.#ledger = place.ledger;
    this.#id = place.id;
    this.#key = key;
    this.#segment = segment;
    this.#savedHead = savedHead;
  }

  /** Continues a session found in the database. `segment` is its newest. */
  static continue(place: WriterPlace, row: SessionRow, segment: Segment): SessionWriter {
    return new SessionWriter(place, row.key, segment, row.head);
  }

  /** Creates a session that starts with `records`: row, segment and lines in one transaction. */
  static create(place: WriterPlace, records: readonly NewRecord[]): SessionWriter {
    const { database, ledger, id } = place;
    const { rows } = database;
    const segment = { number: 1, epoch: 1, first: 1 };
    return database.transaction(() => {
      const prepared = ledger.prepareSegment([segmentRecord({ session: id, segment: 1, epoch: 1 }), ...records]);
      // Committed to the ledger before the database: if that fails, the ledger is dropped too, because nobody has seen
      // it yet.
      ledger.commit(prepared);
      const key = rows.insertSession(id, ledger, ledger.row);
      rows.insertSegment(key, segment);
      insertLines(rows, key, prepared);
      return new SessionWriter(place, key, segment, ledger.head);
    });
  }

  /** Writes one unit. A single line is a single statement, which commits by itself: the fast path. */
  put(prepared: Prepared): void {
    if (prepared.seq === prepared.last) {
      this.#rows.insertLine(this.#key, prepared.seq, prepared.bytes.subarray(0, -1));
    } else {
      this.#database.transaction(() => insertLines(this.#rows, this.#key, prepared));
    }
    this.#ledger.commit(prepared);
  }

  /** Writes the line of `opened`, and atomically marks the row as no longer closed. */
  putOpened(prepared: Prepared): void {
    this.#database.transaction(() => {
      this.#rows.reopenSession(this.#key);
      insertLines(this.#rows, this.#key, prepared);
    });
    this.#ledger.commit(prepared);
  }

  /**
   * Starts a new segment, and with it an epoch if there are records for one (S15): before the commit the old epoch
   * counts, after it the new one.
   */
  begin(records: readonly NewRecord[] | null, key?: string): Prepared {
    const number = this.#segment.number + 1;
    const epoch = records ? number : this.#segment.epoch;
    const segment = { number, epoch, first: this.#ledger.head + 1 };
    const keys = records ? { keys: this.#ledger.keysToCarry(key, records.length) } : {};
    const header = segmentRecord({ session: this.#id, segment: number, epoch, ...keys });
    const prepared = this.#ledger.prepareSegment([header, ...(records ?? [])]);
    this.#database.transaction(() => {
      this.#rows.insertSegment(this.#key, segment);
      insertLines(this.#rows, this.#key, prepared);
    });
    this.#ledger.commit(prepared);
    if (records) this.#ledger.forgetOldKeys(key, { seq: prepared.seq + 1, last: prepared.last });
    this.#segment = segment;
    return prepared;
  }

  get rowIsBehind(): boolean {
    return this.#ledger.head !== this.#savedHead;
  }

  /** Updates the row to match the journal. If that fails, lists fold the later lines into the old row. */
  saveRow(closed: boolean): void {
    if (!this.rowIsBehind) return;
    const { head, row } = this.#ledger;
    this.#rows.updateSession(this.#key, this.#ledger, closed, row);
    this.#savedHead = head;
  }
}

export interface WriterPlace {
  readonly database: Database;
  readonly ledger: Ledger;
  readonly id: string;
}

function insertLines(rows: Rows, key: number, prepared: Prepared): void {
  const { bytes } = prepared;
  for (let start = 0, seq = prepared.seq; start < bytes.length; seq++) {
    const end = bytes.indexOf(NEWLINE, start);
    rows.insertLine(key, seq, bytes.subarray(start, end));
    start = end + 1;
  }
}
