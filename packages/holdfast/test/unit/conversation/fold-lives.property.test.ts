import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { isShown } from "../../../src/conversation/item.ts";
import { shapeOf } from "../../../src/dialects/shape.ts";
import type { Json } from "../../../src/journal/record.ts";
import { sessionSummariser } from "../../../src/listing/fold-row.ts";
import { attemptsIn, lastTurnIn, wakeAtIn } from "../../../src/listing/row.ts";
import { HANDED_OVER, lastTurnOf, sessionState } from "../../../src/session-state.ts";
import { interruptionOf, openCalls } from "../../../src/view/interruption.ts";
import { liveRepair, messagesOf } from "../../../src/view/messages.ts";
import { synthesizeResult } from "../../../src/view/repairs.ts";
import { holds, seedOf } from "../../seed.ts";
import { type MadeCall, type MadeStep, modelVoices, type Voice } from "../dialects/dialect-voices.ts";
import { judges, told } from "../dialects/provider-judges.ts";
import { Book } from "./fold-book.ts";

/**
 * R1, C35, P4: sessions as they are lived. A model answers what it was sent, and signs it; tools start, end, and hold
 * their results back; processes die; people stop, steer, hide, edit and change the model. Every request is judged by
 * its provider's rules, and what one request held, all later ones begin with, unless the application changed the past.
 */
const seed = seedOf(import.meta.url, "unit");

type Event =
  /** `oneByOne`: its items are recorded one by one, and of them so many; null: all at once. */
  | {
      readonly kind: "answer";
      readonly step: MadeStep;
      readonly model: string | null;
      readonly oneByOne: number | null;
    }
  | { readonly kind: "tool"; readonly back: number; readonly phase: "started" | "ended" | "message" | "all" }
  | { readonly kind: "late"; readonly back: number; readonly how: "ended" | "message" }
  | { readonly kind: "steer" | "prompt"; readonly model: string | null }
  | { readonly kind: "secret" | "draft" | "complete" | "abort" | "hide" | "edit" | "edit now" }
  | { readonly kind: "suspend"; readonly how: (typeof SUSPENDED)[number] }
  | {
      readonly kind: "crash";
      readonly resume: "prompt" | "close" | "rerun" | "keep";
      readonly intents: boolean;
      readonly isClaimed: boolean;
    };

/** A turn that waits, sleeps, was handed over, failed in the hands of a worker, or was parked. */
const SUSPENDED = [
  {},
  { until: "2026-11-19T14:05:00.000Z" },
  { reason: HANDED_OVER, until: "2026-11-15T00:00:00.000Z" },
  { until: "2026-11-19T14:05:00.000Z", attempts: 2 },
  { parked: 5 },
] as const;

/** Half of a character: what a tool leaves that cuts its output, and a stream that dies between two halves. */
const HALF = "half \ud83d";
const LONG = "😀".repeat(10_000);

const call: fc.Arbitrary<MadeCall> = fc.record({
  id: fc.constantFrom("call_0", "call_0", "call_1", "call_2", "__proto__", HALF, null),
  name: fc.constantFrom("read", "read", "write", "constructor", "git diff", ""),
  input: fc.constantFrom("whole", "whole", "cut"),
});
const someStep: fc.Arbitrary<MadeStep> = fc
  .record({
    reasoning: fc.constantFrom("none" as const, "signed" as const, "signed" as const, "unsigned" as const),
    text: fc.constantFrom(null, "hello", "hello", HALF),
    calls: fc.array(call, { maxLength: 3 }),
    after: fc.constantFrom(null, null, "and then"),
    provider: fc.constantFrom("none" as const, "none" as const, "none" as const, "finished" as const),
  })
  // A response may be all reasoning, but not nothing.
  .map((of) =>
    of.calls.length === 0 && of.provider === "none" && of.reasoning === "none" ? { ...of, text: "hello" } : of,
  );
const little = { calls: [], after: null, provider: "none" } as const;
/** Now and then a response that ended after its reasoning, and one that is a single item. */
const step: fc.Arbitrary<MadeStep> = fc.oneof(
  { weight: 6, arbitrary: someStep },
  { weight: 1, arbitrary: fc.constant<MadeStep>({ ...little, reasoning: "signed", text: null }) },
  { weight: 1, arbitrary: fc.constant<MadeStep>({ ...little, reasoning: "none", text: "hello" }) },
);
const model = fc.constantFrom(null, null, null, "one", "two");
const event: fc.Arbitrary<Event> = fc.oneof(
  {
    weight: 6,
    arbitrary: fc.record({
      kind: fc.constant("answer" as const),
      step,
      model,
      oneByOne: fc.oneof({ weight: 4, arbitrary: fc.constant(null) }, { weight: 1, arbitrary: fc.nat(4) }),
    }),
  },
  {
    weight: 10,
    arbitrary: fc.record({
      kind: fc.constant("tool" as const),
      back: fc.nat(2),
      phase: fc.constantFrom("started", "ended", "message", "all", "all"),
    }),
  },
  {
    weight: 2,
    arbitrary: fc.record({
      kind: fc.constant("late" as const),
      back: fc.nat(4),
      how: fc.constantFrom("ended", "message"),
    }),
  },
  { weight: 3, arbitrary: fc.record({ kind: fc.constantFrom("steer", "prompt"), model }) },
  {
    weight: 4,
    arbitrary: fc.record({
      kind: fc.constantFrom("secret", "draft", "complete", "abort", "hide", "edit", "edit now"),
    }),
  },
  {
    weight: 1,
    arbitrary: fc.record({ kind: fc.constant("suspend" as const), how: fc.constantFrom(...SUSPENDED) }),
  },
  {
    weight: 3,
    arbitrary: fc.record({
      kind: fc.constant("crash" as const),
      resume: fc.constantFrom("prompt", "close", "rerun", "keep"),
      intents: fc.boolean(),
      isClaimed: fc.boolean(),
    }),
  },
);

class Life {
  readonly voice: Voice;
  readonly book: Book;
  /** The newest request whose answer came, and what the application had changed of the past by then. */
  #sent: { readonly view: readonly unknown[]; readonly past: string } = { view: [], past: "" };
  readonly steps: unknown[][] = [];
  readonly #made: { message: string; index: number; id: string; name: string; call: MadeCall }[] = [];
  #since: number;
  #serial = 0;
  #drafts = 0;

  constructor(voice: Voice) {
    this.voice = voice;
    this.book = new Book(voice.dialect, { intents: true });
    this.#since = this.book.head;
    this.book.prompt(voice.user("go"));
  }

  get isOpen(): boolean {
    const { turn } = this.book.conversation;
    return turn !== null && !turn.ended && !turn.suspended;
  }

  request(): readonly unknown[] {
    return messagesOf(this.book.conversation, { kind: "active", since: this.#since });
  }

  live(event: Event): void {
    const { book, voice } = this;
    const { conversation } = book;
    switch (event.kind) {
      case "answer":
        this.#answer(event.step, event.model, event.oneByOne);
        return;
      case "tool":
        this.#tool(event.back, event.phase);
        return;
      case "late":
        this.#late(event.back, event.how);
        return;
      case "steer":
        if (this.isOpen) book.say([voice.user("by the way")], event.model ? { model: event.model } : {});
        return;
      case "prompt":
        if (!this.isOpen) book.prompt(voice.user("next"), event.model ? { model: event.model } : {});
        return;
      case "secret":
        if (this.isOpen) book.say([voice.user("my key is REDACTED")], { redacted: true });
        return;
      case "draft":
        if (!this.isOpen) return;
        book.write({
          kind: "draft",
          id: `d${this.#drafts++}`,
          turn: conversation.turns,
          n: 0,
          parts: [{ part: 0, text: `I think ${HALF}` }],
        });
        return;
      case "complete":
      case "abort":
        if (!this.isOpen) return;
        book.write({
          kind: "turn.ended",
          turn: conversation.turns,
          outcome: event.kind === "abort" ? "aborted" : "completed",
          by: `${HALF} ${LONG}`,
        });
        return;
      case "suspend":
        if (!this.isOpen) return;
        book.write({ kind: "turn.suspended", turn: conversation.turns, reason: `${LONG} ${HALF}`, ...event.how });
        return;
      case "hide":
      case "edit":
      case "edit now":
        this.#change(event.kind);
        return;
      case "crash":
        this.#crash(event);
        return;
    }
  }

  /** The model is asked, if it can be, and answers. */
  #answer(of: MadeStep, model: string | null, oneByOne: number | null): void {
    const { book, voice } = this;
    const { conversation } = book;
    if (!this.isOpen) return;
    const open = openCalls(conversation).filter(({ state }) => state !== "provider");
    // An agent waits for its tools, or tells the model that some still run; it does not go on behind its own words.
    if (open.length > 0 && !conversation.exchange.isClosed) return;
    const view = this.request();
    if (view.length === 0 || voice.dialect.role(view.at(-1)) === "assistant") return;
    this.judge(view);
    this.#sent = { view, past: pastOf(book) };
    // The agent has an array of its own, in which nothing is redacted.
    const asSent = JSON.parse(JSON.stringify(view).replaceAll("REDACTED", "sk-123"));
    const messages = judges[voice.dialect.name]!.signed(voice.step(of, this.#serial++), asSent);
    const entries = open.flatMap((call) =>
      call.state === "awaiting"
        ? synthesizeResult(voice.dialect, call, { kind: "completed" })
        : liveRepair(conversation, call, this.#since),
    );
    const members = model === null ? {} : { model };
    const recorded = oneByOne === null ? messages : messages.slice(0, 1 + (oneByOne % messages.length));
    const [first, ...rest] = oneByOne === null ? [recorded] : recorded.map((message) => [message]);
    const ids = book.unit(() => {
      if (entries.length > 0) book.write({ kind: "repair", turn: conversation.turns, entries });
      return book.say(first!, members);
    });
    for (const one of rest) ids.push(...book.say(one, members));
    this.steps.push(messages);
    let made = 0;
    for (const [at, message] of recorded.entries()) {
      for (const [index, { id, name, by }] of voice.dialect.calls(message).entries()) {
        if (by === "agent") this.#made.push({ message: ids[at]!, index, id, name, call: of.calls[made++]! });
      }
    }
  }

  #tool(back: number, phase: "started" | "ended" | "message" | "all"): void {
    const { book, voice } = this;
    if (!this.isOpen) return;
    const open = openCalls(book.conversation).filter(({ state }) => state !== "provider");
    const found = phase === "all" ? open : open.slice(back, back + 1);
    for (const { message, index, id, name, startedAt } of found) {
      if (phase !== "message" && startedAt === undefined) book.started(message, index, id, name);
      if (phase === "ended" || phase === "all")
        book.ended(message, index, id, name, { value: { [HALF]: `value ${id}` } });
      const made = this.#made.find((one) => one.message === message && one.index === index);
      if (made && (phase === "message" || phase === "all"))
        book.say([voice.result(made.call, `as a message ${HALF}`, false)]);
    }
  }

  /** What comes after everybody has given it up. */
  #late(back: number, how: "ended" | "message"): void {
    const { book, voice } = this;
    const made = this.#made.at(-1 - back);
    const isOpen = made && openCalls(book.conversation).some(({ message }) => message === made.message);
    if (!made || isOpen) return;
    if (how === "ended") book.ended(made.message, made.index, made.id, made.name, { value: "late" });
    // By its id alone, a message cannot be told from one for a newer call.
    else if (!book.conversation.exchange.knows(made.id)) book.say([voice.result(made.call, "late", false)]);
  }

  #change(kind: "hide" | "edit" | "edit now"): void {
    const { book, voice } = this;
    const users = book.conversation.items.filter(
      ({ role, entry, from }) => role === "user" && from === "message" && entry.replacedBy === undefined,
    );
    const target = users[this.#serial % Math.max(1, users.length)];
    if (!target || users.length < 2) return;
    const { id } = target.entry;
    if (kind === "hide") {
      book.write({ kind: "patch", id, metadata: { hiddenFromModel: true } });
      return;
    }
    const shown = [
      { id: book.id(), message: book.conversation.dialect.encode?.(voice.user("changed")) ?? voice.user("changed") },
    ];
    book.write({
      kind: "edit",
      id: book.id(),
      ids: [id],
      shown,
      reason: "test",
      ...(kind === "edit" ? {} : { now: true }),
    });
  }

  #crash({ resume, intents, isClaimed }: Extract<Event, { kind: "crash" }>): void {
    const { book, voice } = this;
    const { conversation } = book;
    if (!this.isOpen && conversation.turn?.ended?.outcome === "completed") return;
    book.open({ intents });
    this.#since = book.head;
    if (isClaimed && interruptionOf(conversation))
      book.write({ kind: "turn.claimed", turn: conversation.turns, n: conversation.turn!.attempts + 1 });
    if (resume === "prompt") book.prompt(voice.user("again"));
    else book.resume(resume === "keep" ? { draft: "keep" } : { calls: resume });
    const open = openCalls(conversation);
    if (open.length === 0) this.judge(this.request());
  }

  judge(view: readonly unknown[]): void {
    const { voice, steps, book } = this;
    expect(told(judges[voice.dialect.name]!.judge(view, steps))).toBe("");
    if (pastOf(book) !== this.#sent.past) return;
    const before = voice.atoms(this.#sent.view);
    expect(voice.atoms(view).slice(0, before.length)).toEqual(before);
  }
}

/**
 * What the application has changed of the past: what is hidden and replaced, and how often the model was another one.
 */
function pastOf({ conversation }: Book): string {
  const models = conversation.items.filter(isShown).flatMap(({ entry }) => entry.model ?? []);
  const switches = models.filter((one, at) => at > 0 && one !== models[at - 1]).length;
  return JSON.stringify([conversation.changed.saved(), switches]);
}

/** A list says the same of the turn as the session does. */
function judgeRow({ book }: Life): void {
  const summariser = sessionSummariser(() => book.conversation.dialect);
  const row = shapeOf(book.records.reduce<Json>((row, record) => summariser.add(row, record), null))!;
  const { turn } = book.conversation;
  const last = lastTurnOf(turn);
  expect(sessionState(lastTurnIn(row), false)).toBe(sessionState(last, false));
  expect(wakeAtIn(row)).toBe(last === "paused" ? turn!.suspended!.until : undefined);
  if (last !== "completed") expect([attemptsIn(row), row["tried"] === true]).toEqual([turn!.attempts, turn!.isTried]);
  expect(summariser.read!(row as Json)).toEqual(row);
}

/** Goes on from every place where a process could have died, with a prompt and without. */
function judgeEveryCut({ voice, book, steps }: Life): void {
  const judge = judges[voice.dialect.name]!;
  for (const end of book.ends) {
    const found = book.cut(end);
    if (found.conversation.turn === null) continue;
    const asked = book.cut(end);
    asked.open({ intents: true });
    asked.prompt(voice.user("and now?"));
    expect(told(judge.judge(asked.live(), steps))).toBe("");
    expect(messagesOf(asked.again(), { kind: "idle" })).toEqual(asked.still());
    if (interruptionOf(found.conversation) === null) continue;
    for (const options of [{}, { draft: "keep" as const }]) {
      const resumed = book.cut(end);
      resumed.open({ intents: true });
      resumed.resume(options);
      expect(told(judge.judge(resumed.live(), steps))).toBe("");
    }
  }
}

describe.each(modelVoices.map((voice) => [voice.dialect.name, voice] as const))("%s", (_, voice) => {
  test("R1, P4: every request is accepted, and begins with the one before it", () => {
    holds(
      fc.property(fc.array(event, { maxLength: 40 }), (events) => {
        const life = new Life(voice);
        for (const one of events) {
          life.live(one);
          judgeRow(life);
        }
        // At last a prompt, whatever state it is in.
        if (life.isOpen) life.live({ kind: "crash", resume: "prompt", intents: true, isClaimed: false });
        else life.live({ kind: "prompt", model: null });
        life.judge(life.request());
        expect(messagesOf(life.book.again(), { kind: "idle" })).toEqual(life.book.still());
      }),
      seed,
      300,
    );
  });

  test("P4: cut after every unit, and gone on with in all ways, every request is accepted", () => {
    holds(
      fc.property(fc.array(event, { maxLength: 16 }), (events) => {
        const life = new Life(voice);
        for (const one of events) life.live(one);
        judgeEveryCut(life);
      }),
      seed,
      80,
    );
  });

  test("P4: a result without an id is that of a call without one, next to calls with one id between them", () => {
    const ids = ["call_2", null, "call_2"];
    const calls = ids.map((id, i): MadeCall => ({ id, name: i < 2 ? "read" : "write", input: "whole" }));
    const life = new Life(voice);
    const step: MadeStep = { ...little, reasoning: "none", text: null, calls };
    life.live({ kind: "answer", step, model: null, oneByOne: null });
    life.live({ kind: "tool", back: 0, phase: "all" });
    judgeEveryCut(life);
  });
});
