import type { Conversation } from "../conversation/conversation.ts";
import type { SessionRecord } from "../conversation/records.ts";
import { frozenCopy, frozenInside } from "../conversation/snapshot.ts";
import type { Appended, Durability, Journal } from "../journal/contract.ts";
import { assertPlain } from "../journal/lines/plain.ts";
import type { JournalRecord, Json, NewRecord } from "../journal/record.ts";

/** Records handed to the journal, until it is known whether they were written. */
interface Waiting {
  unit: readonly SessionRecord[];
  /** Null: not known yet. */
  written: { readonly last: number; readonly at: string } | null;
  /** When it was written, if that happened synchronously; else null. */
  at: string | null;
  /** An epoch that has not begun: its position among the others is not known. */
  isToBegin: boolean;
  /** Resolves when it is known. Never rejects. */
  answered: Promise<unknown>;
  /** Called once the unit is in the conversation. A store may answer out of order: nobody hears of it earlier. */
  onFold: () => void;
}

/** Writes to the journal, and folds each unit into the conversation, in journal order, once it is written. */
export class Log<M> {
  readonly journal: Journal;
  readonly #conversation: Conversation<M>;
  readonly #opened: Readonly<Record<string, Json>>;
  readonly #waiting: Waiting[] = [];
  readonly #taps = new Set<(record: JournalRecord) => void>();
  #openedAt: number | null = null;
  /** The calls that wait for the conversation to catch up; null if there are none. */
  #line: Promise<void> | null = null;

  /** `opened`: the members of the journal's `opened` record. */
  constructor(journal: Journal, conversation: Conversation<M>, opened: Readonly<Record<string, Json>>) {
    this.journal = journal;
    this.#conversation = conversation;
    this.#opened = opened;
  }

  /** Every record of this writer has a greater seq; infinite until it writes. */
  get since(): number {
    return this.#openedAt ?? Number.POSITIVE_INFINITY;
  }

  /** Whether this writer records every tool start (R5): from its options until its first record is written. */
  get intents(): boolean {
    return this.#openedAt === null ? this.#opened["intents"] === true : this.#conversation.writer.intents;
  }

  /** The conversation lacks units that the store has not answered yet, or calls that wait for them. */
  get isBehind(): boolean {
    return this.#waiting.length > 0 || this.#line !== null;
  }

  /** Resolves when every earlier unit is in the conversation or was refused. Never rejects. */
  async caughtUp(): Promise<void> {
    await this.#line;
    await this.#answered();
  }

  /** Calls `run` once the conversation has caught up, in order. `run` hands its records over before its first await. */
  inLine<T>(run: () => Promise<T>): Promise<T> {
    if (!this.isBehind) return run();
    const before = this.#line;
    const turn = (async () => {
      await before;
      while (this.#waiting.length > 0) await this.#answered();
    })();
    this.#line = turn;
    return turn.then(() => {
      if (this.#line === turn) this.#line = null;
      return run();
    });
  }

  /** Appends one unit. Resolves when it is durable; throws what `Journal.append` throws. */
  append(unit: readonly SessionRecord[], durability?: Durability): Promise<Appended> {
    const { journal } = this;
    const before = journal.head;
    const appended = journal.append(unit as readonly NewRecord[], durability ? { durability } : undefined);
    const grewBy = journal.head - before;
    if (this.#wasWritten(unit, grewBy)) {
      this.#add(unit);
      return appended;
    }
    const { promise: folded, resolve: onFold } = Promise.withResolvers<void>();
    const waiting: Waiting = {
      unit: kept(unit),
      written: null,
      at: grewBy > 0 ? journal.at : null,
      isToBegin: false,
      answered: appended,
      onFold,
    };
    this.#waiting.push(waiting);
    const answer = appended.then(
      async (done) => {
        this.#settle(waiting, done);
        await folded;
        return done;
      },
      (error) => {
        this.#settle(waiting, null);
        throw error;
      },
    );
    waiting.answered = answer.catch(() => null);
    return answer;
  }

  appendSync(unit: readonly SessionRecord[]): Appended {
    const appended = this.journal.appendSync(unit as readonly NewRecord[]);
    this.#add(unit);
    return appended;
  }

  /** Starts a new epoch. `build` runs at the instant it begins, with everything before it in the conversation. */
  epoch(build: () => readonly SessionRecord[]): Promise<void> {
    return this.inLine(() => this.#epoch(build));
  }

  async #epoch(build: () => readonly SessionRecord[]): Promise<void> {
    const { promise: answered, resolve } = Promise.withResolvers<void>();
    const { promise: folded, resolve: onFold } = Promise.withResolvers<void>();
    const waiting: Waiting = { unit: [], written: null, at: null, isToBegin: true, answered, onFold };
    this.#waiting.push(waiting);
    try {
      const done = await this.journal.epoch(() => {
        waiting.unit = build();
        waiting.isToBegin = false;
        return waiting.unit as readonly NewRecord[];
      });
      this.#settle(waiting, done);
      await folded;
    } catch (error) {
      this.#settle(waiting, null);
      throw error;
    } finally {
      resolve();
    }
  }

  /** Calls `listener` with every record folded from now on. Returns a function that removes the listener. */
  tap(listener: (record: JournalRecord) => void): () => void {
    this.#taps.add(listener);
    return () => this.#taps.delete(listener);
  }

  /**
   * Whether the unit is among the records that the journal grew by during the call. The journal also writes its own,
   * even if the unit finds no space: `opened`, and segment headers, durable at once. In doubt, the store's answer
   * decides.
   */
  #wasWritten(unit: readonly SessionRecord[], records: number): boolean {
    return this.#openedAt !== null && records >= unit.length && this.journal.durable < this.journal.head;
  }

  async #answered(): Promise<void> {
    await Promise.all(this.#waiting.map(({ answered }) => answered));
  }

  #settle(waiting: Waiting, done: Appended | null): void {
    if (done) waiting.written = { last: done.last, at: done.at ?? waiting.at ?? this.journal.at };
    else this.#waiting.splice(this.#waiting.indexOf(waiting), 1);
    this.#drain();
  }

  /** The unit is the newest in the journal. */
  #add(unit: readonly SessionRecord[]): void {
    const { head: last, at } = this.journal;
    if (this.#waiting.length === 0) {
      this.#fold(unit, { last, at });
      return;
    }
    const isNext = this.#next() === undefined;
    const written: Waiting = {
      unit,
      written: { last, at },
      at,
      isToBegin: false,
      answered: Promise.resolve(),
      onFold: () => undefined,
    };
    if (!isNext) written.unit = kept(unit);
    this.#waiting.push(written);
    this.#drain();
  }

  /** The waiting unit that was written first. */
  #next(): Waiting | undefined {
    return this.#waiting.find(({ isToBegin }) => !isToBegin);
  }

  #drain(): void {
    for (let next = this.#next(); next?.written; next = this.#next()) {
      this.#waiting.splice(this.#waiting.indexOf(next), 1);
      try {
        this.#fold(next.unit, next.written);
      } finally {
        next.onFold();
      }
    }
  }

  #fold(unit: readonly SessionRecord[], { last, at }: NonNullable<Waiting["written"]>): void {
    let seq = last - unit.length + 1;
    this.#passOver(seq, at);
    for (const record of unit) {
      // Changes the caller makes later must not affect what is stored (R19).
      const folded = frozenInside({ ...record, seq, at }) as JournalRecord;
      this.#conversation.add(folded);
      if (this.#taps.size > 0) for (const listener of this.#taps) listener(folded);
      seq += 1;
    }
  }

  /** The records that the journal wrote itself: `opened` before our first record, and segment headers. */
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

/** Copies the unit now, for later. The journal refuses anything that is not plain JSON. */
function kept(unit: readonly SessionRecord[]): readonly SessionRecord[] {
  try {
    assertPlain(unit, "unit");
  } catch {
    return unit;
  }
  return frozenCopy(unit);
}
