import type { Conversation } from "../../conversation/conversation.ts";
import type { SessionRecord } from "../../conversation/records/records.ts";
import { frozenInside } from "../../conversation/snapshot.ts";
import { defined } from "../../defined.ts";
import type { Appended, Durability, Journal, Written } from "../../journal/contract.ts";
import type { JournalRecord, Json, NewRecord } from "../../journal/record.ts";
import { withKey, writeKeyed } from "./once.ts";

/** Writes to the journal, and folds everything it writes into the conversation, in journal order. */
export class Log<M> {
  readonly journal: Journal;
  readonly #conversation: Conversation<M>;
  readonly #opened: Readonly<Record<string, Json>>;
  readonly #taps = new Set<(record: JournalRecord) => void>();
  /** The unit being appended, until the journal reports it as written. */
  #unit: readonly SessionRecord[] | null = null;
  /** Units that the store writes after the call: it is not known yet whether they are written. */
  readonly #unanswered = new Set<Promise<unknown>>();
  /** What a dialect threw while a unit was folded, by the unit's last seq. Its caller receives it. */
  readonly #faults = new Map<number, unknown>();
  #openedAt: number | null = null;
  #keyedCalls = 0;
  /** The calls that wait for the conversation to catch up; null if there are none. */
  #line: Promise<void> | null = null;

  /** `opened`: the members of the journal's `opened` record. */
  constructor(journal: Journal, conversation: Conversation<M>, opened: Readonly<Record<string, Json>>) {
    this.journal = journal;
    this.#conversation = conversation;
    this.#opened = opened;
    journal.onWritten((written) => this.#fold(written));
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
    return this.#unanswered.size > 0 || this.#line !== null;
  }

  /** Resolves when every earlier unit is in the conversation or was refused. Never rejects. */
  async caughtUp(): Promise<void> {
    await this.#line;
    await Promise.allSettled(this.#unanswered);
  }

  /** Calls `run` once the conversation has caught up, in order. `run` hands its records over before its first await. */
  inLine<T>(run: () => Promise<T>): Promise<T> {
    if (!this.isBehind) return run();
    const before = this.#line;
    const turn = (async () => {
      await before;
      while (this.#unanswered.size > 0) await Promise.allSettled(this.#unanswered);
    })();
    this.#line = turn;
    return turn.then(() => {
      if (this.#line === turn) this.#line = null;
      return run();
    });
  }

  /** Appends one unit. Resolves when it is durable; throws what `Journal.append` throws. */
  append(unit: readonly SessionRecord[], durability?: Durability): Promise<Appended> {
    this.#unit = unit;
    const appended =
      this.#keyedCalls === 0
        ? this.#put(unit, durability)
        : writeKeyed(this, unit[0]?.kind, (key) => this.#put(unit, durability, key));
    if (this.#unit === null) return this.#faults.size === 0 ? appended : appended.then((done) => this.#whole(done));
    this.#unit = null;
    return this.#answered(appended);
  }

  /** `withKey`. A call that writes nothing leaves a note with its key. */
  async once(key: string, work: () => Promise<unknown>, onRecorded: (unit: Appended) => void): Promise<Appended> {
    this.#keyedCalls += 1;
    try {
      const note = (): Promise<Appended> => this.append([{ kind: "note", name: "once", value: true }]);
      return (await withKey(key, work, onRecorded)) ?? (await withKey(key, note, onRecorded))!;
    } finally {
      this.#keyedCalls -= 1;
    }
  }

  #put(unit: readonly SessionRecord[], durability?: Durability, key?: string): Promise<Appended> {
    const options = durability || key !== undefined ? defined({ durability, key }) : undefined;
    return this.journal.append(unit as readonly NewRecord[], options);
  }

  appendSync(unit: readonly SessionRecord[]): Appended {
    return this.#whole(this.journal.appendSync(unit as readonly NewRecord[]));
  }

  /** Starts a new epoch. `build` runs at the instant it begins, with everything before it in the conversation. */
  async epoch(build: () => readonly SessionRecord[]): Promise<void> {
    const begin = (key?: string): Promise<Appended> =>
      this.#answered(this.journal.epoch(build as () => readonly NewRecord[], defined({ key })));
    await this.inLine(() => (this.#keyedCalls === 0 ? begin() : writeKeyed(this, "epoch", begin)));
  }

  /** Calls `listener` with every record folded from now on. Returns a function that removes the listener. */
  tap(listener: (record: JournalRecord) => void): () => void {
    this.#taps.add(listener);
    return () => this.#taps.delete(listener);
  }

  #answered(answer: Promise<Appended>): Promise<Appended> {
    this.#unanswered.add(answer);
    const forget = (): boolean => this.#unanswered.delete(answer);
    answer.then(forget, forget);
    return answer.then((done) => this.#whole(done));
  }

  /** Throws what the dialect threw while this unit was folded. */
  #whole(done: Appended): Appended {
    const fault = this.#faults.get(done.last);
    if (!this.#faults.delete(done.last)) return done;
    throw fault;
  }

  #fold({ records, seq: first, at }: Written): void {
    if (records === this.#unit) this.#unit = null;
    for (let i = 0; i < records.length; i++) {
      const seq = first + i;
      const record = records[i]!;
      let folded: JournalRecord | null = null;
      try {
        if (this.#taps.size === 0 && this.#conversation.addMessage(record, seq, at)) continue;
        // Changes the caller makes later must not affect what is stored (R19).
        folded = frozenInside({ ...record, seq, at }) as JournalRecord;
        if (folded.kind === "opened") this.#openedAt ??= seq;
        this.#conversation.add(folded);
      } catch (error) {
        // Thrown from here, it would end the process, and the rest of the unit would be missing.
        const last = first + records.length - 1;
        if (!this.#faults.has(last)) this.#faults.set(last, error);
      }
      if (folded && this.#taps.size > 0) for (const listener of this.#taps) listener(folded);
    }
  }
}
