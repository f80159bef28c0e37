import { describe, expect, test } from "vitest";
import type { Entry } from "../../../../src/dialects/dialect.ts";
import { dialects, findDialect } from "../../../../src/dialects/index.ts";
import { pair } from "../../../../src/dialects/order/pairing.ts";
import { entry } from "../dialect-conversations.ts";

/** A dialect of one's own: `calls a b`, `answers a`, and anything else is said. */
const own = {
  role: (message: string) =>
    (message.startsWith("calls") || message.startsWith("says") ? "assistant" : "user") as "user" | "assistant",
  calls: (message: string) =>
    message.startsWith("calls")
      ? message
          .split(" ")
          .slice(1)
          .map((id) => ({
            id,
            name: id,
            input: {},
            by: id.startsWith("srv") ? ("provider" as const) : ("agent" as const),
          }))
      : [],
  results: (message: string) => {
    const found = /answers (.*)$/.exec(message);
    return found ? found[1]!.split(" ").map((call) => ({ call })) : [];
  },
};

function answers(...messages: string[]): string[] {
  const entries = messages.map((message, at) =>
    entry(message, at, message.startsWith("late") ? { late: true } : {}),
  ) as Entry<string>[];
  return pair(entries, own).exchanges.flatMap(({ calls }) =>
    calls.map(({ call, answer }) => `${call.id}:${answer ? answer.entry : "open"}`),
  );
}

describe("pair, for any dialect", () => {
  test("the first result that there is, in the call's own section", () => {
    expect(answers("go", "calls a b", "answers b", "answers a", "answers b", "says so", "answers a")).toEqual([
      "a:3",
      "b:2",
    ]);
  });

  test("a result before its call, or after the assistant has spoken again, answers nothing", () => {
    expect(answers("answers a", "calls a", "hello", "says so", "answers a")).toEqual(["a:open"]);
  });

  test("messages of the assistant's in a row are one section, also with a late result between them", () => {
    expect(answers("calls a", "late answers x", "calls b", "answers a b")).toEqual(["a:3", "b:3"]);
    expect(answers("calls a", "late answers a", "calls a", "answers a")).toEqual(["a:open", "a:3"]);
  });

  test("R9: of several calls with one id the newest message's come first, in their order", () => {
    expect(answers("calls a a", "calls a a", "answers a", "answers a a a a")).toEqual(["a:3", "a:3", "a:2", "a:3"]);
  });

  test("many calls in one section are paired as few are", () => {
    const ids = Array.from({ length: 30 }, (_, n) => `a${n % 12}`).join(" ");
    const first = Array.from({ length: 30 }, (_, n) => `a${n % 12}:1`);
    expect(answers(`calls ${ids}`, `answers ${ids} a0`, "answers a1 a2")).toEqual(first);
    expect(answers(`calls ${ids}`, "calls a0 a0", "answers a0", "answers a0 a0").slice(-2)).toEqual(["a0:2", "a0:3"]);
  });

  test("R8: results of the provider's calls may come in a later section", () => {
    expect(answers("calls srv a", "answers a", "says answers srv")).toEqual(["srv:2", "a:1"]);
  });
});

describe("dialectNamed", () => {
  test("each by its name, and null for any other", () => {
    for (const [name, dialect] of Object.entries(dialects)) {
      expect(dialect.name).toBe(name);
      expect(findDialect(name)).toBe(dialect);
    }
    expect(findDialect("cobol")).toBeNull();
    expect(findDialect("toString")).toBeNull();
  });
});
