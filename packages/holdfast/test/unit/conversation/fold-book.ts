import { Conversation } from "../../../src/conversation/conversation.ts";
import type { RepairEntry } from "../../../src/conversation/records/records.ts";
import { nextResume } from "../../../src/conversation/turn-state.ts";
import type { Dialect } from "../../../src/dialects/dialect.ts";
import type { JournalRecord } from "../../../src/journal/record.ts";
import { messagesOf } from "../../../src/view/messages.ts";
import { planResume, type ResumeOptions, repairForPrompt } from "../../../src/view/repairs.ts";

/** A record as a test writes it: what it leaves out is filled in, what is wrong with it stays wrong. */
// biome-ignore lint/suspicious/noExplicitAny: tests also write what no type allows.
export type Written = { kind: string; [member: string]: any };

/** A session's journal as far as the fold sees it, and what a session writes into it. */
export class Book {
  conversation: Conversation<unknown>;
  readonly records: JournalRecord[] = [];
  /** How many records there were after each unit: a process can die there, and nowhere else. */
  readonly ends: number[] = [];
  #seq = 0;
  #minutes = 0;
  #count = 0;
  #isUnit = false;

  constructor(dialect: Dialect<unknown>, options: { intents?: boolean } = {}) {
    this.conversation = new Conversation<unknown>((name) => (name === dialect.name ? dialect : null));
    this.open(options);
    this.write({ kind: "session", dialect: dialect.name });
  }

  get head(): number {
    return this.#seq;
  }

  /** Another process. */
  open({ intents = false }: { intents?: boolean } = {}): void {
    this.write({ kind: "opened", intents });
  }

  write(...records: Written[]): void {
    for (const record of records) {
      const at = new Date(Date.UTC(2026, 10, 15) + 60_000 * this.#minutes++).toISOString();
      const stamped = { seq: ++this.#seq, at, crc: "", ...record } as JournalRecord;
      this.records.push(stamped);
      this.conversation.add(stamped);
    }
    if (!this.#isUnit) this.ends.push(this.records.length);
  }

  /** What is written meanwhile counts together. */
  unit<T>(write: () => T): T {
    if (this.#isUnit) return write();
    this.#isUnit = true;
    const answer = write();
    this.#isUnit = false;
    this.ends.push(this.records.length);
    return answer;
  }

  /** Another one, as a process finds it that died after so many records. */
  cut(records: number): Book {
    const { dialect } = this.conversation;
    const book = new Book(dialect);
    const rest = this.records.slice(0, records);
    book.#forget();
    for (const record of rest) {
      book.records.push(record);
      book.conversation.add(record);
      book.#seq = record.seq;
    }
    book.#count = this.#count;
    book.#minutes = this.#minutes;
    return book;
  }

  #forget(): void {
    this.records.length = 0;
    const { dialect } = this.conversation;
    this.conversation = new Conversation<unknown>((name) => (name === dialect.name ? dialect : null));
  }

  /** Records that were lost to damage. */
  lose(count = 1): void {
    this.#seq += count;
  }

  id(): string {
    return `m${++this.#count}`;
  }

  /** The messages of one response, or one message of anybody else. Answers their ids. */
  say(messages: readonly unknown[], members: Partial<Written> = {}): string[] {
    return this.unit(() => this.#say(messages, members));
  }

  #say(messages: readonly unknown[], members: Partial<Written>): string[] {
    const step = this.id();
    const ids = messages.map((_, index) => (index === 0 ? step : `${step}.${index}`));
    const { encode } = this.conversation.dialect;
    for (const [index, message] of messages.entries()) {
      const stored = encode ? encode(message) : message;
      this.write({ kind: "message", id: ids[index], turn: this.conversation.turns, step, message: stored, ...members });
    }
    return ids;
  }

  /** As `startTurn` does it. */
  prompt(message: unknown, members: Partial<Written> = {}): RepairEntry[] {
    return this.unit(() => this.#prompt(message, members));
  }

  #prompt(message: unknown, members: Partial<Written>): RepairEntry[] {
    const { turn, turns } = this.conversation;
    const entries = repairForPrompt(this.conversation);
    if (turn && !turn.ended) this.write({ kind: "turn.ended", turn: turn.number, outcome: "left" });
    if (entries.length > 0) this.write({ kind: "repair", turn: turn?.number ?? turns + 1, entries });
    const id = this.id();
    this.write({ kind: "turn.started", turn: turns + 1, prompt: id });
    const { encode } = this.conversation.dialect;
    const stored = encode ? encode(message) : message;
    this.write({ kind: "message", id, turn: turns + 1, step: id, message: stored, ...members });
    return entries;
  }

  /** As `resumeTurn` does it. */
  resume(options: ResumeOptions = {}): RepairEntry[] {
    return this.unit(() => this.#resume(options));
  }

  #resume(options: ResumeOptions): RepairEntry[] {
    const { number } = this.conversation.turn!;
    const n = nextResume(this.conversation.turn!);
    const { entries, outcomes } = planResume(this.conversation, options);
    for (const { call, outcome } of outcomes) {
      const { id, message, index, name } = call;
      this.write({ kind: "tool.ended", id: this.id(), turn: number, call: id, message, index, name, ...outcome });
    }
    if (entries.length > 0) this.write({ kind: "repair", turn: number, entries });
    this.write({ kind: "turn.resumed", turn: number, n });
    return entries;
  }

  started(message: string | null, index: number, call: string, name: string, members: Partial<Written> = {}): void {
    const { turns: turn } = this.conversation;
    this.write({ kind: "tool.started", turn, call, message, index, name, ...members });
  }

  ended(message: string | null, index: number, call: string, name: string, members: Partial<Written> = {}): string {
    const { turns: turn } = this.conversation;
    const id = this.id();
    this.write({ kind: "tool.ended", id, turn, call, message, index, name, ...members });
    return id;
  }

  /** For the model, in a turn that is at work. */
  live(since = this.#seq): readonly unknown[] {
    return messagesOf(this.conversation, { kind: "active", since });
  }

  /** For whoever looks. */
  still(): readonly unknown[] {
    return messagesOf(this.conversation, { kind: "idle" });
  }

  /** The same records, folded anew. */
  again(): Conversation<unknown> {
    const { dialect } = this.conversation;
    const conversation = new Conversation<unknown>((name) => (name === dialect.name ? dialect : null));
    for (const record of this.records) conversation.add(record);
    return conversation;
  }
}
