import { type Listed, rowIn, type Summariser } from "./contract.ts";
import { aheadAfter, aheadOf, stampOf } from "./order.ts";
import type { JournalRecord, Json } from "./record.ts";

/** What a list shows about a journal, apart from its id. */
export interface ListRow extends Pick<Listed, "at" | "head" | "closed" | "summary"> {
  /** The sort key of lists. */
  readonly stamp: string;
}

/**
 * Brings the row of a list up to date with the lines after it (S20). Starts from a row that was saved, or from nothing
 * if the first record carries a summary or is the first of the journal.
 */
export class RowFold {
  readonly #saved: ListRow | null;
  readonly #summariser: Summariser | undefined;
  #at: string;
  #head: number;
  #ahead: number;
  #closed: boolean;
  #summary: Json;

  constructor(saved: ListRow | null, summariser: Summariser | undefined) {
    this.#saved = saved;
    this.#summariser = summariser;
    this.#at = saved?.at ?? "";
    this.#head = saved?.head ?? 0;
    this.#ahead = saved ? aheadOf(saved.stamp, saved.at) : 0;
    this.#closed = saved?.closed ?? false;
    this.#summary = saved?.summary ?? null;
  }

  /** Takes the next line. `record` is null if the line is damaged. */
  add(seq: number, record: JournalRecord | null): void {
    this.#head = seq;
    if (!record) return;
    this.#at = record.at;
    this.#ahead = aheadAfter(this.#ahead, record);
    this.#closed = record.kind === "closed";
    const carried = rowIn(record, this.#summariser);
    if (carried !== undefined) this.#summary = carried;
    else if (this.#summariser) this.#summary = this.#summariser.add(this.#summary, record);
  }

  get row(): ListRow {
    if (this.#saved && this.#head === this.#saved.head) return this.#saved;
    const at = this.#at;
    return {
      ...{ at, stamp: stampOf(at, this.#ahead), head: this.#head, closed: this.#closed },
      summary: this.#summary,
    };
  }
}
