import { describeDialect, validateOpenaiResponses } from "@holdfast/testkit";
import type { AgentInputItem } from "@openai/agents";
import { type Entry, partsOf } from "holdfast";
import { describe, expect, test } from "vitest";
import { openaiAgents } from "../../../src/openai-agents/index.ts";
import { sentBy as request } from "./sent-by.ts";

const call = (callId: string, name: string, input: unknown): AgentInputItem => ({
  type: "function_call",
  id: `fc_${callId}`,
  callId,
  name,
  arguments: JSON.stringify(input),
  status: "completed",
});

const answer = (text: string): AgentInputItem => ({
  type: "message",
  role: "assistant",
  status: "completed",
  content: [{ type: "output_text", text, providerData: { annotations: [] } }],
});

const samples: AgentInputItem[] = [
  { role: "user", content: "hello" },
  { role: "system", content: "Be brief." },
  {
    role: "user",
    content: [
      { type: "input_text", text: "Look" },
      { type: "input_image", image: "data:image/png;base64,AAAA", detail: "low" },
      { type: "input_file", file: "data:text/plain;base64,AAAA", filename: "a.txt" },
    ],
  },
  {
    type: "reasoning",
    id: "rs_1",
    content: [{ type: "input_text", text: "I think." }],
    rawContent: [{ type: "reasoning_text", text: "in full" }],
    providerData: { encrypted_content: "sealed" },
  },
  {
    type: "function_call",
    callId: "c",
    name: "f",
    namespace: "n",
    arguments: "{}",
    caller: { type: "program", callerId: "p" },
  },
  {
    type: "function_call_result",
    callId: "c",
    name: "f",
    status: "completed",
    output: [{ type: "input_image", image: "https://example.com/a.png" }],
  },
  {
    type: "hosted_tool_call",
    id: "ws_1",
    name: "web_search_call",
    status: "completed",
    providerData: { type: "web_search" },
  },
  { type: "shell_call", callId: "s", action: { commands: ["ls"], timeoutMs: 10 } },
  {
    type: "shell_call_output",
    callId: "s",
    output: [{ stdout: "a", stderr: "", outcome: { type: "exit", exitCode: 0 } }],
  },
  { type: "apply_patch_call", callId: "p", status: "completed", operation: { type: "delete_file", path: "a" } },
  { type: "apply_patch_call_output", callId: "p", status: "completed", output: "done" },
  { type: "computer_call", callId: "k", id: "cu_1", status: "completed", action: { type: "screenshot" } },
  {
    type: "computer_call_result",
    callId: "k",
    output: { type: "computer_screenshot", data: "data:image/png;base64,AA" },
  },
  { type: "compaction", encrypted_content: "sealed", id: "cmp_1" },
  { type: "unknown", id: "x_1", providerData: { type: "new_thing", a: 1 } },
];

describeDialect<AgentInputItem>(
  {
    dialect: openaiAgents,
    user: (content) => ({ role: "user", content }),
    step: ({ text, calls }) => [
      ...(text === null ? [] : [answer(text)]),
      ...calls.map(({ id, name, input }) => call(id, name, input)),
    ],
    result: ({ id, name }, text) => ({
      type: "function_call_result",
      callId: id,
      name,
      status: "completed",
      output: { type: "text", text },
    }),
    samples,
    judge: (items) => validateOpenaiResponses(request(items)).map(({ rule, at, why }) => `${rule} ${at}: ${why}`),
  },
  { describe, test },
);

function entriesOf(steps: readonly (readonly AgentInputItem[])[]): Entry<AgentInputItem>[] {
  let seq = 0;
  return steps.flatMap((step, n) =>
    step.map((message) => {
      seq++;
      return { id: `e${seq}`, seq, at: "", turn: 1, step: `s${n}`, message, metadata: {} };
    }),
  );
}

const VIEW = { changedAt: null, next: "model" } as const;

test("reasoning keeps its encrypted content, and is sent with the item that it led to", () => {
  const reasoning = samples.find(({ type }) => type === "reasoning")!;
  const shown = openaiAgents.arrange(entriesOf([[samples[0]!], [reasoning, answer("yes")]]), VIEW);
  expect(shown[1]).toBe(reasoning);
  expect(request(shown).input[1]).toMatchObject({ type: "reasoning", encrypted_content: "sealed" });
});

test("a call with an id that was used before gets another one, with its result, and keeps the rest", () => {
  const step = (): AgentInputItem[] => [{ ...call("call_0", "look", { at: 1 }), providerData: { kept: true } }];
  const result: AgentInputItem = {
    type: "function_call_result",
    callId: "call_0",
    name: "look",
    status: "completed",
    output: { type: "text", text: "done" },
  };
  const shown = openaiAgents.arrange(entriesOf([[samples[0]!], step(), [result], step(), [{ ...result }]]), VIEW);
  const ids = shown.flatMap((item) => ("callId" in item ? [item.callId] : []));
  expect(ids[0]).toBe(ids[1]);
  expect(ids[2]).toBe(ids[3]);
  expect(ids[2]).not.toBe(ids[0]);
  expect(shown[3]).toMatchObject({ type: "function_call", name: "look", providerData: { kept: true } });
  expect(shown[4]).toMatchObject({ type: "function_call_result", output: { type: "text", text: "done" } });
});

test("an interrupted shell or patch call gets an output of its own kind", () => {
  for (const type of ["shell_call", "apply_patch_call"] as const) {
    const made = samples.find((item) => item.type === type)! as AgentInputItem & { callId: string };
    const result = openaiAgents.result({ id: made.callId, name: type }, { error: "interrupted" })!;
    const shown = openaiAgents.arrange(entriesOf([[samples[0]!], [made], [result]]), VIEW);
    expect(shown[2]).toMatchObject({ type: `${type}_output`, callId: made.callId });
    expect(validateOpenaiResponses(request(shown))).toEqual([]);
  }
});

test("P5: a call that was recorded as waiting for approval is found, and the mark is not sent", () => {
  const waiting = { ...call("c", "send", {}), needsApproval: true } as unknown as AgentInputItem;
  expect(openaiAgents.calls(waiting)).toMatchObject([{ id: "c", awaiting: true }]);
  expect(JSON.stringify(request([waiting]))).not.toContain("needsApproval");
});

test("blank text is not sent, and the parts beside it stay as they are", () => {
  const image = { type: "input_image" as const, image: "data:image/png;base64,AAAA" };
  const said: AgentInputItem = { role: "user", content: [{ type: "input_text", text: " " }, image] };
  expect(openaiAgents.arrange(entriesOf([[said]]), VIEW)).toEqual([{ role: "user", content: [image] }]);
});

test("parts: text, reasoning, files, calls and results", () => {
  expect(partsOf(samples[2]!, openaiAgents).map(({ type }) => type)).toEqual(["text", "file", "file"]);
  expect(partsOf(samples[3]!, openaiAgents)).toMatchObject([{ type: "reasoning" }]);
  expect(partsOf(samples[5]!, openaiAgents)).toMatchObject([{ type: "result", call: "c" }]);
});
