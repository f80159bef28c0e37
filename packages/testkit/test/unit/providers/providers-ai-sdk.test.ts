import { describe, expect, it } from "vitest";
import { acpTranscript, aiSdkConversation, validateAcp, validateAiSdk } from "../../../src/providers/index.ts";
import { expectRefused, mutantsOf, rulesOf } from "./providers-mutants.ts";

const { messages } = aiSdkConversation;

describe("ai-sdk", () => {
  const edits = {
    parts: "content",
    message: { role: "user", content: "By the way." },
    text: { type: "text", text: "By the way." },
    empty: { type: "text", text: "" },
  };

  it("one edit of the messages is refused wherever calls, results, approvals or ends are touched", () => {
    expectRefused(mutantsOf(messages, edits), (list) => validateAiSdk({ messages: list }), {
      "prompts and answers are free": ["double 0 3 9 10", "drop 3 9", "message before 0 1 3 4 7 9 10 11"],
      "parts of a prompt are free": ["double 0.0 0.1", "drop 0.0 0.1", "swap 0.0", "text before 0.0 0.1 0.2"],
      "text and reasoning of an answer are free, also behind its calls": [
        "double 1.0 1.1 4.2 9.0",
        "drop 1.0 1.1 4.2",
        "swap 1.0 1.1 4.1 4.2 4.3",
        "text before 1.0 1.1 1.2 1.3 1.4 4.0 4.1 4.2 4.3 4.4 4.5 7.0 7.1 7.2 9.0 9.1",
      ],
      "calls, results and approvals have no order among themselves": ["swap 1.2 2.0 5 7.0 8.0"],
      "once there is a result, nobody asks for the answer to its approval": ["drop 5 8.0"],
    });
  });

  it("every prefix is judged by its end", () => {
    const judged = messages.map((_, i) =>
      rulesOf(validateAiSdk(messages.slice(0, i + 1)))
        .sort()
        .join(" "),
    );
    const cut = "ai-sdk-1 ai-sdk-2";
    expect(judged).toEqual(["", cut, "", "", cut, "", "", cut, "", "ai-sdk-2", ""]);
  });

  it("a view may wait for a person at its end, and nowhere else", () => {
    expect(validateAiSdk(messages.slice(0, 5), { waiting: true })).toEqual([]);
    const asked = [...messages.slice(0, 5), { role: "user", content: "And?" }];
    expect(rulesOf(validateAiSdk(asked, { waiting: true }))).toEqual(["ai-sdk-1"]);
  });
});

describe("acp", () => {
  const edits = {
    message: { sessionId: "s", update: { sessionUpdate: "tool_call_update", toolCallId: "c9", status: "completed" } },
  };

  it("one edit of the transcript is refused wherever calls and messages are touched", () => {
    expectRefused(mutantsOf(acpTranscript, edits), (list) => validateAcp(list), {
      "whole messages and single chunks are free": ["double 0 1 8 9 10 11", "drop 1 8 9 10 11", "swap 1 8 10"],
      "a status may be told twice, or left out before the end": ["double 4 5 6", "drop 4"],
      "calls and plans have no order among themselves": ["double 7", "drop 7", "swap 2 3 5 6 7"],
    });
  });

  it("every prefix is judged by its open calls", () => {
    const open = acpTranscript.map((_, i) => validateAcp(acpTranscript.slice(0, i + 1)).length);
    expect(open).toEqual([0, 0, 1, 2, 2, 1, 0, 0, 0, 0, 0, 0]);
    expect(acpTranscript.map((_, i) => validateAcp(acpTranscript.slice(0, i + 1), { running: true }).length)).toEqual(
      acpTranscript.map(() => 0),
    );
  });
});
