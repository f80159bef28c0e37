import { signResponse, validateAiSdk, validateAnthropic } from "@holdfast/testkit/internal/providers";
import { describe, expect, test } from "vitest";
import { Conversation } from "../../../src/conversation/conversation.ts";
import { aiSdk } from "../../../src/dialects/ai-sdk.ts";
import { anthropic } from "../../../src/dialects/anthropic.ts";
import { gemini } from "../../../src/dialects/gemini.ts";
import { openaiChat } from "../../../src/dialects/openai-chat.ts";
import { openaiResponses } from "../../../src/dialects/openai-responses.ts";
import { interruptionOf, openCalls } from "../../../src/view/interruption.ts";
import { Book } from "./fold-book.ts";

const user = (content: string) => ({ role: "user", content });
const asks = (...ids: string[]) => ({
  role: "assistant",
  content: null,
  tool_calls: ids.map((id) => ({ id, type: "function", function: { name: "read", arguments: "{}" } })),
});
const says = (content: string) => ({ role: "assistant", content });
const tells = (id: string, content: string) => ({ role: "tool", tool_call_id: id, content });
const chat = (options: { intents?: boolean } = {}): Book => {
  const book = new Book(openaiChat, options);
  book.prompt(user("go"));
  return book;
};
const states = (book: Book): string[] => openCalls(book.conversation).map(({ state }) => state);
const contents = (view: readonly unknown[]): unknown[] =>
  (view as { content: unknown }[]).map(({ content }) => content);

describe("patches (C31)", () => {
  test("in any order, before their message too", () => {
    const book = chat();
    book.write({ kind: "patch", id: "later", metadata: { a: 1, b: { c: 1, d: 2 } } });
    book.write({ kind: "patch", id: "later", metadata: { b: { c: null }, e: "x" } });
    book.write({ kind: "message", id: "later", turn: 1, step: "later", message: says("hi"), metadata: { a: 0, z: 9 } });
    expect(book.conversation.find("later")!.entry.metadata).toEqual({ a: 1, b: { d: 2 }, e: "x", z: 9 });
    book.write({ kind: "patch", id: "later", metadata: { a: null } });
    expect(book.conversation.find("later")!.entry.metadata).toEqual({ b: { d: 2 }, e: "x", z: 9 });
  });

  test("what hides reaches the model at the next turn, with the whole step and its results", () => {
    const book = chat();
    const [id] = book.say([asks("call_1"), says("beside it")]);
    book.say([tells("call_1", "42")]);
    book.say([says("Done.")]);
    const before = book.still();
    book.write({ kind: "patch", id, metadata: { hiddenFromModel: true } });
    expect(book.still()).toEqual(before);
    book.write({ kind: "turn.ended", turn: 1, outcome: "completed" });
    book.prompt(user("next"));
    expect(contents(book.live())).toEqual(["go", "Done.", "next"]);
    book.write({ kind: "patch", id, metadata: { hiddenFromModel: null } });
    book.prompt(user("last"));
    expect(contents(book.live())).toContain("42");
  });

  test("what is hidden from the beginning is never shown, and parts nothing", () => {
    const book = chat();
    book.say([asks("call_1", "call_2")]);
    book.say([tells("call_2", "2")]);
    book.say([says("a note of the application's")], { metadata: { hiddenFromModel: true } });
    book.say([tells("call_1", "1")]);
    expect(contents(book.live())).toEqual(["go", null, "1", "2"]);
  });

  test("the prompt of the turn is as it is now", () => {
    const book = chat();
    const { id } = book.conversation.turn!.prompt;
    book.write({ kind: "patch", id, metadata: { seen: true } });
    expect(interruptionOf(book.conversation)!.prompt.metadata).toEqual({ seen: true });
  });
});

describe("where the application changes the past (R1, R12)", () => {
  test("an edit is shown from the next turn on, or at once with `now`", () => {
    for (const now of [undefined, true]) {
      const book = chat();
      const [id] = book.say([says("a long story")]);
      book.say([user("go on")]);
      const shown = [{ id: "s1", message: says("in short") }];
      book.write({ kind: "edit", id: "e1", ids: [id], shown, reason: "pruned", ...(now ? { now } : {}) });
      expect(contents(book.live())).toEqual(["go", now ? "in short" : "a long story", "go on"]);
      book.prompt(user("next"));
      expect(contents(book.live()).slice(0, 3)).toEqual(["go", "in short", "go on"]);
      expect(book.conversation.find(id!)!.entry.replacedBy).toBe("s1");
    }
  });

  test("with a call goes its own result, and not the one of a call with the same id", () => {
    const book = chat();
    const [first] = book.say([asks("call_0")]);
    const [second] = book.say([asks("call_0")]);
    // The newest one without a result comes first.
    book.say([tells("call_0", "of the second")]);
    book.say([tells("call_0", "of the first")]);
    book.write({ kind: "patch", id: second, metadata: { hiddenFromModel: true } });
    book.prompt(user("next"));
    expect(book.conversation.find(first!)!.hidden).toBe(false);
    const sent = JSON.stringify(book.live());
    expect(sent).toContain("of the first");
    expect(sent).not.toContain("of the second");
  });

  test("reasoning of another model does not come back with that model (R4)", () => {
    const book = new Book(anthropic);
    for (const model of ["one", "two", "one", "two"]) {
      book.prompt(user("go"));
      const thinks = [
        { type: "thinking", thinking: "hm" },
        { type: "text", text: `I am ${model}` },
      ];
      // Which model answered is known only with the answer.
      const content = signResponse({ messages: book.live() }, thinks);
      book.say([{ role: "assistant", content }], { model });
      book.write({ kind: "turn.ended", turn: book.conversation.turns, outcome: "completed" });
      expect(validateAnthropic([...book.still(), user("next")])).toEqual([]);
      expect(JSON.stringify(book.still()).split('"thinking":"hm"')).toHaveLength(2);
    }
  });
});

describe("late records (C14)", () => {
  test("stay with their turn, and are not shown to the model", () => {
    const book = chat({ intents: true });
    const [message] = book.say([asks("call_1")]);
    book.started(message!, 0, "call_1", "read");
    book.write({ kind: "turn.ended", turn: 1, outcome: "aborted", by: "user" });
    book.prompt(user("next"));
    const sent = book.live();
    book.write({ kind: "tool.ended", id: "late", turn: 1, call: "call_1", message, index: 0, name: "read", value: 1 });
    book.write({ kind: "usage", turn: 1, usage: { outputTokens: 3 } });
    expect(book.conversation.find("late")!.entry).toMatchObject({ turn: 1, late: true });
    expect(book.live()).toEqual(sent);
    expect(book.conversation.usageByTurn.get(1)).toEqual({ outputTokens: 3 });
  });

  test("text beside late results is not lost", () => {
    const book = new Book(anthropic);
    const call = (id: string) => ({ role: "assistant", content: [{ type: "tool_use", id, name: "read", input: {} }] });
    const result = (id: string) => ({ type: "tool_result", tool_use_id: id, content: "x" });
    book.prompt(user("go"));
    book.say([call("one")]);
    book.say([{ role: "user", content: [result("one")] }]);
    book.say([call("two")]);
    book.say([{ role: "user", content: [result("two")] }]);
    book.say([{ role: "user", content: [result("one"), { type: "text", text: "and stop then" }] }]);
    expect(JSON.stringify(book.live())).toContain("and stop then");
  });

  test("a result of the provider's own may come in a later section (R8)", () => {
    const book = new Book(aiSdk);
    book.prompt(user("go"));
    const search = { type: "tool-call", toolCallId: "srv", toolName: "search", input: {}, providerExecuted: true };
    const output = { type: "json", value: [] };
    const asked = { type: "tool-call", toolCallId: "own", toolName: "read", input: {} };
    book.say([{ role: "assistant", content: [search, asked] }]);
    book.say([{ role: "tool", content: [{ type: "tool-result", toolCallId: "own", toolName: "read", output }] }]);
    book.say([
      {
        role: "assistant",
        content: [
          { type: "text", text: "wait" },
          { ...asked, toolCallId: "own2" },
        ],
      },
    ]);
    const hits = { type: "tool-result", toolCallId: "srv", toolName: "search", output };
    const [id] = book.say([{ role: "tool", content: [hits] }]);
    expect(book.conversation.find(id!)!.entry.late).toBeUndefined();
  });
});

describe("drafts (R10, C36)", () => {
  const draft = (id: string, n: number, ...parts: object[]) => ({ kind: "draft", id, turn: 1, n, parts });

  test("parts interleave", () => {
    const book = chat();
    book.write(draft("d", 0, { part: 2, call: { id: "b", name: "write" }, input: '{"b' }, { part: 0, text: "I " }));
    book.write(draft("d", 1, { part: 1, call: { id: "a", name: "read" }, input: '{"a' }, { part: 0, text: "think" }));
    book.write(draft("d", 2, { part: 2, input: '":1' }, { part: 3, reasoning: "hm" }));
    expect(book.conversation.draft!.content).toEqual({
      id: "d",
      text: "I think",
      reasoning: "hm",
      calls: [
        { id: "a", name: "read", input: '{"a' },
        { id: "b", name: "write", input: '{"b":1' },
      ],
      gap: false,
    });
  });

  test("what is lost cuts the text there", () => {
    const book = chat();
    book.write(draft("d", 0, { part: 0, text: "one " }));
    book.lose();
    book.write(draft("d", 2, { part: 0, text: "three" }));
    expect(book.conversation.draft!.content).toMatchObject({ text: "one ", gap: true });
  });

  test("another draft, or an answer, ends it for good", () => {
    const book = chat();
    book.write(draft("first", 0, { part: 0, text: "failed attempt" }));
    book.write(draft("second", 0, { part: 0, text: "again" }));
    book.write(draft("first", 1, { part: 0, text: " goes on" }));
    expect(book.conversation.draft!.content).toMatchObject({ id: "second", text: "again", gap: false });
    book.say([says("Done.")]);
    book.write(draft("second", 1, { part: 0, text: "too late" }));
    expect(book.conversation.draft).toBeNull();
  });

  test("discarded, its words never come back", () => {
    const book = chat();
    book.write(draft("d", 0, { part: 0, text: "no" }), { ...draft("d", 1), discarded: "retry" });
    book.write(draft("d", 2, { part: 0, text: "no no" }));
    expect(interruptionOf(book.conversation)!.draft).toBeNull();
  });

  test("a checkpoint of it goes on where it was", () => {
    const book = chat();
    book.write(draft("d", 0, { part: 1, text: "b" }, { part: 0, text: "a" }));
    const checkpoint = { dialect: "openai-chat", turns: 1, draft: book.conversation.draft!.checkpoint() };
    book.write({ kind: "epoch", reason: "compaction", carried: 0, checkpoint });
    book.write(draft("d", 1, { part: 0, text: "A" }));
    expect(book.conversation.draft!.content).toMatchObject({ text: "aAb", gap: false });
  });
});

describe("tools that start before their call is recorded (R9)", () => {
  test("started and ended, then the message", () => {
    const book = chat({ intents: true });
    book.started(null, 0, "call_2", "read");
    book.started(null, 0, "call_1", "read");
    const id = book.ended(null, 0, "call_2", "read", { value: "early" });
    const [message] = book.say([asks("call_1", "call_2")]);
    expect(openCalls(book.conversation)).toMatchObject([{ id: "call_1", message, index: 0, state: "outcome-unknown" }]);
    expect(book.conversation.find(id)!.entry).toMatchObject({ call: { message, index: 1 } });
    expect(contents(book.live(0))).toEqual(["go", null, expect.stringContaining("Still running"), "early"]);
  });

  test("an end that names no message is for the call that its id means", () => {
    const book = chat({ intents: true });
    book.started(null, 0, "call_1", "read");
    book.say([asks("call_1")]);
    book.ended(null, 0, "call_1", "read", { value: "there" });
    expect(contents(book.live())).toEqual(["go", null, "there"]);
  });
});

describe("call ids that repeat or are missing (R9)", () => {
  test("results that are bound to their call go to that call", () => {
    const book = chat({ intents: true });
    const [message] = book.say([asks("call_0", "call_0")]);
    book.ended(message!, 1, "call_0", "read", { value: "second" });
    expect(openCalls(book.conversation).map(({ index }) => index)).toEqual([0]);
    book.prompt(user("next"));
    expect(contents(book.live()).slice(2, 4)).toEqual([expect.stringContaining("never started"), "second"]);
  });

  test("two messages in a row with one id: the result is of the call that it was started for", () => {
    const book = chat({ intents: true });
    const [first] = book.say([asks("call_0")]);
    const [second] = book.say([asks("call_0")]);
    book.ended(first!, 0, "call_0", "read", { value: "first" });
    book.ended(second!, 0, "call_0", "read", { value: "second" });
    expect(states(book)).toEqual([]);
    expect(book.conversation.items.every(({ entry }) => entry.late === undefined)).toBe(true);
    const sent = JSON.stringify(book.live());
    expect(sent.indexOf("first")).toBeLessThan(sent.indexOf("second"));
  });

  test("the message that holds two results takes the place of both that were recorded before it (R6)", () => {
    const book = new Book(anthropic, { intents: true });
    const call = { type: "tool_use", id: "call_0", name: "read", input: {} };
    const result = (content: string) => ({ type: "tool_result", tool_use_id: "call_0", content });
    book.prompt(user("go"));
    const [message] = book.say([{ role: "assistant", content: [call, call] }]);
    book.ended(message!, 0, "call_0", "read", { value: "raw 1" });
    book.ended(message!, 1, "call_0", "read", { value: "raw 2" });
    book.say([{ role: "user", content: [result("nice 1"), result("nice 2")] }]);
    const sent = JSON.stringify(book.live());
    expect(sent).toMatch(/nice 1.*nice 2/);
    expect(sent).not.toContain("raw");
  });

  test("without ids, too", () => {
    const book = new Book(gemini, { intents: true });
    book.prompt({ role: "user", parts: [{ text: "go" }] });
    const [message] = book.say([{ role: "model", parts: [{ functionCall: { name: "read", args: {} } }] }]);
    book.ended(message!, 0, "read#0", "read", { value: "raw" });
    const functionResponse = { name: "read", response: { output: "nice" } };
    book.say([{ role: "user", parts: [{ functionResponse }] }]);
    const sent = JSON.stringify(book.live());
    expect(sent).toContain("nice");
    expect(sent).not.toContain("raw");
    expect(book.conversation.items).toHaveLength(3);
  });

  test("a repair keeps its id before and after it is recorded (R1)", () => {
    const book = chat({ intents: true });
    const [message] = book.say([asks("call_0", "call_0")]);
    const still = book.still();
    const entries = book.prompt(user("next"));
    expect(entries.map(({ id }) => id).slice(0, 2)).toEqual([`${message}~0`, `${message}~1`]);
    expect(book.live().slice(0, still.length)).toEqual(still);
  });
});

describe("what can be said of a call that was not started (R5)", () => {
  test("a record that is missing might have been its start", () => {
    const book = chat({ intents: true });
    book.say([asks("call_1")]);
    expect(states(book)).toEqual(["never-started"]);
    book.lose();
    book.write({ kind: "note", name: "n", value: 1 });
    expect(states(book)).toEqual(["unrecorded"]);
  });

  test("or the mark of a writer that records none", () => {
    const book = chat({ intents: true });
    book.lose();
    book.resume();
    book.say([asks("call_1")]);
    expect(states(book)).toEqual(["unrecorded"]);
  });

  test("all who worked on the turn must record starts", () => {
    const book = chat({ intents: true });
    book.open({ intents: false });
    book.resume();
    book.open({ intents: true });
    book.resume();
    book.say([asks("call_1")]);
    expect(states(book)).toEqual(["unrecorded"]);
    book.open({ intents: true });
    book.prompt(user("next"));
    book.say([asks("call_2")]);
    expect(states(book)).toEqual(["never-started"]);
  });

  test("a start that says so counts for its writer", () => {
    const book = chat();
    const [message] = book.say([asks("call_1", "call_2")]);
    book.started(message!, 0, "call_1", "read", { intents: true });
    expect(states(book)).toEqual(["outcome-unknown", "never-started"]);
  });

  test("what a later process does to other things is no sign of life of the turn", () => {
    const book = chat();
    const { lastAt } = book.conversation.turn!;
    book.open();
    book.write({ kind: "note", name: "n", value: 1 }, { kind: "signal", signal: "SIGTERM" });
    const interruption = interruptionOf(book.conversation)!;
    expect(interruption).toMatchObject({ lastAt, how: { kind: "killed" } });
  });

  test("the start of a turn that was lost to damage", () => {
    const book = chat();
    book.write({ kind: "turn.ended", turn: 1, outcome: "completed" });
    book.lose();
    book.write({ kind: "message", id: "p2", turn: 2, step: "p2", message: user("second") });
    expect(interruptionOf(book.conversation)).toMatchObject({ turn: 2, prompt: { message: user("second") } });
    expect(book.conversation.turns).toBe(2);
  });
});

describe("what cannot be phrased (R8)", () => {
  const shot = {
    type: "computer_call",
    id: "cu_1",
    call_id: "c1",
    action: { type: "screenshot" },
    status: "completed",
  };
  const picture = {
    type: "computer_call_output",
    call_id: "c1",
    output: { type: "computer_screenshot", image_url: "data:," },
  };

  test("waits for its message, which is shown", () => {
    const book = new Book(openaiResponses, { intents: true });
    book.prompt(user("look"));
    const [message] = book.say([shot]);
    book.started(message!, 0, "c1", "computer_call");
    book.ended(message!, 0, "c1", "computer_call", { value: "png" });
    expect(states(book)).toEqual(["outcome-unknown"]);
    expect(JSON.stringify(book.live())).not.toContain("computer_call");
    book.say([picture]);
    expect(JSON.stringify(book.live())).toContain("computer_screenshot");
  });

  test("is not taken for never started, also where its start was not recorded", () => {
    const book = new Book(openaiResponses, { intents: true });
    book.prompt(user("look"));
    const [message] = book.say([shot]);
    book.ended(message!, 0, "c1", "computer_call", { value: "png" });
    expect(states(book)).toEqual(["outcome-unknown"]);
    book.prompt(user("next"));
    expect(JSON.stringify(book.live())).not.toContain("computer_call");
  });
});

describe("approvals of the AI SDK (R7, C37)", () => {
  const call = { type: "tool-call", toolCallId: "c1", toolName: "deploy", input: {} };
  const request = { type: "tool-approval-request", approvalId: "a1", toolCallId: "c1" };
  const response = (approved: boolean) => ({
    role: "tool",
    content: [{ type: "tool-approval-response", approvalId: "a1", approved }],
  });
  const waiting = (): Book => {
    const book = new Book(aiSdk, { intents: true });
    book.prompt(user("go"));
    book.say([{ role: "assistant", content: [call, request] }]);
    return book;
  };
  const judged = (view: readonly unknown[], isWaiting = false) => validateAiSdk(view, { waiting: isWaiting });

  test("nobody has decided: it waits, and stays open while the turn does", () => {
    const book = waiting();
    expect(states(book)).toEqual(["awaiting"]);
    expect(judged(book.live(), true)).toEqual([]);
    expect(JSON.stringify(book.live())).not.toContain("tool-result");
    book.prompt(user("next"));
    expect(judged(book.live())).toEqual([]);
    expect(JSON.stringify(book.live())).toContain("not approved, and did not run");
  });

  test("approved and not run: never started, and left for the SDK to run", () => {
    const book = waiting();
    book.say([response(true)]);
    expect(states(book)).toEqual(["never-started"]);
    expect(judged(book.live())).toEqual([]);
    expect(JSON.stringify(book.live())).not.toContain("tool-result");
    book.open({ intents: true });
    book.resume({ calls: "rerun" });
    expect(judged(book.live())).toEqual([]);
    expect(JSON.stringify(book.live())).not.toContain("tool-result");
  });

  test("approved, started, and then the process died: it is not run twice", () => {
    const book = waiting();
    book.say([response(true)]);
    book.started("m2", 0, "c1", "deploy");
    book.open({ intents: true });
    expect(states(book)).toEqual(["outcome-unknown"]);
    book.resume({ calls: "rerun" });
    expect(judged(book.live())).toEqual([]);
    expect(JSON.stringify(book.live())).toContain("outcome unknown");
  });

  test("denied: closed as the SDK closes it, and never run", () => {
    for (const goesOn of [(book: Book) => book.prompt(user("next")), (book: Book) => book.resume({ calls: "rerun" })]) {
      const book = waiting();
      book.say([response(false)]);
      expect(states(book)).toEqual(["awaiting"]);
      book.open({ intents: true });
      goesOn(book);
      expect(states(book)).toEqual([]);
      expect(judged(book.live())).toEqual([]);
      expect(JSON.stringify(book.live())).toContain("execution-denied");
    }
  });

  test("the first decision counts", () => {
    const book = waiting();
    book.say([response(false)]);
    book.say([response(true)]);
    expect(states(book)).toEqual(["awaiting"]);
  });
});

test("usage adds up, by turn and by currency", () => {
  const book = chat();
  const cost = (amount: number, currency: string) => ({ cost: { amount, currency } });
  book.write({ kind: "usage", turn: 1, usage: { inputTokens: 1, ...cost(2, "EUR") } });
  book.write({ kind: "usage", turn: 1, usage: { inputTokens: 2, outputTokens: 5, ...cost(3, "USD") } });
  book.write({ kind: "usage", turn: 2, usage: { inputTokens: "many", ...cost(4, "EUR") } });
  const { usage, usageByTurn } = book.conversation;
  expect(usage).toEqual({
    inputTokens: 3,
    outputTokens: 5,
    ...cost(6, "EUR"),
    otherCosts: [{ amount: 3, currency: "USD" }],
  });
  expect(usageByTurn.get(2)).toEqual(cost(4, "EUR"));
});

test("the view of a suspended turn: accepted as it stands, for whoever looks", () => {
  const book = chat({ intents: true });
  book.say([asks("call_1", "call_2")]);
  book.write({ kind: "turn.suspended", turn: 1, reason: "approval", calls: ["call_2"] });
  expect(contents(book.still())).toEqual([
    "go",
    null,
    expect.stringContaining("never started"),
    expect.stringContaining("not approved"),
  ]);
  expect(interruptionOf(book.conversation)).toMatchObject({
    how: { kind: "suspended", reason: "approval" },
    calls: [{ state: "never-started" }, { state: "awaiting" }],
  });
});

test("a dialect that is not known is named, and one that was given along is used", () => {
  const record = { seq: 1, at: "", crc: "", kind: "session", dialect: "own" };
  const message = { seq: 2, at: "", crc: "", kind: "message", id: "a", turn: 1, step: "a", message: user("x") };
  const unknown = new Conversation(() => null);
  unknown.add(record);
  expect(() => unknown.add(message)).toThrow(
    expect.objectContaining({ code: "DIALECT_UNKNOWN", facts: { dialect: "own" } }),
  );
  const given = new Conversation(() => null, openaiChat);
  given.add(record);
  given.add(message);
  expect(given.attributes.dialect).toBe("own");
  expect(given.items).toHaveLength(1);
});

test("P9: an epoch whose attributes are lost is read in the dialect that its checkpoint names", () => {
  const conversation = new Conversation((name) => (name === "openai-chat" ? openaiChat : null));
  const checkpoint = {
    ...{ dialect: "openai-chat", intents: false, turns: 1, started: [], queue: [], notes: {} },
    ...{ usage: {}, usageByTurn: [] as [number, object][] },
  };
  const at = "2026-11-16T00:00:00.000Z";
  conversation.add({ kind: "epoch", seq: 2, at, reason: "compaction", carried: 1, checkpoint });
  conversation.add({ kind: "message", seq: 4, at, id: "m", turn: 1, step: "m", message: user("go"), carried: true });
  expect(conversation.dialect.name).toBe("openai-chat");
  expect(conversation.items.map(({ entry }) => entry.id)).toEqual(["m"]);
});
