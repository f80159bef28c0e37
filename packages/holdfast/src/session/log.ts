import type { Appended, Durability, Journal } from "../journal/contract.ts";
import type { JournalRecord, Json, NewRecord } from "../journal/record.ts";
import type { Conversation } from "./conversation.ts";
import { frozenCopy } from "./plain-copy.ts";
import type { SessionRecord } from "./records.ts";

/** Records that the journal was given, until it is known that they stand in it. */
interface Waiting {
  readonly unit: readonly SessionRecord[];
  /** Null: not known yet. */
  written: { readonly last: number; readonly at: string } | null;
}

/**
 * Writes to the journal, and folds what it wrote into the conversation, in the order of the journal. Where a store writes inside the call, that is done when the call returns;
 * where it does not, when the store answers.
 */
export class Log<M> {
  readonly journal: Journal;
  readonly #conversation: Conversation<M>;
  readonly #opened: Readonly<Record<string, Json>>;
  readonly #waiting: Waiting[] = [];
  readonly #taps = new Set<(record: JournalRecord) => void>();
  #openedAt: number | null = null;

  /** `opened`: the members that the journal's `opened` record carries. */
  constructor(journal: Journal, conversation: Conversation<M>, opened: Readonly<Record<string, Json>>) {
    this.journal = journal;
    this.#conversation = conversation;
    this.#opened = opened;
  }

  /** Every record of this writer has a greater seq; until it has written, there is none. */
  get since(): number {
    return this.#openedAt ?? Number.POSITIVE_INFINITY;
  }

  /** One unit. Resolves when it is durable; throws what `Journal.append` throws. */
  append(unit: readonly SessionRecord[], durability?: Durability): Promise<Appended> {
    const { journal } = this;
    const before = journal.head;
    const appended = journal.append(unit as readonly NewRecord[], durability ? { durability } : undefined);
    if (journal.head > before) {
      this.#add({ unit, written: { last: journal.head, at: journal.at } });
      return appended;
    }
    const waiting: Waiting = { unit, written: null };
    this.#waiting.push(waiting);
    return appended.then(
      (done) => {
        this.#settle(waiting, done);
        return done;
      },
      (error) => {
        this.#settle(waiting, null);
        throw error;
      },
    );
  }

  appendSync(unit: readonly SessionRecord[]): Appended {
    const { journal } = this;
    const appended = journal.appendSync(unit as readonly NewRecord[]);
    this.#add({ unit, written: { last: journal.head, at: journal.at } });
    return appended;
  }

  /** A new epoch. `build` is called at the instant at which it begins. */
  async epoch(build: () => readonly SessionRecord[]): Promise<void> {
    const waiting: Waiting = { unit: [], written: null };
    try {
      const done = await this.journal.epoch(() => {
        const unit = build();
        Object.assign(waiting, { unit });
        this.#waiting.push(waiting);
        return unit as readonly NewRecord[];
      });
      this.#settle(waiting, done);
    } catch (error) {
      this.#settle(waiting, null);
      throw error;
    }
  }

  /** Calls back with every record that is folded from now on. Returns the way to stop that. */
  tap(listener: (record: JournalRecord) => void): () => void {
    this.#taps.add(listener);
    return () => this.#taps.delete(listener);
  }

  #settle(waiting: Waiting, done: Appended | null): void {
    if (done) waiting.written = { last: done.last, at: this.journal.at };
    else if (this.#waiting.includes(waiting)) this.#waiting.splice(this.#waiting.indexOf(waiting), 1);
    this.#drain();
  }

  #add(written: Waiting): void {
    this.#waiting.push(written);
    this.#drain();
  }

  #drain(): void {
    while (this.#waiting[0]?.written) this.#fold(this.#waiting.shift()!);
  }

  #fold({ unit, written }: Waiting): void {
    const { last, at } = written!;
    let seq = last - unit.length + 1;
    this.#passOver(seq, at);
    for (const record of unit) {
      // What the caller changes later changes nothing stored (R19).
      const { kind, ...members } = record;
      const folded = { kind, ...frozenCopy(members), seq, at } as JournalRecord;
      this.#conversation.add(folded);
      for (const listener of this.#taps) listener(folded);
      seq += 1;
    }
  }

  /** The records that the journal wrote by itself: `opened` before our first one, and the headers of segments. */
  #passOver(until: number, at: string): void {
    for (let seq = this.#conversation.head + 1; seq < until; seq++) {
      const isOpened = this.#openedAt === null && seq === until - 1;
      this.#conversation.add(
        (isOpened ? { kind: "opened", ...this.#opened, seq, at } : { kind: "segment", seq, at }) as JournalRecord,
      );
    }
    this.#openedAt ??= until - 1;
  }
}
