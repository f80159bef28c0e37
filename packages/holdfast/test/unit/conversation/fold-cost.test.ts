import { describe, expect, test, vi } from "vitest";
import { Conversation } from "../../../src/conversation/conversation.ts";
import type { Dialect } from "../../../src/dialects/dialect.ts";
import { openaiChat } from "../../../src/dialects/openai-chat.ts";
import { interruptionOf, openCalls } from "../../../src/view/interruption.ts";
import { messagesOf } from "../../../src/view/messages.ts";
import { planResume, repairForPrompt } from "../../../src/view/repairs.ts";
import { Book } from "./fold-book.ts";

/**
 * How often the functions of a dialect are called, and with how many entries: that grows with the conversation, and not
 * with its square.
 */
class Meter {
  readonly dialect: Dialect<unknown>;
  calls = 0;
  entries = 0;

  constructor() {
    const count =
      <A extends unknown[], R>(run: (...args: A) => R) =>
      (...args: A): R => {
        this.calls += 1;
        return run(...args);
      };
    const chat = openaiChat as unknown as Dialect<unknown>;
    this.dialect = {
      ...chat,
      role: count(chat.role),
      text: count(chat.text),
      calls: count(chat.calls),
      results: count(chat.results),
      result: count(chat.result),
      arrange: (entries, view) => {
        this.entries += entries.length;
        return chat.arrange(entries, view);
      },
    };
  }

  /** What it costs. */
  of(run: () => unknown): { calls: number; entries: number } {
    const { calls, entries } = this;
    run();
    return { calls: this.calls - calls, entries: this.entries - entries };
  }
}

const user = (content: string) => ({ role: "user", content });
const asks = (ids: readonly string[]) => ({
  role: "assistant",
  content: null,
  tool_calls: ids.map((id) => ({ id, type: "function", function: { name: "read", arguments: "{}" } })),
});

/**
 * `turns` with a call and its result each; then `open` messages in a row that call, whose tools have started and of
 * which every other one has ended.
 */
function journal(turns: number, open: number): Book {
  const book = new Book(openaiChat as never, { intents: true });
  for (let turn = 0; turn < turns; turn++) {
    book.prompt(user("go"));
    const [message] = book.say([asks([`call_${turn}`])]);
    book.started(message!, 0, `call_${turn}`, "read");
    book.ended(message!, 0, `call_${turn}`, "read", { value: turn });
    book.say([{ role: "tool", tool_call_id: `call_${turn}`, content: "done" }]);
    book.say([{ role: "assistant", content: "Done." }]);
    book.write({ kind: "turn.ended", turn: turn + 1, outcome: "completed" });
  }
  book.prompt(user("all at once"));
  const ids = Array.from({ length: open }, (_, at) => book.say([asks([`open_${at}`])])[0]!);
  for (const [at, id] of ids.entries()) book.started(id, 0, `open_${at}`, "read");
  for (const [at, id] of ids.entries()) if (at % 2) book.ended(id, 0, `open_${at}`, "read", { value: at });
  return book;
}

function folded(records: Book["records"], meter: Meter): Conversation<unknown> {
  const conversation = new Conversation<unknown>(() => meter.dialect);
  for (const record of records) conversation.add(record);
  return conversation;
}

describe("10,000 messages, of which 1,000 wait for a result in one section", () => {
  const { records } = journal(2250, 1000);
  const meter = new Meter();
  let conversation = new Conversation<unknown>(() => null);
  const cost = meter.of(() => {
    conversation = folded(records, meter);
  });
  const { length } = conversation.items;

  test("the fold asks a few things of each message", () => {
    expect(length).toBeGreaterThan(10_000);
    expect(cost.calls).toBeLessThan(4 * length);
    expect(cost.entries).toBe(0);
  });

  test("what is open costs nothing of the dialect", () => {
    expect(meter.of(() => openCalls(conversation))).toEqual({ calls: 0, entries: 0 });
    expect(openCalls(conversation)).toHaveLength(500);
  });

  test("what was in flight costs nothing but the live end", () => {
    const { calls, entries } = meter.of(() => interruptionOf(conversation));
    expect(calls + entries).toBeLessThan(2000);
  });

  test("a view arranges each entry once; a plan costs its open calls", () => {
    const view = meter.of(() => messagesOf(conversation, { kind: "idle" }));
    expect(view.entries).toBe(length + 500);
    expect(view.calls).toBeLessThan(1000);
    for (const plan of [() => repairForPrompt(conversation), () => planResume(conversation, { calls: "rerun" })]) {
      const { calls, entries } = meter.of(plan);
      expect(calls + entries).toBeLessThan(3000);
    }
  });

  test("one more record costs the same whatever the length", () => {
    const at = "2026-11-15T00:00:00.000Z";
    const message = { kind: "message", id: "x", turn: conversation.turns, step: "x", message: user("steer") };
    const { calls } = meter.of(() => conversation.add({ seq: conversation.head + 1, at, crc: "", ...message }));
    expect(calls).toBeLessThan(8);
  });
});

test("results that take the place of those that were recorded before them do not make it start over", () => {
  const book = journal(1, 1000);
  for (let at = 0; at < 1000; at++) book.say([{ role: "tool", tool_call_id: `open_${at}`, content: "done" }]);
  const meter = new Meter();
  const conversation = new Conversation<unknown>(() => meter.dialect);
  const { calls } = meter.of(() => {
    for (const record of book.records) conversation.add(record);
  });
  expect(openCalls(conversation)).toEqual([]);
  expect(calls).toBeLessThan(10_000);
});

test("while a call waits, only the live end is arranged, whatever the length", () => {
  const arrange = vi.spyOn(openaiChat, "arrange");
  const { conversation } = journal(2250, 1);
  for (const activity of [{ kind: "idle" }, { kind: "active", since: 0 }] as const) {
    arrange.mockClear();
    expect(messagesOf(conversation, activity)).toHaveLength(4 * 2250 + 3);
    expect(arrange.mock.calls.map(([entries]) => entries.length)).toEqual([3]);
  }
  arrange.mockRestore();
});
