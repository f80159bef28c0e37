import { Admission } from "../../../src/admit/admit.ts";
import { Conversation } from "../../../src/conversation/conversation.ts";
import { isShown } from "../../../src/conversation/item.ts";
import type { SessionRecord } from "../../../src/conversation/records/records.ts";
import type { Dialect, Entry } from "../../../src/dialects/dialect.ts";
import { findDialect } from "../../../src/dialects/index.ts";
import { HoldfastError } from "../../../src/errors.ts";
import type { JournalRecord, Json } from "../../../src/journal/record.ts";
import { replacement } from "../../../src/replace/epoch.ts";
import { admitReplacement } from "../../../src/replace/retained.ts";
import { undoFrom, undone, undoRecords } from "../../../src/replace/undo.ts";
import { howOf, openCalls } from "../../../src/view/interruption.ts";
import { messagesOf, type TurnActivity as View } from "../../../src/view/messages.ts";
import { repairForPrompt, synthesizeResult } from "../../../src/view/repairs.ts";
import type { Happening } from "../dialects/dialect-conversations.ts";
import { type MadeCall, type MadeStep, type Voice, voices } from "../dialects/dialect-voices.ts";
import { judges, type ProviderJudge } from "../dialects/provider-judges.ts";

export function voiceOf(name: string): Voice {
  return voices.find(({ dialect }) => dialect.name === name)!;
}

export const LIVE: View = { kind: "active", since: 0 };
export const STILL: View = { kind: "idle" };

export const step = (rest: Partial<MadeStep> = {}): MadeStep => ({
  reasoning: "none",
  text: null,
  calls: [],
  after: null,
  provider: "none",
  ...rest,
});
export const call = (id: string | null, name = "read"): MadeCall => ({ id, name, input: "whole" });

export const codeOf = (act: () => unknown): string => {
  try {
    act();
    return "nothing";
  } catch (error) {
    return error instanceof HoldfastError ? error.code : String(error);
  }
};

/**
 * A session without a journal: what is written is folded as if it had been read. It does what the sessions layer does:
 * closes calls before the model is asked again, and tells of interruptions before a prompt.
 */
export class Life {
  readonly voice: Voice;
  readonly #judge: ProviderJudge;
  records: JournalRecord[] = [];
  conversation: Conversation<unknown>;
  /** The steps as they came from the model. */
  readonly steps: unknown[][] = [];
  readonly calls: { readonly made: MadeCall; readonly id: string; readonly message: string; readonly index: number }[] =
    [];
  readonly #name: string;
  #ids = 0;

  constructor(voice: Voice, { begun = true, name = "m" } = {}) {
    this.voice = voice;
    this.#name = name;
    this.#judge = judges[voice.dialect.name]!;
    this.#admission = new Admission<unknown>(voice.dialect as Dialect<unknown>, null);
    this.conversation = this.empty();
    if (begun) this.write({ kind: "session", dialect: voice.dialect.name, title: "a life", cwd: "/work" });
  }

  empty(): Conversation<unknown> {
    return new Conversation<unknown>(findDialect as never);
  }

  readonly #admission: Admission<unknown>;

  stored(message: unknown): Json {
    return this.#admission.message(message).stored;
  }

  newId(): string {
    this.#ids += 1;
    return `${this.#name}${this.#ids}`;
  }

  write(...records: (SessionRecord | { kind: string })[]): void {
    for (const record of records) {
      const seq = this.records.length + 1;
      const at = new Date(Date.UTC(2026, 10, 15) + seq * 1000).toISOString();
      const line = JSON.parse(JSON.stringify({ ...record, seq, at, crc: "00000000" })) as JournalRecord;
      this.records.push(line);
      this.conversation.add(line);
    }
  }

  /** A new epoch, as a store writes it. */
  begin(records: readonly SessionRecord[]): void {
    this.write({ kind: "segment" }, ...records);
  }

  replace(items: readonly unknown[], options: Partial<Parameters<typeof replacement>[2]> = {}): SessionRecord[] {
    const records = replacement(
      this.conversation,
      admitReplacement(this.conversation, items, this.#admission),
      { reason: "compaction", activity: LIVE, undo: this.conversation.epochSeq || 1, ...options },
      () => this.newId(),
    );
    this.begin(records);
    return records;
  }

  undo(view: View = LIVE): void {
    const from = undoFrom(this.conversation);
    const old = undone(this.records.slice(from - 1), this.conversation.epochSeq, this.empty());
    this.begin(undoRecords(old, { activity: view }, () => this.newId()));
  }

  /** As a process finds it that knows only the current epoch. */
  reopened(): Conversation<unknown> {
    const begins = this.records.findLastIndex(({ kind }) => kind === "epoch");
    const conversation = this.empty();
    for (const record of this.records.slice(Math.max(0, begins - 1))) conversation.add(record);
    return conversation;
  }

  get entries(): Entry<unknown>[] {
    return this.conversation.items.map(({ entry }) => entry);
  }

  view(view: View = LIVE): readonly unknown[] {
    return messagesOf(this.conversation, view);
  }

  message(message: unknown, rest: { step?: string; id?: string; model?: string } = {}): string {
    const id = rest.id ?? this.newId();
    const { turns: turn } = this.conversation;
    this.write({ kind: "message", id, turn, step: id, message: this.stored(message), ...rest });
    return id;
  }

  prompt(text: string): string {
    const { turn, turns } = this.conversation;
    const entries = repairForPrompt(this.conversation);
    if (turn && !turn.ended) {
      this.write({ kind: "turn.ended", turn: turn.number, outcome: entries.length > 0 ? "left" : "completed" });
    }
    if (entries.length > 0) this.write({ kind: "repair", turn: turns, entries });
    const id = this.newId();
    this.write({ kind: "turn.started", turn: turns + 1, prompt: id });
    return this.message(this.voice.user(text), { id });
  }

  /** Asks the model. Answers the ids of the messages of its response. */
  step(made: MadeStep, oneByOne = false): string[] {
    const { dialect } = this.voice;
    const { turn, turns } = this.conversation;
    const entries = openCalls(this.conversation)
      .filter(({ state }) => state !== "provider")
      .flatMap((one) => synthesizeResult(dialect, one, howOf(turn!)));
    if (entries.length > 0) this.write({ kind: "repair", turn: turns, entries });
    const isOpen = openCalls(this.conversation).length > 0;
    const last = this.conversation.items.filter(isShown).at(-1);
    // Nobody asks a model without a question.
    const isAsked = last !== undefined && last.role !== "assistant" && this.view().length > 0;
    if (isOpen || !isAsked) this.message(dialect.boundary("go on"));
    // A fork knows the steps of its source, so that no two responses of the model share an id.
    const messages = this.#judge.signed(this.voice.step(made, this.steps.length), this.view());
    this.steps.push(messages);
    const of = this.newId();
    const ids = messages.map((message) => this.message(message, oneByOne ? {} : { step: of }));
    let n = 0;
    for (const [at, message] of messages.entries()) {
      for (const [index, { id, by }] of dialect.calls(message).entries()) {
        if (by === "agent") this.calls.push({ made: made.calls[n++]!, id, message: ids[at]!, index });
      }
    }
    return ids;
  }

  start(back = 0): void {
    const target = this.calls.at(-1 - back)!;
    const { id, message, index, made } = target;
    this.write({ kind: "tool.started", turn: this.conversation.turns, call: id, message, index, name: made.name });
  }

  /** The result of a call, counted from the last: in a message, or as the tool returned it. */
  result(text: string, { back = 0, failed = false, asMessage = true } = {}): string {
    const { id: called, message, index, made } = this.calls.at(-1 - back)!;
    if (asMessage) return this.message(this.voice.result(made, text, failed));
    const id = this.newId();
    const { turns: turn } = this.conversation;
    const outcome = failed ? { error: text } : { value: text };
    this.write({ kind: "tool.ended", id, turn, call: called, message, index, name: made.name, ...outcome });
    return id;
  }

  end(): void {
    this.write({ kind: "turn.ended", turn: this.conversation.turns, outcome: "completed" });
  }

  happens(happening: Happening): void {
    switch (happening.kind) {
      case "user":
        if (happening.text === "hello") this.prompt("hello");
        else this.message(this.voice.user(happening.text));
        return;
      case "system":
        this.message(this.voice.system(happening.text));
        return;
      case "image":
        this.message(this.voice.image());
        return;
      case "step":
        this.step(happening.step, happening.oneByOne);
        return;
      case "result":
        if (this.calls.length <= happening.back) return;
        if (happening.synthetic) this.start(happening.back);
        this.result("some", { ...happening, asMessage: !happening.synthetic });
        return;
      case "orphan":
        this.message(this.voice.result(call("nobody", "nobody"), "lost", false));
    }
  }

  /** What the provider says of the next request, after a prompt; empty if it is accepted. */
  accepted(): string {
    this.prompt("and now?");
    return this.#judge
      .judge(this.view(), this.steps)
      .map(({ rule, at, why }) => `${rule} ${at}: ${why}`)
      .join("\n");
  }
}

/** A conversation that happened in one turn or several. */
export function lived(voice: Voice, happenings: readonly Happening[]): Life {
  const life = new Life(voice);
  life.prompt("go");
  for (const happening of happenings) life.happens(happening);
  return life;
}
