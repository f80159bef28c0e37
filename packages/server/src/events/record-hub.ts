import { isHoldfastError, type JournalRecord, type Store } from "holdfast";
import { cursorOf } from "holdfast/internal";

/** A record as it is sent. */
export interface SentRecord {
  readonly seq: number;
  readonly cursor: string;
  /** As the journal has it. */
  readonly full: string;
  /** What it is about, without its content. */
  readonly brief: string;
  /** Both as events, made once for all followers; null before the first. */
  readonly events: { full: string | null; brief: string | null };
}

/** The beginning of a journal, as a position. */
export const START = "0";

/** How many bytes of the newest records are kept for all followers of a session together. */
const KEPT_BYTES_MAX = 1024 * 1024;

/**
 * Follows the journal of one session for any number of followers. It keeps the newest records; a follower that is
 * further behind reads the journal by itself, at its own pace, until it has caught up.
 */
export class RecordHub {
  readonly #store: Store;
  readonly #id: string;
  readonly #ending = new AbortController();
  readonly #tails = new Set<Tail>();
  #kept: SentRecord[] = [];
  #bytes = 0;
  /** The position before the first record that is kept. */
  #base: string;
  #end: { readonly error: unknown } | "deleted" | "stopped" | null = null;

  constructor(store: Store, id: string, base: string) {
    this.#store = store;
    this.#id = id;
    this.#base = base;
    void this.#run();
  }

  /** The newest record that was seen. */
  get cursor(): string {
    return this.#kept.at(-1)?.cursor ?? this.#base;
  }

  get isOver(): boolean {
    return this.#end !== null;
  }

  stop(): void {
    this.#end ??= "stopped";
    this.#ending.abort();
    this.#wake();
  }

  /**
   * Every record after a position, at the pace of the caller, until there are no more ("current"), the session is
   * deleted, the store is closed or the signal fires. Throws CURSOR_STALE if the position is not in the journal.
   */
  async *after(
    position: string,
    signal: AbortSignal,
  ): AsyncGenerator<SentRecord, "current" | "deleted" | "stopped", undefined> {
    let here = position;
    while (!signal.aborted) {
      const next = this.#next(here);
      if (next === "behind") {
        const before = here;
        for await (const record of this.#store.follow(this.#id, here === START ? 0 : here, { signal })) {
          here = cursorOf(record);
          yield sentRecord(record);
          if (this.#next(here) !== "behind" || this.#end !== null) break;
        }
        if (here === before) return signal.aborted ? "stopped" : "deleted";
      } else if (next) {
        here = next.cursor;
        yield next;
      } else if (this.#end !== null) {
        if (typeof this.#end === "object") throw this.#end.error;
        return this.#end;
      } else return "current";
    }
    return "stopped";
  }

  /**
   * Hands each new record to a caller that is at the end, as soon as it is there, until `take` returns false, the hub
   * ends or the signal fires. Returns at once if the position is not the end.
   */
  async tail(position: string, signal: AbortSignal, take: (record: SentRecord) => boolean): Promise<void> {
    if (position !== this.cursor || this.#end !== null || signal.aborted) return;
    const ended = Promise.withResolvers<void>();
    const tail: Tail = { take, end: () => ended.resolve() };
    signal.addEventListener("abort", tail.end, { once: true });
    this.#tails.add(tail);
    try {
      await ended.promise;
    } finally {
      this.#tails.delete(tail);
      signal.removeEventListener("abort", tail.end);
    }
  }

  /** The records after a position that have been seen; null if they are not all in memory. */
  since(position: string): readonly SentRecord[] | null {
    if (position === this.cursor) return [];
    const next = this.#next(position);
    if (next === "behind") return null;
    return next ? this.#kept.slice(this.#kept.indexOf(next)) : [];
  }

  /** The record after a position; null if there is none yet. */
  #next(position: string): SentRecord | null | "behind" {
    if (position === this.#base) return this.#kept[0] ?? null;
    const first = this.#kept[0];
    if (!first) return "behind";
    // Seqs have no gaps, except where records are damaged.
    const seq = Number.parseInt(position, 10);
    let index = Math.min(seq - first.seq, this.#kept.length - 1);
    while (index >= 0 && this.#kept[index]!.seq > seq) index--;
    if (index < 0 || this.#kept[index]!.cursor !== position) return "behind";
    return this.#kept[index + 1] ?? null;
  }

  async #run(): Promise<void> {
    try {
      const after = this.#base === START ? 0 : this.#base;
      for await (const record of this.#store.follow(this.#id, after, { signal: this.#ending.signal }))
        this.#add(sentRecord(record));
      this.#end ??= "deleted";
    } catch (error) {
      this.#end ??= isHoldfastError(error, "STORE_CLOSED") ? "stopped" : { error };
    }
    this.#wake();
  }

  #add(record: SentRecord): void {
    this.#kept.push(record);
    this.#bytes += sizeOf(record);
    let drop = 0;
    while (this.#bytes > KEPT_BYTES_MAX && drop < this.#kept.length - 1) this.#bytes -= sizeOf(this.#kept[drop++]!);
    if (drop > 0) {
      this.#base = this.#kept[drop - 1]!.cursor;
      this.#kept = this.#kept.slice(drop);
    }
    for (const tail of this.#tails) {
      if (tail.take(record)) continue;
      this.#tails.delete(tail);
      tail.end();
    }
  }

  #wake(): void {
    for (const { end } of this.#tails) end();
    this.#tails.clear();
  }
}

interface Tail {
  readonly take: (record: SentRecord) => boolean;
  readonly end: () => void;
}

function sizeOf({ full, brief }: SentRecord): number {
  return full.length + brief.length;
}

const ABOUT = ["turn", "id", "call", "name", "outcome", "reason", "by", "child", "model", "step", "title"] as const;

/** Without what concerns only the journal. */
export function sentRecord(record: JournalRecord): SentRecord {
  const { crc: _crc, summary: _summary, unit: _unit, synced: _synced, ahead: _ahead, key: _key, ...own } = record;
  const { seq, at, kind } = record;
  const about = ABOUT.flatMap((name) => {
    const value = record[name];
    return typeof value === "string" || typeof value === "number" ? [[name, value]] : [];
  });
  return {
    seq,
    cursor: cursorOf(record),
    full: JSON.stringify(own),
    brief: JSON.stringify({ seq, at, kind, ...Object.fromEntries(about) }),
    events: { full: null, brief: null },
  };
}
