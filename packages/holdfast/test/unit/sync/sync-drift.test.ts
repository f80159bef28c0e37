import { openStore } from "holdfast";
import { expect, test } from "vitest";
import type { Made } from "./sync-agents.ts";

/**
 * R14 b: what a round trip through an SDK, a gateway or a database of the application's own adds to a message or takes
 * from it, without a change of what it says. Such an array is the recorded one: no epoch, whichever form came first.
 */
interface Drift {
  readonly dialect: string;
  readonly what: string;
  readonly prompt: Made;
  readonly forms: readonly [Made, Made];
  readonly next: Made;
}

const user = { role: "user", content: "question" };
const call = { id: "call_1", type: "function", function: { name: "read", arguments: "{}" } };
const toolMessage = { role: "tool", tool_call_id: "call_1", content: "A" };

const chat = (what: string, plain: Made, drifted: Made): Drift => ({
  dialect: "openai-chat",
  what,
  prompt: user,
  forms: [plain, drifted],
  next: plain.tool_calls ? toolMessage : { role: "user", content: "more" },
});
const says = { role: "assistant", content: "answer" };
const calls = { role: "assistant", content: null, tool_calls: [call] };
const parts = (part: Made = {}): Made => ({
  role: "assistant",
  content: [{ type: "text", text: "answer", ...part }],
});

const responses = (what: string, part: Made, item: Made = {}): Drift => {
  const plain = { type: "message", role: "assistant", content: [{ type: "output_text", text: "answer" }] };
  const drifted = { ...plain, ...item, content: [{ ...plain.content[0], ...part }] };
  return { dialect: "openai-responses", what, prompt: user, forms: [plain, drifted], next: user };
};

const claude = (what: string, plain: Made, drifted: Made): Drift => ({
  dialect: "anthropic",
  what,
  prompt: user,
  forms: [plain, drifted],
  next: user,
});

const gemini = (what: string, prompt: Made, forms: [Made, Made], next: Made): Drift => ({
  dialect: "gemini",
  what,
  prompt,
  forms,
  next,
});
const asks = { role: "user", parts: [{ text: "question" }] };
const geminiCall = (args: Made): Made => ({ role: "model", parts: [{ functionCall: { name: "read", ...args } }] });
const geminiResult = { role: "user", parts: [{ functionResponse: { name: "read", response: { output: "A" } } }] };

const aiSdk = (what: string, message: Made, part: Made, output: Made = {}): Drift => {
  const plain = { role: "assistant", content: [{ type: "tool-call", toolCallId: "a", toolName: "read", input: {} }] };
  const result = { type: "tool-result", toolCallId: "a", toolName: "read", output: { type: "text", value: "A" } };
  const drifted = { ...plain, ...message, content: [{ ...plain.content[0], ...part }] };
  const next = { role: "tool", content: [{ ...result, output: { ...result.output, ...output } }] };
  return { dialect: "ai-sdk", what, prompt: user, forms: [plain, drifted], next };
};

const DRIFTS: Drift[] = [
  chat("annotations: []", says, { ...says, annotations: [] }),
  chat("annotations: null", says, { ...says, annotations: null }),
  chat("logprobs: null", says, { ...says, logprobs: null }),
  chat("logprobs: []", says, { ...says, logprobs: [] }),
  chat("parsed: null", says, { ...says, parsed: null }),
  chat("refusal: null", says, { ...says, refusal: null }),
  chat("tool_calls: []", says, { ...says, tool_calls: [] }),
  chat("tool_calls: null", says, { ...says, tool_calls: null, function_call: null, audio: null }),
  chat(
    "a content part with annotations: [], logprobs: [], parsed: null",
    parts(),
    parts({ annotations: [], logprobs: [], parsed: null }),
  ),
  chat('content "" beside calls', calls, { ...calls, content: "" }),
  chat("no content beside calls", calls, { role: "assistant", tool_calls: [call] }),
  chat("content [] beside calls", calls, { ...calls, content: [] }),
  chat("a call with parsed_arguments", calls, {
    ...calls,
    tool_calls: [{ ...call, function: { ...call.function, parsed_arguments: null } }],
  }),
  chat("a call with an index of null", calls, { ...calls, tool_calls: [{ ...call, index: null }] }),
  responses("annotations: []", { annotations: [] }),
  responses("annotations: null", { annotations: null }),
  responses("logprobs: []", { logprobs: [] }),
  responses("logprobs: null", { logprobs: null }),
  responses("parsed: null", { parsed: null }),
  responses("id and status of null", {}, { id: null, status: null, phase: null }),
  claude(
    "citations: null",
    { role: "assistant", content: [{ type: "text", text: "answer" }] },
    { role: "assistant", content: [{ type: "text", text: "answer", citations: null }] },
  ),
  claude(
    "cache_control: null",
    { role: "assistant", content: [{ type: "text", text: "answer" }] },
    { role: "assistant", content: [{ type: "text", text: "answer", cache_control: null }] },
  ),
  gemini("a prompt without a role", { parts: [{ text: "question" }] }, [geminiCall({}), geminiCall({})], geminiResult),
  gemini("a call without args", asks, [geminiCall({ args: {} }), geminiCall({})], geminiResult),
  gemini("a call with args: null", asks, [geminiCall({ args: {} }), geminiCall({ args: null })], geminiResult),
  gemini("a result without a role", asks, [geminiCall({}), geminiCall({})], { parts: geminiResult.parts }),
  aiSdk("empty providerOptions of a message", { providerOptions: {} }, {}),
  aiSdk("empty providerOptions of a part", {}, { providerOptions: {} }),
  aiSdk(
    "providerOptions of a provider that are empty",
    { providerOptions: { openai: {} } },
    { providerOptions: { openai: {} } },
  ),
  aiSdk("empty providerOptions of an output", {}, {}, { providerOptions: {} }),
];

/** The other form of what stands around the message that drifts. */
function around({ dialect, what, prompt, next }: Drift): { prompt: Made; next: Made } {
  if (dialect === "gemini")
    return { prompt: { role: "user", parts: prompt.parts }, next: { role: "user", parts: next.parts } };
  if (!what.includes("output")) return { prompt, next };
  const [{ output, ...part }] = next.content;
  return { prompt, next: { ...next, content: [{ ...part, output: { type: output.type, value: output.value } }] } };
}

for (const drift of DRIFTS) {
  const { dialect, what, forms } = drift;
  const other = around(drift);
  const arrays: [Made[], Made[]] = [
    [drift.prompt, forms[0], drift.next],
    [other.prompt, forms[1], other.next],
  ];
  for (const [way, [first, second]] of [
    ["added", arrays],
    ["left out", arrays.toReversed()],
  ] as [string, [Made[], Made[]]][]) {
    test(`${dialect}: ${what}, ${way} by a round trip, is no rewrite`, async () => {
      await using store = await openStore("memory:");
      const session = await store.create<Made>({ dialect: dialect as Made });
      await session.sync(structuredClone(first));
      const { entries } = session;
      expect(entries).toHaveLength(3);
      expect(await session.sync(structuredClone(second), { rewrite: "error" })).toEqual({ appended: [], epoch: false });
      expect(session.entries).toEqual(entries);
      const { id } = session;
      await session.close();
      const resumed = await store.resume<Made>(id);
      expect(await resumed.sync(structuredClone(second), { rewrite: "error" })).toEqual({ appended: [], epoch: false });
    });
  }
}
