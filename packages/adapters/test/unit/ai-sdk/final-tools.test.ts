import { describe, expect, test } from "vitest";
import { TAKEN } from "../../../src/ai-sdk/content.ts";
import { finalTools, hasFinalAnswer, type StopCondition } from "../../../src/ai-sdk/final-tools.ts";

/** Which calls end a run by being made. */

interface Step {
  readonly toolCalls: readonly { readonly toolName: string }[];
  readonly toolResults: readonly unknown[];
  readonly finishReason?: string;
}

const call = (toolName: string, toolCallId = toolName) =>
  ({ type: "tool-call", toolCallId, toolName, input: {} }) as never;
const last = ({ steps }: { readonly steps: readonly unknown[] }): Step => steps.at(-1) as Step;
const has =
  (name: string): StopCondition =>
  (options) =>
    last(options).toolCalls.some(({ toolName }) => toolName === name);

const CALLS = [call("a"), call("b", "b1"), call("b", "b2"), call("c")];

test.each<[string, StopCondition | StopCondition[] | undefined, string[]]>([
  ["none", undefined, []],
  ["an empty list", [], []],
  ["one tool", has("b"), ["b"]],
  ["either of two", [has("a"), has("c")], ["a", "c"]],
  ["a tool that was not called", has("d"), []],
  ["one that is not sure at once", async (options) => has("c")(options), ["c"]],
  ["a number of steps: whatever is called", ({ steps }) => steps.length === 2, []],
  ["a number of steps that is not reached", ({ steps }) => steps.length === 3, []],
  ["any call", (options) => last(options).toolCalls.length > 0, ["a", "b", "c"]],
  ["two calls of one tool", (options) => last(options).toolCalls.length === 2, ["b"]],
  ["results, of which there are none", (options) => last(options).toolResults.length > 0, []],
  [
    "what else is known of the step",
    (options) => last(options).finishReason === "tool-calls" && has("a")(options),
    ["a"],
  ],
  ["one that fails, and one that does not", [() => Promise.reject(new Error("no")), has("a")], ["a"]],
  [
    "one that throws, and one that does not",
    [
      () => {
        throw new Error("no");
      },
      has("a"),
    ],
    ["a"],
  ],
  ["something that is not true or false", (() => "yes") as never, []],
])("the condition is %s", async (_, stopWhen, expected) => {
  const found = await finalTools(CALLS, stopWhen, [{ toolCalls: [] }], { finishReason: "tool-calls" });
  expect([...found]).toEqual(expected);
});

test("without calls no condition is asked", async () => {
  let asked = 0;
  const counting: StopCondition = () => {
    asked++;
    return true;
  };
  expect((await finalTools([], counting, [], {})).size).toBe(0);
  expect(asked).toBe(0);
});

describe("an answer that a tool's call gave", () => {
  const user = { role: "user", content: "Go." };
  const assistant = { role: "assistant", content: "Here." };
  const result = (output: unknown) => ({ role: "tool", content: [{ type: "tool-result", toolCallId: "a", output }] });
  const other = result({ type: "text", value: "seen" });
  const taken = result({ ...TAKEN });
  const isFinal = (messages: object[], turn: object | null = { open: [] }): boolean =>
    hasFinalAnswer({ entries: messages.map((message) => ({ message })), turn } as never);

  test.each<[string, object[], boolean]>([
    ["is final", [user, assistant, taken], true],
    ["is final beside other results", [user, assistant, other, taken, other], true],
    ["is final where a compaction has left nothing before it", [assistant, taken], true],
    ["is not final if the call had another result", [user, assistant, other], false],
    ["is not final if a person said more", [user, assistant, taken, user], false],
    ["is not final if another answer followed", [user, assistant, taken, assistant], false],
    ["is not final before the model has said anything", [user], false],
  ])("%s", (_, messages, expected) => {
    expect(isFinal(messages)).toBe(expected);
  });

  test("is not final while a call is open, or without a turn", () => {
    expect(isFinal([user, assistant, taken], { open: [{}] })).toBe(false);
    expect(isFinal([user, assistant, taken], null)).toBe(false);
  });
});
