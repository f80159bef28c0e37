import { describe, expect, test } from "vitest";
import { anthropic } from "../../../src/dialects/anthropic.ts";
import { openaiResponses } from "../../../src/dialects/openai-responses.ts";
import { planNew, type TurnNow } from "../../../src/sync/new-messages.ts";
import type { Made } from "./sync-agents.ts";

const user = { role: "user", content: "u" };
const system = { role: "system", content: "s" };
const answer = { role: "assistant", content: "a" };
const call = { role: "assistant", content: [{ type: "tool_use", id: "c", name: "read", input: {} }] };
const result = { role: "user", content: [{ type: "tool_result", tool_use_id: "c", content: "r" }] };
const search = { type: "server_tool_use", id: "p", name: "web_search", input: {} };
const hits = { type: "web_search_tool_result", tool_use_id: "p", content: [] };

function plan(messages: Made[], turn: TurnNow, open = false, known = 0): string {
  return planNew(messages, known, { dialect: anthropic, turn, open })
    .map((step) => {
      const words = "from" in step ? `${step.kind} ${step.from}-${step.to}` : step.kind;
      return "end" in step ? `${words} and end` : words;
    })
    .join(", ");
}

describe("what new messages of an array become (R14)", () => {
  const rows: [what: string, messages: Made[], turn: TurnNow, open: boolean, steps: string][] = [
    ["nothing", [], "over", false, ""],
    ["a prompt begins a turn", [user], "none", false, "start 0-1"],
    ["what the system says goes along with the prompt", [system, system, user], "none", false, "start 0-3"],
    ["and waits for it", [system], "none", false, ""],
    ["between turns too", [user, answer, system], "over", false, "start 0-1, append 1-2 and end"],
    ["within a turn it does not", [system], "open", false, "append 0-1"],
    ["an answer without calls ends the turn", [answer], "open", false, "append 0-1 and end"],
    ["a call does not", [call], "open", false, "append 0-1"],
    ["nor does a message that still grows", [answer], "open", true, "draft 0-1"],
    [
      "a whole turn at once",
      [user, call, result, answer],
      "over",
      false,
      "start 0-1, append 1-2, append 2-3, append 3-4 and end",
    ],
    [
      "the next prompt begins another turn",
      [user, answer, user],
      "over",
      false,
      "start 0-1, append 1-2 and end, start 2-3",
    ],
    ["a prompt steers a turn that is open", [user], "open", false, "append 0-1"],
    ["and begins one behind an answer", [user], "answered", false, "end, start 0-1"],
    ["an answer that nothing follows ends it later", [], "answered", false, "end"],
    ["unless it still grows", [], "answered", true, ""],
    ["messages of the assistant's in a row are one response", [answer, call], "open", false, "append 0-2"],
    ["and grow together", [user, answer, answer], "over", true, "start 0-1, draft 1-3"],
    ["a last message of somebody else's is an ordinary one", [user], "over", true, "start 0-1"],
    ["the assistant goes on with a turn that is over", [answer], "over", false, "resume, append 0-1 and end"],
    ["and so do results", [result], "over", false, "resume, append 0-1"],
    ["results before a prompt go along with it", [result, user], "over", false, "start 0-2"],
    ["results before the assistant do not", [result, answer], "over", false, "resume, append 0-1, append 1-2 and end"],
    ["a greeting before any turn", [system, answer, user], "none", false, "import 0-2, start 2-3"],
    ["a greeting that still grows has no turn to grow in", [answer], "none", true, ""],
  ];
  test.each(rows)("%s", (_what, messages, turn, open, steps) => {
    expect(plan(messages, turn, open)).toBe(steps);
  });

  test("R8: a provider's call that is not finished is no answer; one that is finished is", () => {
    expect(plan([{ role: "assistant", content: [search] }], "open")).toBe("append 0-1");
    expect(plan([{ role: "assistant", content: [search, hits] }], "open")).toBe("append 0-1 and end");
  });

  test("R7: what a person decides is no prompt", () => {
    const decided = { type: "mcp_approval_response", approval_request_id: "x", approve: true };
    const steps = planNew([decided], 0, { dialect: openaiResponses, turn: "over", open: false });
    expect(steps.map(({ kind }) => kind)).toEqual(["resume", "append"]);
  });

  test("only what is behind the known messages", () => {
    expect(plan([user, answer, user], "over", false, 2)).toBe("start 2-3");
  });
});
