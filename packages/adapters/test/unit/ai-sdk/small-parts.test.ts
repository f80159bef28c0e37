import { type HoldfastError, newId } from "holdfast";
import { describe, expect, test } from "vitest";
import { CallIds } from "../../../src/ai-sdk/call-ids.ts";
import { inCallOrder } from "../../../src/ai-sdk/call-order.ts";
import { joinSignals } from "../../../src/ai-sdk/join-signals.ts";
import { resultsIn } from "../../../src/ai-sdk/sent-results.ts";
import { UnwrittenOutcomes } from "../../../src/unwritten-outcomes.ts";

/** The small modules of the adapter, each by itself. */

const refusal = (code: string): HoldfastError =>
  Object.assign(new Error(code), { name: "HoldfastError", code }) as never;

describe("outcomes that wait for space", () => {
  test("are recorded in their order, once, and those that have no place any more are passed over", async () => {
    const unrecorded = new UnwrittenOutcomes();
    expect(await unrecorded.record()).toBe(false);
    const done: number[] = [];
    unrecorded.keep(async () => void done.push(1));
    unrecorded.keep(() => Promise.reject(refusal("SESSION_CLOSED")));
    unrecorded.keep(() => Promise.reject(refusal("CALL_UNKNOWN")));
    unrecorded.keep(async () => void done.push(2));
    expect(await unrecorded.record()).toBe(true);
    expect(done).toEqual([1, 2]);
    expect(await unrecorded.record()).toBe(false);
  });

  test("wait on, with those behind them, if there still is no space", async () => {
    const unrecorded = new UnwrittenOutcomes();
    const done: number[] = [];
    let isFull = true;
    unrecorded.keep(async () => void done.push(1));
    unrecorded.keep(async () => {
      if (isFull) throw refusal("STORE_FULL");
      done.push(2);
    });
    unrecorded.keep(async () => void done.push(3));
    await expect(unrecorded.record()).rejects.toMatchObject({ code: "STORE_FULL" });
    // Another one comes meanwhile.
    unrecorded.keep(async () => void done.push(4));
    expect(done).toEqual([1]);
    isFull = false;
    await unrecorded.record();
    expect(done).toEqual([1, 2, 3, 4]);
  });
});

test("signals are joined: each of them fires it, with its reason", () => {
  for (const at of [0, 1, 2]) {
    const controllers = Array.from({ length: 3 }, () => new AbortController());
    const signal = joinSignals(controllers[0]!.signal, controllers[1]!.signal, undefined, null, controllers[2]!.signal);
    expect(signal.aborted).toBe(false);
    controllers[at]!.abort(at);
    expect([signal.aborted, signal.reason]).toEqual([true, at]);
  }
});

describe("R9: ids of calls", () => {
  const start = (id: string) => ({ type: "tool-input-start" as const, id, toolName: "t" });
  const delta = (id: string) => ({ type: "tool-input-delta" as const, id, delta: "{}" });
  const end = (id: string) => ({ type: "tool-input-end" as const, id });
  const whole = (toolCallId: string) => ({ type: "tool-call" as const, toolCallId, toolName: "t", input: "{}" });

  test("that are good stay as they are, streamed or not, and so does everything else", () => {
    const ids = new CallIds();
    const text = { type: "text-delta" as const, id: "x", delta: "a" };
    const parts = [start("a"), delta("a"), end("a"), whole("a"), whole("b"), text];
    expect(parts.map((part) => ids.of(part as never))).toEqual(parts);
    // The very objects: nothing was to be changed.
    expect(ids.of(text as never)).toBe(text);
  });

  test("that come again are given to another call, with all that belongs to it", () => {
    const ids = new CallIds();
    for (const part of [start("a"), delta("a"), whole("a")]) ids.of(part as never);
    const again = ids.of(start("a") as never) as { id: string };
    expect(again.id).not.toBe("a");
    expect((ids.of(delta("a") as never) as { id: string }).id).toBe(again.id);
    expect((ids.of(end("a") as never) as { id: string }).id).toBe(again.id);
    expect((ids.of(whole("a") as never) as { toolCallId: string }).toolCallId).toBe(again.id);
    const result = { type: "tool-result", toolCallId: "a", toolName: "t", result: 1 };
    const request = { type: "tool-approval-request", toolCallId: "a", approvalId: "r" };
    for (const part of [result, request])
      expect((ids.of(part as never) as { toolCallId: string }).toolCallId).toBe(again.id);
    // A third, which is not streamed.
    const third = (ids.of(whole("a") as never) as { toolCallId: string }).toolCallId;
    expect(new Set(["a", again.id, third]).size).toBe(3);
  });

  test("that are empty are none, and what is of no call stays as it is", () => {
    const ids = new CallIds();
    const [first, second] = [whole(""), whole("")].map(
      (part) => (ids.of(part as never) as { toolCallId: string }).toolCallId,
    );
    expect(first).not.toBe("");
    expect(second).not.toBe(first);
    const stray = { type: "tool-result", toolCallId: "x", toolName: "t", result: 1 };
    expect(ids.of(stray as never)).toEqual(stray);
    expect(ids.of(delta("y") as never)).toEqual(delta("y"));
  });
});

describe("results in the order of their calls", () => {
  const calls = (...ids: string[]) => ({
    role: "assistant" as const,
    content: ids.map((toolCallId) => ({ type: "tool-call" as const, toolCallId, toolName: "t", input: {} })),
  });
  const result = (toolCallId: string) => ({
    type: "tool-result" as const,
    toolCallId,
    toolName: "t",
    output: { type: "text" as const, value: toolCallId },
  });
  const tool = (...content: object[]) => ({ role: "tool" as const, content }) as never;
  const idsIn = (prompt: ReturnType<typeof inCallOrder>): unknown[] =>
    prompt.flatMap(({ role, content }) =>
      role === "tool" ? [content.map((part) => ("toolCallId" in part ? part.toolCallId : part.type))] : [],
    );

  test("those of approved calls, which the SDK puts last, come to their places; what is decided stays where it is", () => {
    const response = { type: "tool-approval-response" as const, approvalId: "r", approved: true };
    const prompt = [calls("a", "b", "c"), tool(response, result("b"), result("c"), result("a"))];
    expect(idsIn(inCallOrder(prompt))).toEqual([["tool-approval-response", "a", "b", "c"]]);
  });

  test("messages that are in order are the very same; each goes by the calls before it; what has no call comes last", () => {
    const prompt = [
      calls("a", "b"),
      tool(result("a"), result("b")),
      calls("b", "a"),
      tool(result("x"), result("a"), result("b")),
    ];
    const sorted = inCallOrder(prompt);
    expect(sorted[1]).toBe(prompt[1]);
    expect(idsIn(sorted)).toEqual([
      ["a", "b"],
      ["b", "a", "x"],
    ]);
  });
});

describe("results that the SDK made itself", () => {
  const open = (id: string) => ({ id, message: newId(), name: "t", input: {}, state: "never-started" as const });
  const result = (toolCallId: string, output: object, more: object = {}) => ({
    type: "tool-result" as const,
    toolCallId,
    toolName: "t",
    output,
    ...more,
  });
  const prompt = (...content: object[]) =>
    [
      { role: "tool", content: [result("a", { type: "text", value: "of an earlier step" })] },
      { role: "assistant", content: [] },
      { role: "user", content: [] },
      { role: "tool", content },
    ] as never;

  test.each([
    [{ type: "execution-denied", reason: "no" }, { error: "no" }],
    [{ type: "execution-denied" }, { error: "was not approved, did not run" }],
    [{ type: "error-text", value: "broken" }, { error: "broken" }],
    [{ type: "error-json", value: { code: 1 } }, { error: '{"code":1}' }],
    [{ type: "text", value: "found" }, { value: "found" }],
    [{ type: "json", value: { at: new Date(0) } }, { value: { at: "1970-01-01T00:00:00.000Z" } }],
  ])("%j is recorded as %j", (output, outcome) => {
    const found = resultsIn(prompt(result("a", output, { providerOptions: { p: { x: 1 } } })), [open("a")]);
    expect(found).toMatchObject([{ call: "a", outcome }]);
    expect(found[0]!.shown).toMatchObject({
      role: "tool",
      content: [{ toolCallId: "a", providerOptions: { p: { x: 1 } } }],
    });
  });

  test("only of calls that are open, and the first for each; and none, if none is", () => {
    const text = { type: "text", value: "x" };
    const response = { type: "tool-approval-response", approvalId: "r", approved: false };
    const given = prompt(response, result("a", text), result("a", { type: "text", value: "again" }), result("b", text));
    const found = resultsIn(given, [open("a"), open("c")]);
    expect(found.map(({ call, outcome }) => [call, outcome])).toEqual([["a", { value: "x" }]]);
    expect("providerOptions" in (found[0]!.shown.content[0] as object)).toBe(false);
    expect(resultsIn(given, [])).toEqual([]);
  });
});
