import {
  type AgentInputItem,
  type AgentOutputItem,
  InputGuardrailTripwireTriggered,
  MaxTurnsExceededError,
  ModelBehaviorError,
  OutputGuardrailTripwireTriggered,
} from "@openai/agents";
import type { Entry } from "holdfast";
import { describe, expect, test } from "vitest";
import { functionResult, withUniqueCallIds } from "../../../src/openai-agents/items.ts";
import { endAs, outcomeOf, outcomeOfError } from "../../../src/openai-agents/outcome.ts";
import {
  outputText,
  type RecordedOutcome,
  replayable,
  replayOf,
  transferredTo,
} from "../../../src/openai-agents/replay.ts";
import type { RunOutcome } from "../../../src/openai-agents/surface.ts";
import { call, stage, text } from "../../openai-agents/scripted.ts";

/** What a turn has recorded, as the SDK goes through it again; and how a turn ends. */

const user = (content: string): AgentInputItem => ({ role: "user", content });
const result = (callId: string, output: unknown = "seen", name = "look") =>
  ({ type: "function_call_result", callId, name, status: "completed", output }) as AgentInputItem;
const shell = (callId: string) =>
  ({ type: "shell_call", callId, status: "completed", action: { commands: ["ls"] } }) as AgentOutputItem;
const patch = (callId: string) =>
  ({
    type: "apply_patch_call",
    callId,
    status: "completed",
    operation: { type: "delete_file", path: "a" },
  }) as AgentOutputItem;
const screen = (callId: string) =>
  ({ type: "computer_call", callId, status: "completed", action: { type: "screenshot" } }) as AgentOutputItem;

let seq = 0;
const entry = (
  turn: number,
  id: string,
  message: AgentInputItem,
  more: Partial<Entry<AgentInputItem>> = {},
): Entry<AgentInputItem> => ({ id, seq: ++seq, at: "", turn, step: id, message, metadata: {}, ...more });

const HIDDEN = { metadata: { hiddenFromModel: true } };

describe("what is recorded of a turn", () => {
  const wordsIn = (items: readonly AgentInputItem[]): string =>
    items.map((item) => ("callId" in item ? item.callId : JSON.stringify(item).match(/([A-Z]\w+)\./)?.[1])).join();
  const earlier = [entry(1, "p1", user("Before.")), entry(1, "a1", text("Answered."))];
  const begun = [...earlier, entry(2, "p2", user("Prompt."))];

  test.each<[string, Entry<AgentInputItem>[], input: string, responses: string[], outcomes: string[]]>([
    ["nothing but the prompt", begun, "Before,Answered,Prompt", [], []],
    [
      "an answer in two items of one step, and its results",
      [
        ...begun,
        entry(2, "a2", text("Looking."), { step: "x" }),
        entry(2, "a3", call("a", "look"), { step: "x" }),
        entry(2, "r1", result("a")),
        entry(2, "a4", text("Done.")),
      ],
      "Before,Answered,Prompt",
      ["Looking,a", "Done"],
      ["a"],
    ],
    [
      "an answer that was cut off: the model is asked again",
      [...begun, entry(2, "a2", text("Half."), { incomplete: true })],
      "Before,Answered,Prompt",
      [],
      [],
    ],
    [
      "an answer that was rejected: it would be again",
      [...begun, entry(2, "a2", text("Bad."), HIDDEN)],
      "Before,Answered,Prompt",
      [],
      [],
    ],
    [
      "what is hidden of an earlier turn stays hidden; of this turn, only an answer is",
      [
        entry(1, "p1", user("Before.")),
        entry(1, "a1", text("Answered."), HIDDEN),
        entry(2, "p2", user("Prompt."), HIDDEN),
        entry(2, "a2", call("a", "look")),
      ],
      "Before,Prompt",
      ["a"],
      [],
    ],
    [
      "what was replaced, or came too late for the model, is left out",
      [
        ...begun,
        entry(2, "a2", call("a", "look"), { replacedBy: "other" }),
        entry(2, "a3", call("b", "look")),
        entry(2, "r1", result("a"), { late: true }),
        entry(2, "r2", result("b")),
      ],
      "Before,Answered,Prompt",
      ["b"],
      ["b"],
    ],
  ])("%s", (_, entries, input, responses, outcomes) => {
    const replay = replayOf(entries, 2, "p2");
    expect(wordsIn(replay.input)).toBe(input);
    expect(replay.responses.map(wordsIn)).toEqual(responses);
    expect([...replay.outcomes.keys()]).toEqual(outcomes);
  });

  test("of a turn whose beginning is gone, the last response is all there is", () => {
    const replay = replayOf([entry(2, "a2", call("a", "look")), entry(2, "r1", result("a"))], 2, "gone");
    expect([replay.input, replay.responses.map(wordsIn), [...replay.outcomes.keys()]]).toEqual([[], ["a"], ["a"]]);
  });

  test("an outcome has the tool's own value where the model is shown another, and says if nobody knows it", () => {
    const replay = replayOf(
      [
        ...begun,
        entry(2, "a2", call("a", "look"), { step: "x" }),
        entry(2, "a3", call("b", "look"), { step: "x" }),
        entry(2, "r1", result("a"), { value: { seen: 1 } }),
        entry(2, "r2", result("b"), { synthetic: "outcome-unknown" }),
      ],
      2,
      "p2",
    );
    expect(replay.outcomes.get("a")).toEqual({ item: result("a"), isMadeUp: false, value: { seen: 1 } });
    expect(replay.outcomes.get("b")).toEqual({ item: result("b"), isMadeUp: true });
  });
});

const outcome = (callId: string, output: unknown = "seen", isMadeUp = false): RecordedOutcome => ({
  item: result(callId, output) as never,
  isMadeUp,
});

describe("of a recorded response, the SDK goes through", () => {
  const request = (...tools: object[]) =>
    ({ tools, handoffs: [{ toolName: "to_sales", toolDescription: "" }] }) as unknown as Parameters<
      typeof replayable
    >[2];
  const LOOK = { type: "function", name: "look" };
  const ALL = [LOOK, { type: "shell", name: "shell" }, { type: "apply_patch", name: "patch" }, { type: "computer" }];
  const moved = outcome("h", JSON.stringify({ assistant: "Sales" }));

  test.each<[string, AgentOutputItem[], RecordedOutcome[], object[], output: string[] | null, gone: string[]]>([
    ["words", [text("Hello.")], [], [], ["message"], []],
    [
      "a function, which has its outcome or gets one",
      [call("a", "look"), call("b", "look")],
      [outcome("a")],
      ALL,
      ["a", "b"],
      [],
    ],
    ["not a function that is gone", [call("a", "look")], [], [], null, ["a look"]],
    ["not a function that is gone, and was answered", [call("a", "look")], [outcome("a")], [], null, []],
    [
      "not a hosted tool of that name",
      [call("a", "look")],
      [],
      [{ type: "hosted_tool", name: "look" }],
      null,
      ["a look"],
    ],
    [
      "words beside a call that is gone only with another call",
      [text("So."), call("a", "gone"), call("b", "look")],
      [],
      ALL,
      ["message", "b"],
      ["a gone"],
    ],
    ["nothing, if only words are left of calls", [text("So."), call("a", "gone")], [], ALL, null, ["a gone"]],
    ["a hand-off that took place", [call("h", "to_sales")], [moved], [], ["h"], []],
    ["a hand-off that nobody has answered", [call("h", "to_sales")], [], [], ["h"], []],
    ["not a hand-off that did not take place", [call("h", "to_sales")], [outcome("h", "Refused.")], [], null, []],
    ["open calls of other kinds", [shell("s"), patch("p"), screen("c")], [], ALL, ["s", "p", "c"], []],
    [
      "not those that were answered",
      [shell("s"), patch("p"), screen("c")],
      [outcome("s"), outcome("p"), outcome("c")],
      ALL,
      null,
      [],
    ],
    [
      "not those whose tools are gone",
      [shell("s"), patch("p"), screen("c")],
      [],
      [LOOK],
      null,
      ["s shell_call", "p apply_patch_call", "c computer_call"],
    ],
    ["not a shell because there is an editor", [shell("s")], [], [{ type: "apply_patch" }], null, ["s shell_call"]],
    [
      "not an editor because there is a computer",
      [patch("p")],
      [],
      [{ type: "computer" }],
      null,
      ["p apply_patch_call"],
    ],
    ["not a computer because there is a shell", [screen("c")], [], [{ type: "shell" }], null, ["c computer_call"]],
    [
      "an answered call of another kind beside one that is open",
      [shell("s"), shell("t")],
      [outcome("s")],
      ALL,
      ["t"],
      [],
    ],
  ])("%s", (_, response, outcomes, tools, output, gone) => {
    const known = new Map(outcomes.map((one) => [one.item.callId, one]));
    const found = replayable(response, known, request(...tools));
    expect(found.output?.map((item) => ("callId" in item ? item.callId : item.type)) ?? null).toEqual(output);
    expect(found.gone.map(({ id, name }) => `${id} ${name}`)).toEqual(gone);
  });
});

test.each<[unknown, boolean, string | null]>([
  [JSON.stringify({ assistant: "Sales" }), false, "Sales"],
  [{ type: "text", text: JSON.stringify({ assistant: "Sales" }) }, false, "Sales"],
  [JSON.stringify({ assistant: "Sales" }), true, null],
  [JSON.stringify({ assistant: 1 }), false, null],
  ["Multiple handoffs detected, ignoring this one.", false, null],
  [[{ type: "input_text", text: "x" }], false, null],
])("a hand-off with the output %j (made up: %s) led to %s", (output, isMadeUp, agent) => {
  expect(transferredTo(outcome("h", output, isMadeUp))).toBe(agent);
});

test("a result of another kind is no hand-off", () => {
  const item = { type: "shell_call_output", callId: "h", output: JSON.stringify({ assistant: "Sales" }) };
  expect(transferredTo({ item: item as never, isMadeUp: false })).toBe(null);
});

test.each<[unknown, string]>([
  ["words", "words"],
  [{ type: "text", text: "words" }, "words"],
  [{ type: "image", image: "x" }, '{"type":"image","image":"x"}'],
  [[{ type: "input_text", text: "words" }], '[{"type":"input_text","text":"words"}]'],
])("the output %j is replayed as %s", (output, expected) => {
  expect(outputText(result("a", output) as never)).toBe(expected);
});

const circular: Record<string, unknown> = {};
circular["self"] = circular;

test.each<[unknown, unknown]>([
  ["words", { type: "text", text: "words" }],
  [7, { type: "text", text: "7" }],
  [null, { type: "text", text: "null" }],
  [undefined, { type: "text", text: "undefined" }],
  [{ a: 1 }, { type: "text", text: '{"a":1}' }],
  [circular, { type: "text", text: "[object with circular references]" }],
  [[], { type: "text", text: "[]" }],
  [{ type: "text", text: "t" }, [{ type: "input_text", text: "t" }]],
  [
    { type: "text", text: 1 },
    { type: "text", text: '{"type":"text","text":1}' },
  ],
  [[{ type: "text", text: "t" }, "u"], { type: "text", text: '[{"type":"text","text":"t"},"u"]' }],
  [[{ type: "text", text: "t" }, null], { type: "text", text: '[{"type":"text","text":"t"},null]' }],
  [
    { type: "other", file: "f" },
    { type: "text", text: '{"type":"other","file":"f"}' },
  ],
  [{ type: "image", image: "i" }, [{ type: "input_image", image: "i" }]],
  [{ type: "image", image: { url: "u" }, detail: "low" }, [{ type: "input_image", image: "u", detail: "low" }]],
  [{ type: "image", image: { fileId: "f" }, detail: 1 }, [{ type: "input_image", image: { id: "f" } }]],
  [{ type: "image", image: { id: "f" } }, [{ type: "input_image", image: { id: "f" } }]],
  [
    { type: "image", image: null },
    { type: "text", text: '{"type":"image","image":null}' },
  ],
  [
    { type: "image", image: 7 },
    { type: "text", text: '{"type":"image","image":7}' },
  ],
  [
    { type: "image", image: {} },
    { type: "text", text: '{"type":"image","image":{}}' },
  ],
  [
    { type: "image", image: { data: "QQ==", mediaType: "image/png" } },
    [{ type: "input_image", image: "data:image/png;base64,QQ==" }],
  ],
  [{ type: "image", image: { data: "QQ==" } }, [{ type: "input_image", image: "QQ==" }]],
  [
    { type: "image", image: { data: "data:image/gif;base64,QQ==", mediaType: "image/png" } },
    [{ type: "input_image", image: "data:image/gif;base64,QQ==" }],
  ],
  [
    { type: "file", file: { data: new Uint8Array([65]), mediaType: "text/plain" }, filename: "a.txt" },
    [{ type: "input_file", file: "data:text/plain;base64,QQ==", filename: "a.txt" }],
  ],
  [{ type: "file", file: { url: "u", filename: "b" } }, [{ type: "input_file", file: "u", filename: "b" }]],
  [{ type: "file", file: "f", filename: 1 }, [{ type: "input_file", file: "f" }]],
  [{ type: "file" }, { type: "text", text: '{"type":"file"}' }],
])("what a function returned is recorded as the SDK sends it: %o", (output, expected) => {
  const made = functionResult(call("a", "look") as never, output);
  expect(made).toEqual({
    type: "function_call_result",
    name: "look",
    callId: "a",
    status: "completed",
    output: expected,
  });
});

test("a result names the namespace and the caller of its call, if it has them", () => {
  const caller = { type: "direct" };
  const made = functionResult({ ...call("a", "look"), namespace: "eyes", caller } as never, "seen");
  expect(made).toMatchObject({ namespace: "eyes", caller });
});

test("a call keeps its id, unless that is empty or taken", () => {
  const said = text("So.");
  const output = [said, call("a", "look"), call("a", "look"), call("", "look"), call("old", "look"), shell("s")];
  const made = withUniqueCallIds(output, (id) => id === "old");
  const ids = made.map((item) => ("callId" in item ? item.callId : null));
  expect([made[0], made[1], made[5]]).toEqual([said, call("a", "look"), shell("s")]);
  expect(new Set(ids.slice(1)).size).toBe(5);
  for (const id of ids.slice(2, 5)) expect(id).toMatch(/^call_/);
});

describe("a run", () => {
  const FINAL = { type: "next_step_final_output" };
  test.each<[string, Record<string, unknown>, string]>([
    ["with an answer", { _currentStep: FINAL }, "completed"],
    ["that waits", { interruptions: [{}], _currentStep: FINAL }, "waiting"],
    ["that was stopped", { cancelled: true, _currentStep: { type: "next_step_run_again" } }, "aborted"],
    ["that was stopped before its first step", { cancelled: true }, "aborted"],
    ["that was stopped when it had its answer", { cancelled: true, _currentStep: FINAL }, "completed"],
    ["that was not stopped", { cancelled: false, _currentStep: { type: "next_step_run_again" } }, "completed"],
  ])("%s: %s", (_, { interruptions = [], _currentStep, ...more }, kind) => {
    expect(outcomeOf({ interruptions, state: { _currentStep }, ...more } as never)).toEqual({ kind });
  });

  const named = (name: string): Error => Object.assign(new Error(name), { name });
  test.each<[string, unknown, AbortSignal, string]>([
    ["that failed", new Error("down"), new AbortController().signal, "failed"],
    ["that failed with nothing", undefined, new AbortController().signal, "failed"],
    ["whose signal fired", new Error("down"), AbortSignal.abort(), "aborted"],
    ["that was aborted from elsewhere", named("AbortError"), new AbortController().signal, "aborted"],
    ["with something that only looks like an abort", { name: "AbortError" }, new AbortController().signal, "failed"],
    ["that was out of time", named("TimeoutError"), new AbortController().signal, "failed"],
    ["whose signal was out of time", named("AbortError"), AbortSignal.abort(named("TimeoutError")), "failed"],
    ["that failed by time when it was stopped", named("TimeoutError"), AbortSignal.abort(named("Stop")), "aborted"],
  ])("%s", (_, error, signal, kind) => {
    expect(outcomeOfError(error, signal)).toEqual(kind === "failed" ? { kind, error } : { kind });
  });
});

describe("the end of a turn", () => {
  /** A turn in which the model looked, and then said something; its last call may be open. */
  async function ended(how: RunOutcome, ...answers: AgentOutputItem[]) {
    const here = await stage();
    const turn = await here.session.startTurn(user("Prompt."));
    await turn.append(call("a", "look"));
    await turn.toolStarted("a");
    await turn.toolEnded("a", { value: "seen" });
    if (answers.length > 0) await turn.request().draft.commit(answers as never);
    await endAs(how, { turn } as never, here.session);
    const hidden = here.session.entries.map(({ metadata }) =>
      metadata["hiddenFromModel"] === true ? "hidden" : "shown",
    );
    const { interruption } = here.session;
    await here.store.close();
    return { turn, hidden: hidden.join(), how: interruption?.how.kind ?? null, calls: interruption?.calls ?? [] };
  }
  const failed = (error: unknown): RunOutcome => ({ kind: "failed", error });
  const guarded = { guardrail: {}, output: {} } as never;

  test.each<[string, RunOutcome, AgentOutputItem[], how: string | null, hidden: string]>([
    ["completed", { kind: "completed" }, [text("Done.")], null, "shown,shown,shown,shown"],
    ["stopped", { kind: "aborted" }, [], "aborted", "shown,shown,shown"],
    ["failed", failed(new Error("down")), [text("Done.")], "failed", "shown,shown,shown,shown"],
    ["out of turns", failed(new MaxTurnsExceededError("many")), [text("Done.")], "failed", "shown,shown,shown,shown"],
    [
      "a prompt that was rejected",
      failed(new InputGuardrailTripwireTriggered("no", guarded)),
      [],
      null,
      "hidden,hidden,hidden",
    ],
    [
      "a prompt that was rejected beside an answer",
      failed(new InputGuardrailTripwireTriggered("no", guarded)),
      [call("b", "send")],
      null,
      "hidden,hidden,hidden,hidden,hidden",
    ],
    [
      "an answer that was rejected",
      failed(new OutputGuardrailTripwireTriggered("no", guarded)),
      [text("Bad."), text("Worse.")],
      "failed",
      "shown,shown,shown,hidden,hidden",
    ],
    [
      "an answer that does not fit",
      failed(new ModelBehaviorError("odd")),
      [text("Odd.")],
      "failed",
      "shown,shown,shown,hidden",
    ],
    [
      "a call that does not fit",
      failed(new ModelBehaviorError("odd")),
      [text("Odd."), call("b", "gone")],
      "failed",
      "shown,shown,shown,shown,shown,shown",
    ],
  ])("%s", async (_, how, answers, kind, hidden) => {
    expect(await ended(how, ...answers)).toMatchObject({ how: kind, hidden });
  });

  test("that waits is suspended, and names the calls that a person is asked about", async () => {
    const { how, calls } = await ended({ kind: "waiting" }, call("b", "send"));
    expect([how, calls.map(({ id, state }) => `${id} ${state}`)]).toEqual(["suspended", ["b awaiting"]]);
    expect((await ended({ kind: "waiting" })).how).toBe("suspended");
  });

  test("that is not open here: a complete one is ended, and any other is opened first", async () => {
    for (const [how, kind] of [
      [{ kind: "completed" }, null],
      [failed(new Error("down")), "failed"],
    ] as const) {
      await using here = await stage();
      const turn = await here.session.startTurn(user("Prompt."));
      await turn.request().draft.commit(text("Done.") as never);
      const session = await here.next();
      expect(session.interruption?.answered).toBe(true);
      await endAs(how, { turn: null } as never, session);
      expect([session.turn, session.interruption?.how.kind ?? null]).toEqual([null, kind]);
    }
  });
});
