import { describe, expect, test } from "vitest";
import { type DialectName, dialects, partsOf } from "../../../../src/dialects/index.ts";

const parts = (name: DialectName, message: unknown): unknown[] => partsOf(message, dialects[name]);
const PNG = "iVBORw0KGgo=";
const png = { mediaType: "image/png", data: PNG, bytes: 8 };
const done = { type: "result", failed: false, files: [] };

describe("anthropic", () => {
  const answered = (block: object): unknown[] =>
    parts("anthropic", { role: "user", content: [{ type: "tool_result", tool_use_id: "a", ...block }] });

  test("thoughts, files by content and by address, documents of text", () => {
    const content = [
      { type: "thinking", thinking: "hm", signature: "s" },
      { type: "redacted_thinking", data: "x" },
      { type: "image", source: { type: "base64", media_type: "image/png", data: PNG } },
      { type: "image", source: { type: "url", url: "https://a.example/b" } },
      { type: "document", title: "notes", source: { type: "text", media_type: "text/plain", data: "hello" } },
    ];
    expect(parts("anthropic", { role: "assistant", content })).toEqual([
      { type: "reasoning", text: "hm" },
      { type: "file", file: png },
      { type: "file", file: { mediaType: "image", url: "https://a.example/b" } },
      { type: "file", file: { mediaType: "text/plain", name: "notes", data: "aGVsbG8=", bytes: 5 } },
    ]);
  });

  test("results: text, lists with files, errors, and those of the provider's tools", () => {
    expect(answered({ content: "ok" })).toEqual([{ ...done, call: "a", text: "ok" }]);
    expect(answered({ content: "no", is_error: true })).toMatchObject([{ text: "no", failed: true }]);
    const image = { type: "image", source: { type: "base64", data: PNG } };
    const found = { type: "search_result", title: "t", encrypted_content: "x" };
    expect(answered({ content: [{ type: "text", text: "one" }, image, found] })).toEqual([
      { ...done, call: "a", text: 'one\n{"type":"search_result","title":"t"}', files: [png] },
    ]);
    const error = { type: "web_search_tool_result_error", error_code: "max_uses_exceeded" };
    const content = [{ type: "web_search_tool_result", tool_use_id: "b", content: error }];
    expect(parts("anthropic", { role: "assistant", content })).toEqual([
      { ...done, call: "b", text: JSON.stringify(error), json: error, failed: true },
    ]);
  });
});

test("ai-sdk: files of every kind, results of every kind", () => {
  const content = [
    { type: "image", image: new Uint8Array(Buffer.from(PNG, "base64")) },
    { type: "file", data: new URL("https://a.example/b.pdf"), mediaType: "application/pdf", filename: "b.pdf" },
    { type: "file", data: "data:text/plain,a%20b", mediaType: "text/plain" },
  ];
  expect(parts("ai-sdk", { role: "user", content })).toEqual([
    { type: "file", file: png },
    { type: "file", file: { mediaType: "application/pdf", name: "b.pdf", url: "https://a.example/b.pdf" } },
    { type: "file", file: { mediaType: "text/plain", data: "YSBi", bytes: 3 } },
  ]);
  const told = (output: object) =>
    parts("ai-sdk", { role: "tool", content: [{ type: "tool-result", toolCallId: "a", toolName: "read", output }] })[0];
  const read = { ...done, call: "a", name: "read" };
  expect(told({ type: "text", value: "ok" })).toEqual({ ...read, text: "ok" });
  expect(told({ type: "json", value: { n: 1 } })).toEqual({ ...read, text: '{"n":1}', json: { n: 1 } });
  expect(told({ type: "error-json", value: { n: 1 } })).toMatchObject({ failed: true, json: { n: 1 } });
  expect(told({ type: "execution-denied" })).toEqual({ ...read, text: "Denied.", failed: true, denied: true });
  const rich = [
    { type: "text", text: "one" },
    { type: "image-data", data: PNG, mediaType: "image/png" },
    { type: "x" },
  ];
  expect(told({ type: "content", value: rich })).toEqual({ ...read, text: "one", files: [png] });
});

test("openai-chat: reasoning under any of its names, refusals, files, results with files", () => {
  const call = { id: "a", type: "function", function: { name: "read", arguments: '{"path":"b"}' } };
  const made = { type: "call", id: "a", name: "read", input: { path: "b" }, by: "agent" };
  for (const thought of [
    { reasoning_content: "hm" },
    { reasoning: "hm" },
    { reasoning_details: [{ text: "" }, { summary: "hm" }] },
  ]) {
    expect(parts("openai-chat", { role: "assistant", content: null, ...thought, tool_calls: [call] })).toEqual([
      { type: "reasoning", text: "hm" },
      made,
    ]);
  }
  expect(parts("openai-chat", { role: "assistant", content: null, refusal: "no" })).toEqual([
    { type: "text", text: "no" },
  ]);
  const image = { type: "image_url", image_url: { url: `data:image/png;base64,${PNG}` } };
  const file = { type: "file", file: { filename: "a.pdf", file_data: "data:application/pdf;base64,JVBERi0=" } };
  const words = { type: "text", text: "Error: no" };
  expect(parts("openai-chat", { role: "tool", tool_call_id: "a", content: [words, image, file] })).toEqual([
    {
      ...done,
      call: "a",
      text: "Error: no",
      failed: true,
      files: [png, { mediaType: "application/pdf", name: "a.pdf", data: "JVBERi0=", bytes: 5 }],
    },
  ]);
});

test("openai-responses: reasoning, decisions, and the results of every kind of item", () => {
  const summary = [
    { type: "summary_text", text: "one" },
    { type: "summary_text", text: "two" },
  ];
  expect(parts("openai-responses", { type: "reasoning", id: "r", summary })).toEqual([
    { type: "reasoning", text: "one\n\ntwo" },
  ]);
  expect(parts("openai-responses", { type: "mcp_approval_response", approval_request_id: "q", approve: true })).toEqual(
    [{ type: "approval", approval: "q", approved: true }],
  );
  const told = (item: object) => parts("openai-responses", { call_id: "a", id: "a", ...item }).at(-1);
  expect(told({ type: "function_call_output", output: "ok" })).toEqual({ ...done, call: "a", text: "ok" });
  expect(told({ type: "function_call_output", output: "Error: no" })).toMatchObject({ failed: true });
  expect(told({ type: "image_generation_call", status: "completed", result: PNG })).toMatchObject({ files: [png] });
  expect(told({ type: "mcp_call", error: { message: "gone" } })).toMatchObject({ text: "gone", failed: true });
  expect(told({ type: "mcp_call", status: "incomplete" })).toMatchObject({ text: "", failed: true });
  const screen = { type: "computer_screenshot", image_url: `data:image/png;base64,${PNG}` };
  expect(told({ type: "computer_call_output", output: screen })).toMatchObject({ text: "", files: [png] });
  const shell = (outcome: object) => ({
    type: "shell_call_output",
    output: [{ stdout: "out", stderr: "err", outcome }, { logs: "log" }, { text: "words" }, { n: 1 }],
  });
  expect(told(shell({ type: "exit", exit_code: 0 }))).toMatchObject({
    text: 'outerr\nlog\nwords\n{"n":1}',
    failed: false,
  });
  expect(told(shell({ type: "exit", exit_code: 2 }))).toMatchObject({ failed: true });
  expect(told(shell({ type: "timeout" }))).toMatchObject({ failed: true });
});

test("gemini: thoughts, stored files, and what a response says", () => {
  const content = [{ text: "hm", thought: true }, { fileData: { fileUri: "gs://a/b.png", mimeType: "image/png" } }];
  expect(parts("gemini", { role: "model", parts: content })).toEqual([
    { type: "reasoning", text: "hm" },
    { type: "file", file: { mediaType: "image/png", url: "gs://a/b.png" } },
  ]);
  const told = (response: unknown, rest: object = {}) =>
    parts("gemini", { role: "user", parts: [{ functionResponse: { id: "a", name: "read", response, ...rest } }] })[0];
  const read = { ...done, call: "a", name: "read" };
  expect(told({ output: "ok" })).toEqual({ ...read, text: "ok" });
  expect(told({ result: null })).toEqual({ ...read, text: "", json: null });
  expect(told({ output: 1, more: 2 })).toEqual({
    ...read,
    text: '{"output":1,"more":2}',
    json: { output: 1, more: 2 },
  });
  expect(told({ error: "no" })).toEqual({ ...read, text: "no", failed: true });
  const inline = { parts: [{ inlineData: { mimeType: "image/png", data: PNG } }, { text: "x" }] };
  expect(told({ output: "ok" }, inline)).toEqual({ ...read, text: "ok", files: [png] });
  const ran = { codeExecutionResult: { outcome: "OUTCOME_FAILED", output: "trace" } };
  const code = { executableCode: { code: "1/0" } };
  expect(parts("gemini", { role: "model", parts: [code, ran] })).toMatchObject([
    { type: "call", name: "code execution", input: "1/0", by: "provider" },
    { type: "result", text: "trace", failed: true },
  ]);
});

test("acp: prompts, plans, calls that run, and what they end with", () => {
  const resource = { uri: "file:///a", mimeType: "text/x", text: "hi" };
  const prompt = [
    { type: "text", text: "go" },
    { type: "resource", resource },
    { type: "resource_link", uri: "a:b" },
  ];
  expect(parts("acp", { sessionId: "s", prompt })).toEqual([
    { type: "text", text: "go" },
    { type: "file", file: { mediaType: "text/x", name: "file:///a", data: "aGk=", bytes: 2 } },
    { type: "file", file: { mediaType: "application/octet-stream", url: "a:b" } },
  ]);
  const entries = [{ content: "one", status: "completed" }, { content: "two" }];
  expect(parts("acp", { sessionUpdate: "plan", entries })).toEqual([{ type: "text", text: "[x] one\n[ ] two" }]);
  const about = { toolCallId: "a", title: "read" };
  expect(parts("acp", { update: { sessionUpdate: "tool_call", ...about, status: "in_progress" } })).toEqual([
    { type: "call", id: "a", name: "read", input: undefined, by: "agent" },
    { type: "progress", call: "a", name: "read", text: "", running: true },
  ]);
  const diff = { type: "diff", path: "f", oldText: "a\nb", newText: "c" };
  const content = [{ type: "content", content: { type: "text", text: "words" } }, diff];
  const update = { sessionUpdate: "tool_call_update", toolCallId: "a" };
  expect(parts("acp", { ...update, rawInput: 1, content })).toEqual([
    { type: "progress", call: "a", input: 1, text: "words\nf\n- a\n- b\n+ c", running: false },
  ]);
  expect(parts("acp", { ...update, status: "failed", rawOutput: { n: 1 } })).toEqual([
    { ...done, call: "a", text: '{"n":1}', json: { n: 1 }, failed: true },
  ]);
});
