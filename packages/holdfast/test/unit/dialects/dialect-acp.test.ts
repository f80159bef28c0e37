import { validateAcp } from "@holdfast/testkit";
import { describe, expect, test } from "vitest";
import { acp } from "../../../src/dialects/acp.ts";
import type { Entry } from "../../../src/dialects/dialect.ts";
import { openStore } from "../../../src/index.ts";
import { entry } from "./dialect-conversations.ts";

// biome-ignore lint/suspicious/noExplicitAny: updates as an agent sends them.
type Update = any;

const chunk = (who: string, text: string): Update => ({
  sessionUpdate: `${who}_chunk`,
  content: { type: "text", text },
});
const prompt = chunk("user_message", "go");
const call = (toolCallId: string, rest: object = {}): Update => ({
  sessionUpdate: "tool_call",
  toolCallId,
  title: "Read a.txt",
  ...rest,
});
const update = (toolCallId: string, rest: object): Update => ({
  sessionUpdate: "tool_call_update",
  toolCallId,
  ...rest,
});
const content = (text: string): Update => [{ type: "content", content: { type: "text", text } }];

function shown(updates: Update[]): Update[] {
  const entries = updates.map((message, at) => entry(message, at)) as Entry<Update>[];
  return acp.arrange(entries, { changedAt: null, next: "prompt" });
}

describe("acp: what session/load replays", () => {
  test("a call is announced once and ended once, with what was said of it in between", () => {
    const end = update("a", { status: "completed", content: content("done") });
    const view = shown([
      prompt,
      call("a", { status: "pending" }),
      update("a", { status: "in_progress", locations: [{ path: "/a" }] }),
      chunk("agent_message", "meanwhile"),
      end,
      update("a", { status: "failed" }),
    ]);
    expect(view).toEqual([
      prompt,
      call("a", { status: "pending" }),
      chunk("agent_message", "meanwhile"),
      { ...end, locations: [{ path: "/a" }] },
    ]);
  });

  test("a call that was born in a request for permission, or in an update", () => {
    const request = { sessionId: "s", toolCall: { toolCallId: "a", title: "Write b.txt", kind: "edit" }, options: [] };
    expect(acp.check(request as Update)).toBeNull();
    expect(acp.calls(request as Update)).toMatchObject([
      { id: "a", name: "Write b.txt", input: undefined, by: "agent" },
    ]);
    expect(
      shown([prompt, request, update("a", { status: "completed" }), update("b", { status: "completed" })]),
    ).toEqual([
      prompt,
      { sessionUpdate: "tool_call", toolCallId: "a", title: "Write b.txt", kind: "edit" },
      update("a", { status: "completed" }),
      { sessionUpdate: "tool_call", toolCallId: "b", title: "b", status: "completed" },
    ]);
  });

  test("an id that is used again is another call: in a later turn, in a later step, and after a kill", () => {
    const end = (text: string) => update("a", { status: "completed", content: content(text) });
    const request = { toolCall: { toolCallId: "a", title: "Read a.txt" }, options: [] };
    const view = shown([
      prompt,
      ...[call("a", { status: "pending" }), request, end("first"), call("a", { status: "completed" })],
      ...[call("a", { status: "pending" }), end("second"), update("a", { status: "failed" })],
      prompt,
      ...[call("a", { status: "completed" }), request, update("a", { status: "failed" })],
      prompt,
      ...[call("a", { status: "in_progress" }), update("a", { status: "failed" })],
    ]);
    expect(view.map(({ toolCallId: id, status }) => [id, status].filter(Boolean).join(" "))).toEqual([
      ...["", "a pending", "a completed", "a_ pending", "a_ completed"],
      ...["", "a__ completed", "a___", "a___ failed"],
      ...["", "a____ in_progress", "a____ failed"],
    ]);
    expect(validateAcp(view)).toEqual([]);
  });

  test("what is only for the moment is left out: notices, terminals, empty chunks", () => {
    const terminal = { type: "terminal", terminalId: "t" };
    const plan = { sessionUpdate: "plan", entries: [] };
    const view = shown([
      prompt,
      { sessionUpdate: "notice", severity: "info", title: "x" },
      chunk("agent_message", ""),
      plan,
      call("a", { content: [terminal] }),
      update("a", { status: "completed", content: [terminal, ...content("out")] }),
    ]);
    expect(view).toEqual([prompt, plan, call("a"), update("a", { status: "completed", content: content("out") })]);
  });

  test("an end that comes after the next prompt stands before it, and is late once the agent has spoken again", () => {
    const end = update("a", { status: "completed" });
    expect(shown([prompt, call("a"), prompt, end])).toEqual([prompt, call("a"), end, prompt]);
    expect(shown([prompt, call("a"), prompt, chunk("agent_message", "so"), end])).toHaveLength(4);
  });

  test("prompts and updates in their envelopes, as they go over the wire", () => {
    const link = { type: "resource_link", name: "a", uri: "file:///a" };
    const asked = { sessionId: "s", prompt: [{ type: "text", text: "go" }, link] };
    const said = { sessionId: "s", update: chunk("agent_message", "yes") };
    expect([asked, said].map((message) => acp.check(message as Update))).toEqual([null, null]);
    expect([acp.role(asked), acp.text(asked), acp.role(said), acp.text(said)]).toEqual([
      "user",
      "go",
      "assistant",
      "yes",
    ]);
    expect(shown([asked, said, { sessionId: "s", update: call("a") }])).toEqual([
      prompt,
      { sessionUpdate: "user_message_chunk", content: link },
      chunk("agent_message", "yes"),
      call("a"),
    ]);
  });

  test("a conversation whose beginning is not shown any more starts with a word in the user's place", () => {
    const plan = { sessionUpdate: "plan", entries: [] };
    const rest = [call("a"), update("a", { status: "completed" }), prompt];
    const beginning = chunk("user_message", "(The conversation starts here.)");
    const view = shown([plan, ...rest]);
    expect(view).toEqual([plan, beginning, ...rest]);
    expect(validateAcp(view)).toEqual([]);
    expect(shown([plan])).toEqual([plan]);
  });

  test("nobody claims that a call did not run because its permission was requested: it may have been given", async () => {
    const store = await openStore("memory:");
    const session = await store.create<Update>({ dialect: "acp" });
    const turn = await session.startTurn(prompt);
    await turn.append({ toolCall: { toolCallId: "a", title: "Write b.txt" }, options: [] });
    await turn.append(update("a", { status: "in_progress" }));
    await turn.abort({ by: "close" });
    expect(session.interruption?.calls.map(({ id, state }) => [id, state])).toEqual([["a", "unrecorded"]]);
    expect(JSON.stringify(session.messages)).not.toContain("did not run");
    await store.close();
  });

  test("an update of a kind that nobody knows yet is kept", () => {
    const unknown = { sessionUpdate: "hologram", data: 1 };
    expect(shown([prompt, unknown])).toEqual([prompt, unknown]);
  });
});

describe("acp: the rest", () => {
  test("a dangling call ends as failed, with the reason", () => {
    const result = acp.result({ id: "a", name: "Read" }, { error: "interrupted, outcome unknown" });
    expect(result).toEqual(update("a", { status: "failed", content: content("interrupted, outcome unknown") }));
    expect(acp.results(result!)).toEqual([{ call: "a" }]);
    expect(acp.result({ id: "a", name: "Read" }, { value: "x" })).toEqual(
      update("a", { status: "completed", content: content("x") }),
    );
  });

  test("calls and results", () => {
    expect(acp.calls(call("a", { name: "read", rawInput: { p: 1 } }))).toEqual([
      { id: "a", name: "read", input: { p: 1 }, by: "agent" },
    ]);
    expect(acp.results(update("a", { status: "in_progress" }))).toEqual([]);
    expect(acp.results(call("a", { status: "completed" }))).toEqual([{ call: "a" }]);
  });

  test("incomplete, boundary, role, text, check", () => {
    expect(acp.incomplete(" ")).toBeNull();
    expect(acp.incomplete("half")).toEqual(chunk("agent_message", "half"));
    expect(acp.role(acp.boundary("stopped"))).toBe("user");
    expect(acp.role(update("a", { status: "completed" }))).toBe("tool");
    expect(acp.role(update("a", { status: "in_progress" }))).toBe("assistant");
    expect(acp.role({ sessionUpdate: "usage_update" })).toBe("other");
    expect(acp.text(chunk("agent_thought", "hm"))).toBe("");
    expect(acp.text(prompt)).toBe("go");
    expect(acp.check({ role: "user", content: "x" } as Update)).not.toBeNull();
    expect(acp.check(call(""))).toBe("toolCallId is missing");
  });
});
