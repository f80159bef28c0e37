import { expect, test } from "vitest";
import { finalTools, type StopCondition } from "../../src/ai-sdk/final-tools.ts";

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
