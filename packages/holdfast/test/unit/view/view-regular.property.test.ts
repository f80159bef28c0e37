import fc from "fast-check";
import { describe, expect, test } from "vitest";
import type { Dialect, Entry } from "../../../src/dialects/dialect.ts";
import { mapDialect, regularOrder } from "../../../src/dialects/index.ts";
import { openaiChat } from "../../../src/dialects/openai-chat.ts";
import { isWellFormed } from "../../../src/text/well-formed.ts";
import { messagesOf } from "../../../src/view/messages.ts";
import { holds, seedOf } from "../../seed.ts";
import { anyRecords } from "../conversation/fold-arbitraries.ts";
import { Book, type Written } from "../conversation/fold-book.ts";
import { entry, frozen, oddHappenings, spoken } from "../dialects/dialect-conversations.ts";
import { type MadeCall, type Voice, voices } from "../dialects/dialect-voices.ts";

/** R1, P4: a conversation that is recognised as regular is shown exactly as `arrange` would show it. */
const seed = seedOf(import.meta.url, "unit");

/** What the model is shown of regular entries; null if they are not regular, or a call waits. */
function regularView(dialect: Dialect<unknown>, entries: readonly Entry<unknown>[]): unknown[] | null {
  const order = regularOrder(dialect)!;
  const shown: unknown[] = [];
  return entries.every((one) => order.pass(one, shown)) && order.isSettled ? shown : null;
}

const exact = (value: unknown): string =>
  JSON.stringify(value, (_name, member) => (ArrayBuffer.isView(member) ? [...(member as Uint8Array)] : member));

/** The view as text, so that the order of members counts too; true if the entries were regular. */
function isShownAlike({ dialect }: Voice, entries: readonly Entry<unknown>[]): boolean {
  const shown = regularView(dialect, entries);
  if (!shown || !entries.every(({ message }) => isWellFormed(message))) return false;
  for (const next of ["prompt", "model"] as const)
    expect(exact(shown)).toBe(exact(dialect.arrange(entries, { changedAt: null, next })));
  return true;
}

interface Round {
  readonly calls: number;
  readonly isIdless: boolean;
  readonly isPlaced: boolean;
  readonly reasoning: "none" | "signed" | "unsigned";
  readonly text: string | null;
}

const rounds = fc.array(
  fc.array(
    fc.record<Round>({
      calls: fc.nat(2),
      isIdless: fc.integer({ min: 0, max: 9 }).map((n) => n === 0),
      isPlaced: fc.boolean(),
      reasoning: fc.constantFrom("none", "none", "signed", "unsigned"),
      text: fc.constantFrom("hello", "hello", null, "", " "),
    }),
    { maxLength: 3 },
  ),
  { minLength: 1, maxLength: 3 },
);

/** Prompts, each followed by steps with their results. */
function wellOrdered(voice: Voice, turns: readonly (readonly Round[])[]): Entry<unknown>[] {
  const entries: Entry<unknown>[] = [];
  const add = (message: unknown, rest: Partial<Entry<unknown>> = {}): string => {
    const made = entry(message, entries.length, rest);
    entries.push(made);
    return made.id;
  };
  for (const turn of turns) {
    add(voice.user("do it"));
    for (const { calls: count, isIdless, isPlaced, reasoning, text } of turn) {
      const step = `step ${entries.length}`;
      const calls = Array.from(
        { length: count },
        (_, n): MadeCall => ({ id: isIdless ? null : `call_${entries.length}_${n}`, name: "read", input: "whole" }),
      );
      const made = voice.step({ reasoning, text, calls, after: null, provider: "none" }, entries.length);
      const places: { message: string; index: number }[] = [];
      for (const message of made) {
        const id = add(message, { step });
        for (const index of voice.dialect.calls(message).keys()) places.push({ message: id, index });
      }
      for (const [n, call] of calls.entries())
        add(voice.result(call, `result ${n}`, false), isPlaced && places[n] ? { call: places[n] } : {});
    }
    add(voice.step({ reasoning: "none", text: "done", calls: [], after: null, provider: "none" }, entries.length)[0]);
  }
  return entries;
}

interface Blow {
  readonly kind: "drop" | "swap" | "repeat" | "change" | "junk" | "join" | "misplace";
  readonly at: number;
  readonly path: readonly number[];
  readonly value: unknown;
}

const VALUES = ["", " ", "x", null, 7, [], {}, ["x"], [{}], "call_1_0", { type: "text", text: "" }, "a b", undefined];
const blows = fc.array(
  fc.record<Blow>({
    kind: fc.constantFrom("drop", "swap", "repeat", "change", "change", "change", "junk", "join", "misplace"),
    at: fc.nat(30),
    path: fc.array(fc.nat(9), { minLength: 1, maxLength: 5 }),
    value: fc.constantFrom<unknown>(...VALUES),
  }),
  { maxLength: 3 },
);

const NAMES = ["cache_control", "providerOptions", "caller", "id", "name", "model", "function_call", "usage", "type"];

function struck(entries: readonly Entry<unknown>[], all: readonly Blow[]): Entry<unknown>[] {
  const out = [...entries];
  for (const { kind, at: given, path, value } of all) {
    const at = given % Math.max(1, out.length);
    const one = out[at];
    if (!one) continue;
    if (kind === "drop") out.splice(at, 1);
    else if (kind === "swap" && out[at + 1]) out.splice(at, 2, out[at + 1]!, one);
    else if (kind === "repeat") out.splice(path[0]! % out.length, 0, { ...one, id: `${one.id} again` });
    else if (kind === "change") out[at] = { ...one, message: changed(one.message, path, value) };
    else if (kind === "junk") out[at] = { ...one, message: value ?? null };
    else if (kind === "join" && out[at + 1]) out[at + 1] = { ...out[at + 1]!, step: one.step };
    else if (kind === "misplace") out[at] = { ...one, call: { message: `e${path[0]}`, index: path[1] ?? 0 } };
  }
  return out;
}

/** A member somewhere in it has another value, is gone, or is new. */
function changed(message: unknown, path: readonly number[], value: unknown): unknown {
  const copy = structuredClone(message);
  let at = copy as Record<string, unknown>;
  for (const [depth, turn] of path.entries()) {
    if (typeof at !== "object" || at === null || ArrayBuffer.isView(at)) break;
    const names = Object.keys(at);
    const name = names[turn % Math.max(1, names.length)];
    const isLast = depth === path.length - 1;
    if (isLast && turn === 9) at[NAMES[names.length % NAMES.length]!] = value;
    else if (name === undefined) break;
    else if (!isLast) at = at[name] as Record<string, unknown>;
    else if (value === undefined) delete at[name];
    else at[name] = value;
  }
  return copy;
}

describe.each(voices.map((voice) => [voice.dialect.name, voice] as const))("%s", (_name, voice) => {
  const { dialect } = voice;

  test("a conversation of prompts, calls with their results, and answers is regular after each answer", () => {
    const round: Round = { calls: 1, isIdless: false, isPlaced: false, reasoning: "none", text: "hello" };
    const entries = wellOrdered(voice, [[round, { ...round, isPlaced: true }], [round], []]);
    for (let length = 0; length <= entries.length; length++) {
      const some = entries.slice(0, length);
      const isWaiting = dialect.name !== "acp" && some.length > 0 && dialect.calls(some.at(-1)!.message).length > 0;
      expect(isShownAlike(voice, some)).toBe(!isWaiting);
    }
  });

  test("what is regular is shown as `arrange` shows it, also after damage and in any order", () => {
    let regular = 0;
    const check = (entries: Entry<unknown>[]): void => {
      for (let length = 0; length <= entries.length; length++)
        if (isShownAlike(voice, frozen(entries.slice(0, length))) && length > 0) regular += 1;
    };
    holds(
      fc.property(rounds, blows, (turns, all) => check(struck(wellOrdered(voice, turns), all))),
      seed,
      1500,
    );
    holds(
      fc.property(oddHappenings, (conversation) => check(spoken(voice, conversation))),
      seed,
      300,
    );
    expect(regular).toBeGreaterThan(1000);
  });

  /** Looks like the built-in dialect, but is the application's: nothing is known of its regularity. */
  const own = { ...dialect };
  const marks = fc.array(
    fc.record({ at: fc.nat(12), model: fc.constantFrom(undefined, "a", "b"), redacted: fc.boolean() }),
    { maxLength: 3 },
  );
  const said = fc.tuple(rounds, blows, marks).map(([turns, all, marked]) => {
    const records = struck(wellOrdered(voice, turns), all).map(({ id, step, message, call }): Written => {
      const stored = dialect.encode ? dialect.encode(message) : message;
      return { kind: "message", id, turn: 1, step, message: stored, ...(call ? { call } : {}) };
    });
    for (const { at, model, redacted } of marked) {
      const record = records[at];
      if (record) Object.assign(record, model ? { model } : {}, redacted ? { redacted } : {});
    }
    return records;
  });
  const withSome = (records: readonly Written[], any: readonly Written[], places: readonly number[]): Written[] => {
    const out = [...records];
    for (const [i, place] of places.entries()) if (any[i]) out.splice(place % (out.length + 1), 0, any[i]!);
    return out;
  };
  const mixed = fc
    .tuple(said, anyRecords(voice), fc.array(fc.nat(40), { maxLength: 6 }))
    .map(([records, any, places]) => withSome(records, any, places));

  test("whatever the records are, the view is the one that a dialect without this knowledge makes", () => {
    const compare = (records: readonly Written[]): void => {
      const book = new Book(dialect);
      const slow = new Book(own);
      for (const record of records) {
        book.write(record);
        slow.write(record);
        for (const activity of [{ kind: "idle" }, { kind: "active", since: 3 }] as const)
          expect(exact(messagesOf(book.conversation, activity))).toBe(exact(messagesOf(slow.conversation, activity)));
      }
    };
    holds(fc.property(mixed, compare), seed, 250);
    holds(fc.property(anyRecords(voice), compare), seed, 150);
  });

  test("the live end that is asked for now and then is the one that every record was told to", () => {
    const idsOf = (records: readonly Written[]): string[] => [
      ...new Set(records.flatMap(({ message }) => (message ? dialect.calls(message).map(({ id }) => id) : []))),
    ];
    const liveEnd = ({ conversation }: Book, ids: readonly string[]): string => {
      const { exchange, items } = conversation;
      return exact({
        entries: items.map(({ entry: one, hidden }) => [one, hidden]),
        items: exchange.items.map(({ entry: one }) => one.id),
        calls: exchange.calls.map(({ item, index, answer }) => [item.entry.id, index, answer?.entry.id]),
        late: ids.filter((call) => exchange.isLate([{ call }])),
        open: ids.map((id) => exchange.open(id)?.item.entry.id),
        isClosed: exchange.isClosed,
        shown: messagesOf(conversation, { kind: "idle" }),
      });
    };
    const compare = (records: readonly Written[], asked: readonly number[]): void => {
      const book = new Book(dialect);
      const slow = new Book(own);
      const ids = idsOf(records);
      for (const [at, record] of records.entries()) {
        book.write(record);
        slow.write(record);
        void slow.conversation.exchange;
        if (at === records.length - 1 || asked.includes(at)) expect(liveEnd(book, ids)).toBe(liveEnd(slow, ids));
      }
    };
    const calm = fc
      .array(fc.array(fc.nat(2), { maxLength: 3 }), { minLength: 2, maxLength: 4 })
      .map((turns): Written[] => {
        const round = { isIdless: false, isPlaced: false, reasoning: "none", text: "hello" } as const;
        const entries = wellOrdered(
          voice,
          turns.map((steps) => steps.map((calls) => ({ ...round, calls }))),
        );
        // Some have ids that other records name.
        const idOf = (one: Entry<unknown>): string => `a${entries.indexOf(one) + 1}`;
        // As sessions record it: a step has the id of its first message.
        const stepOf = ({ step }: Entry<unknown>): string => idOf(entries.find((one) => one.step === step)!);
        return entries.map((one) => {
          const message = dialect.encode ? dialect.encode(one.message) : one.message;
          return { kind: "message", id: idOf(one), turn: 1, step: stepOf(one), message };
        });
      });
    const places = fc.array(fc.nat(40), { maxLength: 3 });
    const asked = fc.array(fc.nat(40), { maxLength: 2 });
    holds(
      fc.property(calm, anyRecords(voice), places, asked, (records, any, at, when) =>
        compare(withSome(records, any, at), when),
      ),
      seed,
      1000,
    );
  });
});

test("a call waits, and the dialect cannot read words that it made itself: all of it is shown", () => {
  const to = (message: { role: string; content: unknown }): never => {
    if (message.role === "user" && message.content !== "do it") throw new Error("not one of mine");
    return message as never;
  };
  const book = new Book(mapDialect(openaiChat, { name: "shy", to, from: (message) => message as never }) as never);
  const call = { id: "call_1", type: "function", function: { name: "read", arguments: "{}" } };
  book.prompt({ role: "user", content: "do it" });
  book.say([{ role: "assistant", content: null, tool_calls: [call] }]);
  const shown = messagesOf(book.conversation, { kind: "idle" }) as { role: string }[];
  expect(shown.map(({ role }) => role)).toEqual(["user", "assistant", "tool"]);
});
