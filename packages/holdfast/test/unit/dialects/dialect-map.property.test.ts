import fc from "fast-check";
import { type Dialect, mapDialect } from "holdfast";
import { Memory, openMemoryStore } from "holdfast/internal";
import { openStoreWith } from "holdfast/store";
import { describe, expect, test } from "vitest";
import type { Entry } from "../../../src/dialects/dialect.ts";
import { regularOrder } from "../../../src/dialects/index.ts";
import { holds, seedOf } from "../../seed.ts";
import { frozen, happenings, oddHappenings, spoken, views } from "./dialect-conversations.ts";
import { voices } from "./dialect-voices.ts";

const seed = seedOf(import.meta.url, "unit");

interface Wrapped {
  readonly of: unknown;
  readonly trace?: string;
}

function wrapping(base: Dialect<unknown>): Dialect<Wrapped> {
  return mapDialect(base, { name: "wrapped", to: ({ of }: Wrapped) => of, from: (of) => ({ of }) });
}

function wrapped(entries: readonly Entry<unknown>[]): Entry<Wrapped>[] {
  return entries.map((entry) => ({ ...entry, message: { of: entry.message, trace: entry.id } }));
}

describe.each(voices.map((voice) => [voice.dialect.name, voice] as const))("a dialect that maps to %s", (_, voice) => {
  const base: Dialect<unknown> = voice.dialect;

  test("says of each message what the base says, and shows the same view", () => {
    holds(
      fc.property(oddHappenings, views, (conversation, view) => {
        const dialect = wrapping(base);
        const entries = frozen(spoken(voice, conversation));
        const own = frozen(wrapped(entries));
        for (const [at, { message }] of entries.entries()) {
          const mine = own[at]!.message;
          expect(dialect.check(mine)).toBe(base.check(message));
          expect(dialect.role(mine)).toBe(base.role(message));
          expect(dialect.text(mine)).toBe(base.text(message));
          expect(dialect.calls(mine)).toEqual(base.calls(message));
          expect(dialect.results(mine)).toEqual(base.results(message));
          expect(dialect.parts?.(mine)).toEqual(base.parts?.(message));
        }
        const shown = dialect.arrange(own, view);
        expect(shown.map(({ of }) => of)).toEqual(base.arrange(entries, view));
        // What the base leaves unchanged comes back with everything in it.
        const given = new Map(own.map(({ message }) => [message.of, message]));
        for (const message of shown) if (given.has(message.of)) expect(message).toBe(given.get(message.of));
      }),
      seed,
      200,
    );
  });

  test("has the regular order of the base", () => {
    holds(
      fc.property(happenings, (conversation) => {
        const entries = spoken(voice, conversation);
        const order = regularOrder(base)!;
        const mine = regularOrder(wrapping(base))!;
        const [out, own]: [unknown[], Wrapped[]] = [[], []];
        for (const [at, entry] of wrapped(entries).entries()) {
          const isRegular = order.pass(entries[at]!, out);
          // In doubt it is not regular.
          if (mine.pass(entry, own)) expect(isRegular).toBe(true);
          else return;
          expect(mine.isSettled).toBe(order.isSettled);
          expect(own.map(({ of }) => of)).toEqual(out);
        }
      }),
      seed,
      300,
    );
  });
});

const openai = voices.find(({ dialect }) => dialect.name === "openai-chat")!.dialect as Dialect<unknown>;

test("a message that cannot be converted is refused in words, and answers no question", () => {
  const dialect = mapDialect<Wrapped, unknown>(openai, {
    name: "strict",
    to: ({ of }) => {
      if (of === undefined) throw new Error("no content");
      return of;
    },
    from: (of) => ({ of }),
  });
  const bad = {} as Wrapped;
  expect(dialect.check(bad)).toBe('it cannot be converted to the dialect "openai-chat" (no content)');
  expect([dialect.role(bad), dialect.text(bad), dialect.calls(bad), dialect.results(bad)]).toEqual([
    "other",
    "",
    [],
    [],
  ]);
  expect(dialect.same(bad, { of: 1 })).toBe(false);
  const entry = { id: "e", seq: 1, at: "", turn: 1, step: "e", message: bad, metadata: {} };
  expect(dialect.arrange([entry], { changedAt: null, next: "model" })).toEqual([]);
});

test("an altered copy of the dialect makes no request without such a message either", async () => {
  let isStrict = false;
  const strict = mapDialect<Wrapped, unknown>(openai, {
    name: "strict",
    to: ({ of, trace }) => {
      if (isStrict && trace !== undefined) throw new Error("no traces");
      return of;
    },
    from: (of) => ({ of }),
  });
  const altered: Dialect<Wrapped> = { ...strict, text: () => "" };
  const memory = new Memory();
  const open = () => openStoreWith((options) => openMemoryStore({ ...options, memory }), { dialects: [altered] });
  const session = await (await open()).create<Wrapped>({ dialect: altered });
  await session.startTurn({ of: { role: "user", content: "hello" }, trace: "7f3a" });
  memory.crash(session.id);
  isStrict = true;
  await using store = await open();
  const reading = await store.read<Wrapped>(session.id);
  expect(() => reading.messages).toThrow(expect.objectContaining({ code: "MESSAGE_UNFIT" }));
});

class Line {
  readonly who: string;
  readonly said: string;
  constructor(who: string, said: string) {
    this.who = who;
    this.said = said;
  }
}

test("class instances are stored by the mapping's own encoding, and come back as instances in another process", async () => {
  const lines = mapDialect<Line, { role: string; content: string }>(
    openai as Dialect<{ role: string; content: string }>,
    {
      name: "lines",
      to: ({ who, said }) => ({ role: who, content: said }),
      from: ({ role, content }) => new Line(role, content),
      encode: ({ who, said }) => ({ who, said }),
      decode: (stored) => {
        const { who, said } = stored as { who: string; said: string };
        return new Line(who, said);
      },
    },
  );
  const memory = new Memory();
  const open = () => openStoreWith((options) => openMemoryStore({ ...options, memory }), { dialects: [lines] });
  const first = await open();
  const session = await first.create<Line>({ dialect: lines });
  const turn = await session.startTurn(new Line("user", "hello"));
  await turn.append(new Line("assistant", "hi"));
  memory.crash(session.id);

  await using store = await open();
  await using again = await store.resume<Line>(session.id);
  expect(again.messages).toEqual([new Line("user", "hello"), new Line("assistant", "hi")]);
  expect(again.messages.every((message) => message instanceof Line)).toBe(true);
});
