import { existsSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import type { ModelMessage } from "ai";
import type { Entry } from "holdfast";
import { expect, test } from "vitest";
import { estimateTokens, fitWindow, newestEntries } from "../../../src/agent/compaction.ts";
import { call, heard, Stage, text } from "../host/host-stage.ts";

test("an answer with nothing in it ends the turn, also behind results: the model is not asked for ever", async () => {
  await using stage = new Stage();
  writeFileSync(join(stage.work, "a.txt"), "a\n");
  const chat = await stage.chat([[call("c1", "read", { path: "a.txt" })], [], [text("too much")]]);
  const { events } = heard(chat);
  await chat.prompt("read a.txt");
  await chat.settled();
  expect(chat.model.prompts).toHaveLength(2);
  expect(events.at(-1)).toMatchObject({ type: "turn.ended", outcome: "completed" });
});

test("calls of an answer that was cut off at its longest do not run, and the model is told why", async () => {
  await using stage = new Stage();
  const cut = [call("c1", "write", { path: "a.txt", content: "half" }), call("c2", "list")];
  const chat = await stage.chat([{ content: cut, finish: "length" }, [text("shorter then")]], {
    config: { allow: ["write"] },
  });
  await chat.prompt("write it");
  await chat.settled();
  expect(existsSync(join(stage.work, "a.txt"))).toBe(false);
  expect(JSON.stringify(chat.model.prompts[1]).match(/Not run: the answer reached the output limit/g)).toHaveLength(2);
  expect(chat.state.items.at(-1)).toMatchObject({ kind: "answer", text: "shorter then" });
});

test("an answer that was cut off at its longest is not passed off as a whole one", async () => {
  await using stage = new Stage();
  const chat = await stage.chat([{ content: [text("half an ans")], finish: "length" }]);
  const { events } = heard(chat);
  await chat.prompt("tell me all");
  await chat.settled();
  expect(events.find(({ type }) => type === "notice")).toMatchObject({
    level: "warning",
    text: expect.stringContaining("cut off"),
  });
});

function entry(id: string, message: ModelMessage): Entry<ModelMessage> {
  return { id, message, step: id, seq: 1, turn: 1, at: "", metadata: {} } as unknown as Entry<ModelMessage>;
}

const result = (id: string, characters: number): ModelMessage => ({
  role: "tool",
  content: [
    { type: "tool-result", toolCallId: id, toolName: "read", output: { type: "text", value: "x".repeat(characters) } },
  ],
});
const asked = (...ids: string[]): ModelMessage => ({
  role: "assistant",
  content: ids.map((toolCallId) => ({ type: "tool-call", toolCallId, toolName: "read", input: {} })),
});

test("compaction keeps a response with all of its results, or nothing of it: else the results that do not fit come back with the one that does", () => {
  const entries = [
    entry("p", { role: "user", content: "read" }),
    entry("a", asked("c1", "c2")),
    entry("r1", result("c1", 900)),
    entry("r2", result("c2", 100)),
  ];
  expect(newestEntries(entries, 700).map(({ id }) => id)).toEqual([]);
  expect(newestEntries(entries, 2000).map(({ id }) => id)).toEqual(["p", "a", "r1", "r2"]);
  expect(
    newestEntries([...entries, entry("b", asked("c3")), entry("r3", result("c3", 10))], 700).map(({ id }) => id),
  ).toEqual(["b", "r3"]);
});

test("what is summed up fits into the window: results are shortened, then what was written; nothing keeps a signature of what was changed (R1)", () => {
  const signed = { anthropic: { signature: "of all that stands before" } };
  const messages: ModelMessage[] = [
    { role: "user", content: "go" },
    asked("c1"),
    result("c1", 20_000),
    {
      role: "assistant",
      content: [
        { type: "reasoning", text: "so", providerOptions: signed },
        {
          type: "tool-call",
          toolCallId: "c2",
          toolName: "write",
          input: { path: "a.txt", content: "y".repeat(20_000) },
          providerOptions: signed,
        },
      ],
    },
    result("c2", 10),
    { role: "assistant", content: [{ type: "reasoning", text: "only this", providerOptions: signed }] },
  ];
  expect(fitWindow(messages, 100_000), "it fits").toBe(messages);
  const short = fitWindow(messages, 10_000);
  expect(JSON.stringify(short)).not.toMatch(/signature|reasoning/);
  expect(JSON.stringify(short), "the results were enough").toContain("y".repeat(20_000));
  const shorter = fitWindow(messages, 1_000);
  expect(estimateTokens(shorter)).toBeLessThan(800);
  expect(shorter.map(({ role }) => role)).toEqual(["user", "assistant", "tool", "assistant", "tool"]);
  expect(JSON.stringify(shorter)).toContain('"path":"a.txt"');
});

test("results that fill the window are noticed before the model is asked, not by its refusal", async () => {
  await using stage = new Stage();
  writeFileSync(join(stage.work, "a.txt"), `${"word ".repeat(100)}\n`.repeat(80));
  const chat = await stage.chat(
    [[call("c1", "read", { path: "a.txt" })], [text("The task: read a.txt. It was read.")], [text("done")]],
    { windowTokens: 10_000 },
  );
  const { events } = heard(chat);
  await chat.prompt("read a.txt");
  await chat.settled();
  expect(events.filter(({ type }) => type === "replaced")).toHaveLength(1);
  expect(JSON.stringify(chat.model.prompts[2])).not.toContain("word word");
  expect(JSON.stringify(chat.model.prompts[2])).toContain("It was read.");
  expect(events.at(-1)).toMatchObject({ type: "turn.ended", outcome: "completed" });
});

test("a summary is asked for with the tools named that were called, which may not be called then: without their names a provider refuses", async () => {
  await using stage = new Stage();
  writeFileSync(join(stage.work, "a.txt"), "a\n");
  const chat = await stage.chat([[call("c1", "read", { path: "a.txt" })], [text("read")], [text("It was read.")]]);
  await chat.prompt("read a.txt");
  await chat.settled();
  await chat.compact();
  expect(chat.state.usage, "it was paid for, though no turn was open").toMatchObject({ inputTokens: 21 });
  const { tools, toolChoice } = chat.model.doGenerateCalls.at(-1)!;
  expect(tools?.map(({ name }) => name)).toEqual(["read"]);
  expect(toolChoice).toEqual({ type: "none" });
});

test("a summary with nothing in it replaces nothing", async () => {
  await using stage = new Stage();
  const chat = await stage.chat([[text("hello")], [], [text("again")]]);
  await chat.prompt("hello");
  await chat.settled();
  await expect(chat.compact()).rejects.toThrow(/summary/);
  expect(chat.state.items.map((item) => item.kind)).toEqual(["prompt", "answer"]);
  await chat.prompt("more");
  await chat.settled();
  expect(JSON.stringify(chat.model.prompts.at(-1))).toContain("hello");
});
