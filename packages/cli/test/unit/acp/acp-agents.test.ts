import { expect, test } from "vitest";
import { AGENTS } from "../../acp-agents/agents.ts";
import { faultsOf, type Outcome } from "../../acp-agents/cell.ts";
import { linesNotRecorded } from "../../acp-agents/recorded-lines.ts";
import { type Shown, shownBy } from "../../acp-agents/shown.ts";
import { tableOf } from "../../acp-agents/table.ts";

// The drill with real agents runs in the long tier (packages/cli/test/acp-agents). Its judges are tested here.

const update = (sessionId: string, said: object): string =>
  JSON.stringify({ jsonrpc: "2.0", method: "session/update", params: { sessionId, update: said } });
const text = (words: string): object => ({
  sessionUpdate: "agent_message_chunk",
  content: { type: "text", text: words },
});
const call = (sessionUpdate: string, rest: object): object => ({ sessionUpdate, toolCallId: "call_1", ...rest });

test("what an editor shows: text in one piece, a call by its last state, and the same id again as another call", () => {
  const asked = { toolCall: { toolCallId: "other", title: "Write" }, options: [] };
  const lines = [
    ...[update("s", text("one ")), update("s", text("two")), update("t", text("not this")), "no message"],
    update("s", call("tool_call", { title: "Read", status: "pending" })),
    update("s", call("tool_call_update", { title: "Read a", status: "completed" })),
    update("s", call("tool_call", { title: "Read b", status: "in_progress" })),
    JSON.stringify({ id: 0, method: "session/request_permission", params: { sessionId: "s", ...asked } }),
  ];
  expect(shownBy(lines, "s")).toEqual({
    ...{ prompts: [], text: "one two", thoughts: "" },
    tools: [
      { title: "Read a", status: "completed", text: "" },
      { title: "Read b", status: "in_progress", text: "" },
      { title: "Write", status: "pending", text: "" },
    ],
  });
});

test("a line is recorded if the journal holds it, text also in other pieces", () => {
  const lines = [
    ...[update("s", text("one ")), update("s", text("two")), update("t", text("not this"))],
    update("s", call("tool_call", { title: "Read", status: "pending" })),
  ];
  const records = [
    { messages: [text("one two")] },
    { messages: [call("tool_call", { status: "pending", title: "Read" })] },
  ];
  expect(linesNotRecorded(lines, "s", records)).toEqual([]);
  expect(linesNotRecorded(lines, "s", records.slice(0, 1))).toEqual(lines.slice(3));
  expect(linesNotRecorded(lines, "s", [{ messages: [text("one")] }, records[1]])).toEqual(lines.slice(0, 2));
});

const shown: Shown = {
  ...{ prompts: [], text: "A heron", thoughts: "" },
  tools: [
    { title: "Read", status: "completed", text: "" },
    { title: "Write", status: "pending", text: "" },
  ],
};
const loaded: Shown = {
  ...{ prompts: ["first", "second"], text: "A heron is", thoughts: "Restored" },
  tools: [shown.tools[0]!, { title: "Write", status: "failed", text: "Interrupted" }],
};
const whole: Outcome = {
  cell: { agent: AGENTS[0]!, layout: "wrapped", kill: "the group", state: "permission open" },
  ...{ prompts: ["first", "second"], seen: shown, loaded, late: 0, unrecorded: [], isAnswered: true, left: [] },
  stayed: null,
};

test.each<[string, Partial<Outcome>, RegExp]>([
  ["a prompt is missing", { loaded: { ...loaded, prompts: ["first"] } }, /^prompts/],
  ["text is missing", { loaded: { ...loaded, text: "A her" } }, /^text/],
  ["a call is missing", { loaded: { ...loaded, tools: loaded.tools.slice(0, 1) } }, /^tools/],
  ["a call stays open", { loaded: { ...loaded, tools: shown.tools } }, /^open calls/],
  [
    "an end is another one",
    { loaded: { ...loaded, tools: loaded.tools.map((tool) => ({ ...tool, status: "failed" })) } },
    /^call 0 was completed/,
  ],
  ["it cannot be loaded", { loaded: "no such session" }, /^the session was not loaded/],
  ["updates come after the answer", { late: 2 }, /^2 updates came after/],
  ["a line is not recorded", { unrecorded: ["{}"] }, /^1 lines are not recorded/],
  ["the next prompt is not answered", { isAnswered: false }, /^the next prompt was not/],
  ["a process is left behind", { left: ["sleep 1000"] }, /^processes were left behind: sleep/],
  ["the editor is not told", { stayed: { told: "", isAnswered: true } }, /^the editor was told/],
  ["the editor cannot go on", { stayed: { told: "The agent has ended", isAnswered: false } }, /in the same editor/],
])("the drill notices if %s", (_, change, fault) => {
  expect(faultsOf(whole)).toEqual([]);
  expect(faultsOf({ ...whole, ...change })).toEqual(expect.arrayContaining([expect.stringMatching(fault)]));
});

test("the table says once what is the same after each kill, and names the kills where it is not", () => {
  const alone = { ...whole, cell: { ...whole.cell, layout: "alone" as const } };
  const table = tableOf([
    whole,
    { ...whole, cell: { ...whole.cell, kill: "the proxy alone" } },
    { ...alone, loaded: "it cannot load", left: ["sleep"] },
    { ...alone, cell: { ...alone.cell, kill: "the agent alone" }, loaded: { ...loaded, prompts: [] } },
  ]);
  const name = "the SDK's example agent 1.9.0";
  expect(table.split("\n").slice(2)).toEqual([
    `| ${name}, alone | not run | not run | the group: nothing: it cannot load, **1 process left**; the agent alone: 2 of 2 prompts missing | not run |`,
    `| ${name}, wrapped | not run | not run | everything | not run |`,
  ]);
});
