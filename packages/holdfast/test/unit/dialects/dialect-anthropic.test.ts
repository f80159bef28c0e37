import { describe, expect, test } from "vitest";
import { anthropic } from "../../../src/dialects/anthropic.ts";
import type { Entry, View } from "../../../src/dialects/dialect.ts";
import { entry } from "./dialect-conversations.ts";

// biome-ignore lint/suspicious/noExplicitAny: messages as an agent has them.
type Message = any;

const user = (...content: Message[]): Message => ({ role: "user", content });
const assistant = (...content: Message[]): Message => ({ role: "assistant", content });
const text = (words: string): Message => ({ type: "text", text: words });
const use = (id: string, name = "read", input: unknown = {}): Message => ({ type: "tool_use", id, name, input });
const result = (id: string, content: unknown = "ok"): Message => ({ type: "tool_result", tool_use_id: id, content });
const thinking = (signature?: string): Message => ({
  type: "thinking",
  thinking: "hm",
  ...(signature ? { signature } : {}),
});

function shown(messages: Message[], view: Partial<View> = {}, rest: Partial<Entry<Message>>[] = []): Message[] {
  const entries = messages.map((message, at) => entry(message, at, rest[at])) as Entry<Message>[];
  return anthropic.arrange(entries, { changedAt: null, next: "model", ...view });
}

describe("anthropic: arrange", () => {
  const prompt = user(text("go"));

  test("a conversation that is in order is handed on, message by message", () => {
    const messages = [
      { role: "user", content: "go" },
      assistant(text("yes"), use("a")),
      user(result("a")),
      assistant(text("done")),
    ];
    const view = shown(messages);
    expect(view.map((message, at) => message === messages[at])).toEqual([true, true, true, true]);
    expect(view).toEqual(messages);
  });

  test("parallel calls: results of all messages in one, in call order, however they came", () => {
    const view = shown([
      prompt,
      assistant(use("a"), use("b"), use("c")),
      user(result("c")),
      user(result("a")),
      user(result("b")),
    ]);
    expect(view.slice(2)).toEqual([user(result("a"), result("b"), result("c"))]);
  });

  test("steering text stands behind the results, also what came before them", () => {
    const view = shown([
      prompt,
      assistant(use("a"), use("b")),
      user(text("wait"), result("b")),
      { role: "user", content: "stop" },
      user(result("a")),
    ]);
    expect(view.slice(2)).toEqual([user(result("a"), result("b"), text("wait"), text("stop"))]);
  });

  test("orphans, second results and late ones are left out; the first one counts", () => {
    const view = shown([
      user(result("nobody"), text("go")),
      assistant(use("a")),
      user(result("a", "first"), result("a", "second")),
      assistant(text("so")),
      user(result("a", "third"), text("and?")),
    ]);
    expect(view).toEqual([
      user(text("go")),
      assistant(use("a")),
      user(result("a", "first")),
      assistant(text("so")),
      user(text("and?")),
    ]);
  });

  test("a result that is marked as late does not answer a later call of the same id", () => {
    const messages = [
      prompt,
      assistant(use("a")),
      user(result("a", "1")),
      assistant(use("a")),
      user(result("a", "late")),
      user(result("a", "2")),
    ];
    const view = shown(messages, {}, [{}, {}, {}, {}, { late: true }]);
    expect(view.slice(2)).toEqual([user(result("a", "1")), assistant(use("a_2")), user(result("a_2", "2"))]);
  });

  test("R9: repeated ids are renamed in calls and results alike, and stay so when more comes", () => {
    const messages = [
      prompt,
      assistant(use("x"), use("x")),
      user(result("x", "1"), result("x", "2")),
      assistant(use("x")),
      user(result("x", "3")),
    ];
    const view = shown(messages);
    expect(view.slice(1)).toEqual([
      assistant(use("x"), use("x_2")),
      user(result("x", "1"), result("x_2", "2")),
      assistant(use("x_3")),
      user(result("x_3", "3")),
    ]);
    expect(shown([...messages, assistant(use("x_2")), user(result("x_2"))]).slice(-2)).toEqual([
      assistant(use("x_2_2")),
      user(result("x_2_2")),
    ]);
  });

  test("R9: a call without an id is given one", () => {
    const nameless = { type: "tool_use", name: "read", input: {} };
    const [call] = anthropic.calls(assistant(nameless));
    const view = shown([
      prompt,
      assistant(nameless, nameless),
      anthropic.result({ id: "read#1", name: "read" }, { value: "2" }),
      user({ type: "tool_result", content: "1" }),
    ]);
    expect(call!.id).toBe("read#0");
    expect(view.slice(1)).toEqual([
      assistant(use("call_1_0"), use("call_1_1")),
      user(result("call_1_0", "1"), result("call_1_1", "2")),
    ]);
  });

  test("calls that are open at the very end stay open; before a prompt, their step is left out", () => {
    const messages = [prompt, assistant(text("a"), use("a"), use("b")), user(result("b"))];
    expect(shown(messages)).toEqual(messages);
    expect(shown(messages, { next: "prompt" })).toEqual([prompt]);
    expect(shown([...messages, user(text("well?"))])).toEqual([user(text("go"), text("well?"))]);
    expect(shown([...messages, assistant(text("b"))])).toEqual([prompt, assistant(text("b"))]);
  });

  test("R1: signed reasoning from the changed place on is left out, before it not", () => {
    const messages = [
      prompt,
      assistant(thinking("s1"), use("a")),
      user(result("a")),
      assistant(thinking("s2"), { type: "redacted_thinking", data: "d" }, text("b")),
    ];
    expect(shown(messages)).toEqual(messages);
    expect(shown(messages, { changedAt: "e2" })).toEqual([prompt, messages[1], messages[2], assistant(text("b"))]);
    expect(shown(messages, { changedAt: "not here" })[1]).toEqual(assistant(use("a")));
  });

  test("R1: reasoning behind the last entry that a change reaches was signed over the change, and stays", () => {
    const messages = [
      prompt,
      assistant(thinking("s1"), use("a")),
      user(result("a")),
      assistant(thinking("s2"), text("b")),
      user(text("and?")),
      assistant(thinking("s3"), text("c")),
    ];
    const without = (...dropped: number[]): unknown[] =>
      messages.map((message, at) =>
        dropped.includes(at) ? assistant(...(message.content as { type: string }[]).slice(1)) : message,
      );
    const view = (changedAt: string | null, changedUntil: string | null): unknown[] =>
      shown(messages, { changedAt, changedUntil });
    expect(view("e0", null)).toEqual(without(1, 3, 5));
    expect(view("e0", "e1")).toEqual(without(1));
    expect(view("e0", "e0")).toEqual(messages);
    expect(view("e2", "e4")).toEqual(without(3));
    expect(view("e2", "e5")).toEqual(without(3, 5));
    expect(view(null, "e1")).toEqual(messages);
    // From anywhere before the entries; to anywhere behind them; and an end that stands before its beginning.
    expect(view("gone", "e3")).toEqual(without(1, 3));
    expect(view("e0", "gone")).toEqual(without(1, 3, 5));
    expect(view("e3", "e1")).toEqual(without(3, 5));
  });

  test("R4: reasoning that another model signed is left out; a message of nothing else goes with it", () => {
    const messages = [prompt, assistant(thinking("s1")), user(text("go on")), assistant(thinking("s2"), text("b"))];
    const view = shown(messages, { model: "new" }, [{}, { model: "old" }, {}, { model: "new" }]);
    expect(view).toEqual([user(text("go"), text("go on")), messages[3]]);
  });

  test("C30: reasoning without a signature, cut-off input and null input", () => {
    const view = shown([
      prompt,
      assistant(thinking(), use("a", "read", '{"pa'), use("b", "read", null), use("c", "read", '{"x":1}')),
      user(result("a"), result("b"), result("c")),
    ]);
    expect(view[1]).toEqual(assistant(use("a", "read", { unparsed: '{"pa' }), use("b"), use("c", "read", { x: 1 })));
  });

  test("a message that ends with reasoning goes without it", () => {
    expect(shown([prompt, assistant(text("a"), thinking("s")), assistant(thinking("s")), prompt])).toEqual([
      prompt,
      assistant(text("a")),
      prompt,
    ]);
  });

  test("nothing empty: text, content, messages, results", () => {
    const view = shown([
      user(text(" ")),
      user(text("go"), text("")),
      assistant(text("\n"), use("a")),
      user(result("a", [text("")]), text(" ")),
      assistant(text("  ")),
      { role: "user", content: "  " },
      { role: "assistant", content: "" },
    ]);
    expect(view).toEqual([prompt, assistant(use("a")), user({ type: "tool_result", tool_use_id: "a" })]);
  });

  test("ids that came from another server fit", () => {
    const view = shown([prompt, assistant(use("functions.read:0")), user(result("functions.read:0"))]);
    expect(view.slice(1)).toEqual([assistant(use("functions_read_0")), user(result("functions_read_0"))]);
  });

  test("an error holds nothing but text, and not nothing", () => {
    const silent = { ...result("c", ""), is_error: true };
    expect(shown([prompt, assistant(use("c")), user(silent)])[2].content[0].content).toBe("failed without a message");
    const image = { type: "image", source: { type: "url", url: "https://x/y.png" } };
    const view = shown([
      prompt,
      assistant(use("a"), use("b")),
      user({ ...result("a", [text("no"), image]), is_error: true }, result("b", [image])),
    ]);
    expect(view[2].content).toEqual([{ ...result("a", [text("no")]), is_error: true }, result("b", [image])]);
  });

  test("neighbours of one role are joined, and the first message is the user's", () => {
    expect(
      shown([
        { role: "assistant", content: "hello" },
        assistant(text("there")),
        { role: "user", content: "a" },
        user(text("b")),
      ]),
    ).toEqual([
      user(text("(The conversation starts here.)")),
      assistant(text("hello"), text("there")),
      user(text("a"), text("b")),
    ]);
  });

  test("text behind a call stands before it, but not across reasoning", () => {
    const view = shown([
      prompt,
      assistant(text("1"), use("a"), text("2"), thinking("s"), use("b"), text("3")),
      user(result("a"), result("b")),
    ]);
    expect(view[1]).toEqual(assistant(text("1"), text("2"), use("a"), thinking("s"), text("3"), use("b")));
  });

  test("a response of the API goes back without what only a response has", () => {
    const response = {
      id: "msg_1",
      type: "message",
      model: "m",
      stop_reason: "end_turn",
      usage: {},
      ...assistant(text("yes")),
    };
    expect(shown([prompt, response, user(text("more"))])[1]).toEqual(assistant(text("yes")));
  });

  test("cache marks: the newest two stay, since they add up otherwise", () => {
    const marked = { ...text("go"), cache_control: { type: "ephemeral" } };
    const view = shown([user(marked), assistant(text("1")), user(marked), assistant(text("2")), user(marked)]);
    expect(view.filter(({ role }) => role === "user")).toEqual([user(text("go")), user(marked), user(marked)]);
  });

  test("a message in the system's role waits for the user's turn to end, and stands before the assistant's", () => {
    const system = { role: "system", content: "be brief" };
    expect(
      shown([system, prompt, assistant(use("a")), system, user(result("a")), assistant(text("b")), system]),
    ).toEqual([prompt, system, assistant(use("a")), user(result("a")), system, assistant(text("b"))]);
    // While results are to come, the user's turn is not over.
    expect(
      shown([prompt, assistant(text("a")), system, assistant(use("a"), use("b")), user(result("a"))]),
    ).toHaveLength(3);
    expect(shown([prompt, system, system])).toEqual([
      prompt,
      { role: "system", content: [text("be brief"), text("be brief")] },
    ]);
  });
});

describe("anthropic: the provider's own calls (R8)", () => {
  const search = { type: "server_tool_use", id: "srv", name: "web_search", input: {} };
  const hits = { type: "web_search_tool_result", tool_use_id: "srv", content: [{ type: "web_search_result" }] };
  const prompt = user(text("go"));

  test("are found, and answered in the same or a later message of the assistant's", () => {
    const messages = [prompt, assistant(search, hits, text("so"))];
    expect(anthropic.calls(messages[1])).toEqual([{ id: "srv", name: "web_search", input: {}, by: "provider" }]);
    expect(anthropic.results(messages[1])).toEqual([{ call: "srv" }]);
    expect(shown(messages)).toEqual(messages);
    // pause_turn: the next response goes on where this one stopped.
    expect(shown([prompt, assistant(search), assistant(hits, text("so"))])).toEqual(messages);
    expect(shown([prompt, assistant(search, use("a")), user(result("a")), assistant(hits, text("so"))])).toHaveLength(
      4,
    );
  });

  test("unfinished: as it is at the end, else its step is left out, and so is a result without its call", () => {
    const messages = [prompt, assistant(text("I search"), search)];
    expect(shown(messages)).toEqual(messages);
    expect(shown(messages, { next: "prompt" })).toEqual([prompt]);
    expect(shown([...messages, user(text("hello?"))])).toEqual([user(text("go"), text("hello?"))]);
    expect(shown([prompt, assistant(hits, text("so"))])).toEqual([prompt, assistant(text("so"))]);
  });

  test("a call in the course of code execution keeps it open, and loses its caller with it", () => {
    const code = { type: "server_tool_use", id: "code", name: "code_execution", input: {} };
    const caller = { type: "code_execution_20260120", tool_id: "code" };
    const messages = [
      prompt,
      assistant(code, { ...use("a"), caller }),
      user(result("a")),
      assistant({ ...use("b"), caller }),
      user(result("b")),
    ];
    expect(shown(messages)).toEqual(messages);
    expect(shown([...messages, user(text("stop"))])).toEqual([
      prompt,
      assistant(use("b")),
      user(result("b"), text("stop")),
    ]);
  });
});

describe("anthropic: the rest", () => {
  test("result: strings stay strings, other values are JSON, errors are marked", () => {
    const content = (outcome: Message): Message =>
      (anthropic.result({ id: "a", name: "x" }, outcome) as Message).content[0];
    expect(content({ value: "plain" })).toEqual(result("a", "plain"));
    expect(content({ value: { n: 1 } })).toEqual(result("a", '{"n":1}'));
    expect(content({ value: undefined })).toEqual(result("a", ""));
    expect(content({ error: new Error("disk full") })).toEqual({ ...result("a", "disk full"), is_error: true });
    expect(content({ error: "" })).toEqual({ ...result("a", "failed without a message"), is_error: true });
  });

  test("incomplete text and boundary", () => {
    expect(anthropic.incomplete(" \n")).toBeNull();
    expect(anthropic.incomplete("half a sent")).toEqual({ role: "assistant", content: "half a sent" });
    expect(anthropic.boundary("stopped")).toEqual({ role: "user", content: "stopped" });
  });

  test("same: equal but for cache marks, also where the mark made a list of a text", () => {
    const mark = { cache_control: { type: "ephemeral" } };
    expect(anthropic.same({ role: "user", content: "a" }, user({ ...text("a"), ...mark }))).toBe(true);
    expect(anthropic.same(user(result("a", [{ ...text("x"), ...mark }])), user(result("a", [text("x")])))).toBe(true);
    expect(anthropic.same({ role: "user", content: "a" }, { role: "user", content: "b" })).toBe(false);
    expect(anthropic.same(assistant(use("a", "f", mark)), assistant(use("a", "f", {})))).toBe(false);
  });

  test("same: members that are null, as the API has them in its answers, say nothing", () => {
    const answer = { role: "assistant", content: [{ type: "text", text: "a", citations: null }], stop_sequence: null };
    expect(anthropic.same(answer as never, { role: "assistant", content: "a" })).toBe(true);
    const told = (block: object) => user({ type: "tool_result", tool_use_id: "a", content: [block] } as never);
    const nulls = { type: "text", text: "a", citations: null, cache_control: null };
    expect(anthropic.same(told(nulls), told({ type: "text", text: "a" })), "in a result").toBe(true);
    const called = (input: unknown) => ({
      role: "assistant",
      content: [{ type: "tool_use", id: "a", name: "x", input }],
    });
    expect(anthropic.same(called({ path: null }) as never, called({}) as never), "what a tool is given").toBe(false);
  });

  test("role, text, check", () => {
    expect(anthropic.role(user(result("a"), text("b")))).toBe("tool");
    expect(anthropic.role(user(text("b")))).toBe("user");
    expect(anthropic.text(user(result("a"), text("b"), text("c")))).toBe("b\nc");
    expect(anthropic.text(assistant(thinking("s"), text("one "), text("two"), use("a"), text("three")))).toBe(
      "one two\nthree",
    );
    expect(anthropic.check(user(text("b")))).toBeNull();
    expect(anthropic.check({ role: "tool", content: "x" } as never)).toBe('role is "tool"');
    expect(anthropic.check(assistant({ type: "tool-call" }))).toMatch(/another dialect/);
  });
});
