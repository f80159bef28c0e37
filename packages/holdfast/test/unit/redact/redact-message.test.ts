import { isDeepStrictEqual } from "node:util";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { encodeBytes } from "../../../src/dialects/bytes.ts";
import type { Json } from "../../../src/journal/record.ts";
import { credentials } from "../../../src/redact/find-credentials.ts";
import { redactJson, redactMessage } from "../../../src/redact/message.ts";
import { holds, seedOf } from "../../seed.ts";
import { happenings, spoken } from "../dialects/dialect-conversations.ts";
import { voices } from "../dialects/dialect-voices.ts";
import { json, plainName } from "../journal/arbitraries.ts";
import { noise } from "./redact-samples.ts";

const seed = seedOf(import.meta.url, "unit");

const KEY = `ghp_${noise(36)}`;
const GONE = "[redacted:github]";
/** Bytes that happen to look like a key in the middle. */
const IMAGE = `${noise(80)}/AKIA${"A".repeat(16)}/${noise(200)}==`;
const shout = (text: string): string => text.toUpperCase();

function stays(message: Json, redact = credentials): void {
  expect(redactMessage(message, redact)).toEqual({ value: message, changed: false });
  expect(redactMessage(message, redact).value).toBe(message);
}
function becomes(message: Json, redacted: Json, redact = credentials): void {
  expect(redactMessage(message, redact)).toEqual({ value: redacted, changed: true });
}

describe("texts", () => {
  test("of every dialect", () => {
    const call = (text: string): Json => ({ path: "a", header: text });
    const made: ((text: string) => Json)[] = [
      (text) => ({ role: "user", content: text }),
      (text) => ({ role: "user", content: [{ type: "text", text }] }),
      (text) => ({ role: "assistant", content: [{ type: "tool_use", id: "t1", name: "read", input: call(text) }] }),
      (text) => ({ role: "user", content: [{ type: "tool_result", tool_use_id: "t1", content: text }] }),
      (text) => ({
        role: "user",
        content: [{ type: "tool_result", tool_use_id: "t1", content: [{ type: "text", text }] }],
      }),
      (text) => ({
        role: "user",
        content: [{ type: "document", source: { type: "text", media_type: "text/plain", data: text } }],
      }),
      (text) => ({ role: "assistant", content: [{ type: "thinking", thinking: text }] }),
      (text) => ({
        role: "assistant",
        content: [{ type: "tool-call", toolCallId: "c", toolName: "r", input: call(text) }],
      }),
      (text) => ({
        role: "tool",
        content: [{ type: "tool-result", toolCallId: "c", toolName: "r", output: { type: "text", value: text } }],
      }),
      (text) => ({
        role: "tool",
        content: [
          { type: "tool-result", toolCallId: "c", toolName: "r", output: { type: "json", value: [call(text)] } },
        ],
      }),
      (text) => ({ role: "assistant", content: [{ type: "reasoning", text }] }),
      (text) => ({ role: "tool", tool_call_id: "c", content: text }),
      (text) => ({ role: "assistant", content: null, refusal: text }),
      (text) => ({ type: "function_call_output", call_id: "c", output: text }),
      (text) => ({ type: "custom_tool_call", call_id: "c", name: "patch", input: text }),
      (text) => ({
        type: "local_shell_call",
        call_id: "c",
        action: { type: "exec", command: ["echo", text], env: {} },
      }),
      (text) => ({ type: "message", role: "assistant", content: [{ type: "output_text", text, annotations: [] }] }),
      (text) => ({ role: "user", parts: [{ text }] }),
      (text) => ({ role: "model", parts: [{ functionCall: { name: "r", args: call(text) } }] }),
      (text) => ({ role: "user", parts: [{ functionResponse: { name: "r", response: { output: text } } }] }),
      (text) => ({ sessionUpdate: "agent_message_chunk", content: { type: "text", text } }),
      (text) => ({ sessionUpdate: "tool_call", toolCallId: "c", title: text, rawInput: { command: text } }),
      (text) => ({ prompt: [{ type: "resource", resource: { uri: "file:///a", text } }] }),
    ];
    for (const make of made) {
      becomes(make(`x ${KEY} y`), make(`x ${GONE} y`));
      stays(make("nothing to see"));
    }
  });

  test("what a secret is called tells that it is one", () => {
    const input = { password: "hunter2hunter2", env: { API_TOKEN: noise(20) }, name: "build 2" };
    becomes(
      { type: "tool_use", id: "t", name: "run", input },
      {
        type: "tool_use",
        id: "t",
        name: "run",
        input: { password: "[redacted:secret]", env: { API_TOKEN: "[redacted:secret]" }, name: "build 2" },
      },
    );
  });

  test("in a tool's own JSON, nothing is structure", () => {
    becomes(
      { type: "tool_use", id: "t", name: "run", input: { id: KEY, type: KEY, name: KEY, signature: KEY } },
      { type: "tool_use", id: "t", name: "run", input: { id: GONE, type: GONE, name: GONE, signature: GONE } },
    );
  });

  test("an address with a password, also as the dialect stores a URL", () => {
    const stored = encodeBytes({
      role: "user",
      content: [{ type: "file", data: new URL("https://a:b1@c.example/d") }],
    });
    const { value } = redactMessage(stored, credentials);
    expect(JSON.stringify(value)).toContain("https://a:[redacted:url-password]@c.example/d");
    const href = (value as { content: { data: { href: string } }[] }).content[0]!.data.href;
    expect(URL.canParse(href)).toBe(true);
    const { value: shouted } = redactMessage(stored, () => "no address");
    expect(JSON.stringify(shouted)).toContain('"href":"redacted:"');
  });

  test("a member called __proto__ is a member", () => {
    const value = JSON.parse(`{"role":"user","content":[{"type":"text","__proto__":"${KEY}"}]}`) as Json;
    const text = JSON.stringify(redactMessage(value, credentials).value);
    expect(text).toBe(`{"role":"user","content":[{"type":"text","__proto__":"${GONE}"}]}`);
  });
});

describe("never touched", () => {
  test("ids and structure, whatever they look like", () => {
    stays({ role: "assistant", content: [{ type: "tool_use", id: KEY, name: KEY, input: {} }] });
    stays({ role: "user", content: [{ type: "tool_result", tool_use_id: KEY, content: "" }] });
    stays({ role: "tool", tool_call_id: KEY, content: "" });
    stays({ type: "function_call_output", call_id: KEY, output: "", caller: { type: "direct", caller_id: KEY } });
    stays({ role: "tool", content: [{ type: "tool-result", toolCallId: KEY, toolName: KEY }] });
    stays({ sessionId: KEY, update: { sessionUpdate: "tool_call", toolCallId: KEY } });
    becomes(
      { role: "user", name: "ada", content: [{ type: "text", text: "hello" }] },
      { role: "user", name: "ada", content: [{ type: "text", text: "HELLO" }] },
      shout,
    );
  });

  const text = `it is ${KEY}`;
  test.each<[string, Json]>([
    ["anthropic", { type: "thinking", thinking: text, signature: "s" }],
    ["anthropic", { type: "redacted_thinking", data: text }],
    ["anthropic", { type: "web_search_result", title: text, encrypted_content: "e" }],
    ["openai-responses", { type: "reasoning", id: "rs_1", summary: [{ type: "summary_text", text }] }],
    ["openai-responses", { type: "program", call_id: "c", code: text, fingerprint: "f" }],
    ["openai-responses", { type: "compaction", encrypted_content: text }],
    ["openai-chat", { type: "reasoning.text", text, signature: "s" }],
    ["openai-chat", { type: "reasoning.encrypted", data: text }],
    [
      "openai-chat with Gemini",
      { id: "c", function: { name: "r", arguments: text }, extra_content: { google: { thought_signature: "s" } } },
    ],
    ["gemini", { text, thoughtSignature: "s" }],
    ["gemini", { functionCall: { name: "r", args: { text } }, thoughtSignature: "s" }],
    ["ai-sdk", { type: "reasoning", text, providerOptions: { anthropic: { signature: "s" } } }],
    ["ai-sdk", { type: "reasoning", text, providerOptions: { anthropic: { redactedData: "s" } } }],
    ["ai-sdk", { type: "reasoning", text, providerOptions: { openai: { itemId: "rs_1" } } }],
    ["ai-sdk", { type: "tool-call", input: { text }, providerMetadata: { google: { thoughtSignature: "s" } } }],
    ["ai-sdk", { type: "reasoning", text, providerOptions: { openai: { reasoningEncryptedContent: "e" } } }],
  ])("a part that a signature covers: %s %j", (_, part) => {
    for (const redact of [credentials, shout]) {
      stays(part, redact);
      const { value } = redactMessage({ role: "assistant", content: [part, { type: "text", text }] }, redact);
      const [first, second] = (value as unknown as { content: Json[] }).content;
      expect(first).toBe(part);
      expect(second).not.toEqual({ type: "text", text });
    }
  });

  test("an id of the provider's names a text, and does not cover it", () => {
    const providerOptions = { openai: { itemId: "msg_1" } };
    becomes({ type: "text", text, providerOptions }, { type: "text", text: `it is ${GONE}`, providerOptions });
  });

  test("a signature that is empty covers nothing", () => {
    becomes(
      { type: "thinking", thinking: text, signature: "" },
      { type: "thinking", thinking: `it is ${GONE}`, signature: "" },
    );
  });

  test("bytes", () => {
    stays({ type: "image", source: { type: "base64", media_type: "image/png", data: IMAGE } });
    stays({ type: "image_url", image_url: { url: `data:image/png;base64,${IMAGE}` } });
    stays({ type: "input_image", image_url: `data:image/png;base64,${IMAGE}` });
    stays({ type: "input_audio", input_audio: { data: IMAGE, format: "wav" } });
    stays({ role: "assistant", content: null, audio: { id: "a", data: IMAGE, transcript: "hi" } });
    stays({ type: "image_generation_call", id: "ig", status: "completed", result: IMAGE });
    stays({ role: "user", parts: [{ inlineData: { mimeType: "image/png", data: IMAGE } }] });
    stays({ type: "file", mediaType: "image/png", data: IMAGE });
    stays({ type: "image", image: IMAGE });
    stays({ type: "image", mimeType: "image/png", data: IMAGE });
    stays({ type: "resource", resource: { uri: "file:///a", blob: IMAGE } });
    stays(encodeBytes({ type: "file", data: new Uint8Array(Buffer.from(IMAGE, "base64")) }));
    stays({
      type: "tool-result",
      output: { type: "content", value: [{ type: "media", mediaType: "image/png", data: IMAGE }] },
    });
    stays({
      type: "tool-result",
      output: { type: "json", value: [{ type: "image", mimeType: "image/png", data: IMAGE }] },
    });
    expect(credentials(IMAGE)).not.toBe(IMAGE);
  });
});

describe("input as JSON text", () => {
  const made = (args: string): Json => ({
    role: "assistant",
    tool_calls: [{ id: "c", type: "function", function: { name: "r", arguments: args } }],
  });

  test("stays JSON, without its white space", () => {
    const args = `{ "n": 1e3, "k" : "a \\"${KEY}\\"\\n", "password":"hunter2hunter2","l":["${KEY}"] }`;
    becomes(made(args), made(`{"n":1000,"k":"a \\"${GONE}\\"\\n","password":"[redacted:secret]","l":["${GONE}"]}`));
  });

  test("unchanged if there is nothing to redact", () => {
    stays(made('{ "path" : "\\u0061.txt" }'));
  });

  test("cut off in the stream: a text", () => {
    becomes(made(`{"path":"${KEY}`), made(`{"path":"${GONE}`));
  });

  test("any JSON means the same as if it had been redacted as it is", () => {
    const text = fc.oneof(
      fc.string({ unit: "binary" }),
      fc.constantFrom(KEY, `a "${KEY}"`, "\\", '"', "hunter2hunter2"),
    );
    const name = fc.oneof(plainName, fc.constantFrom("password", "id", "token"));
    const value = fc.letrec((tie) => ({
      json: fc.oneof({ depthSize: "small" }, text, fc.integer(), fc.constant(null), tie("list"), tie("object")),
      list: fc.array(tie("json"), { maxLength: 4 }),
      object: fc.dictionary(name, tie("json"), { maxKeys: 4 }),
    })).object as fc.Arbitrary<Json>;
    holds(
      fc.property(value, fc.constantFrom(undefined, 1), (input, indent) => {
        // Names such as "10" move to the front when they are parsed: only what was parsed before can be compared.
        const args = JSON.stringify(input, null, indent);
        const { value: redacted } = redactMessage({ function: { arguments: args } }, credentials);
        const found = (redacted as { function: { arguments: string } }).function.arguments;
        const expected = redactJson(JSON.parse(args) as Json, credentials).value;
        expect(isDeepStrictEqual(JSON.parse(found), expected)).toBe(true);
      }),
      seed,
      500,
    );
  });
});

describe("any message", () => {
  test("any JSON is answered, redacting twice changes nothing, and what is unchanged is the same", () => {
    holds(
      fc.property(json as fc.Arbitrary<Json>, (value) => {
        for (const redact of [redactMessage, redactJson]) {
          const once = redact(value, credentials);
          expect(once.changed).toBe(once.value !== value);
          expect(redact(once.value, credentials).changed).toBe(false);
          expect(redact(value, (text) => text)).toEqual({ value, changed: false });
        }
      }),
      seed,
      500,
    );
  });

  test.each(voices)(
    "$dialect.name: calls, results and their ids are found as before, whatever a redactor does to texts",
    (voice) => {
      const { dialect } = voice;
      holds(
        fc.property(happenings, (conversation) => {
          for (const { message } of spoken(voice, conversation)) {
            const stored = dialect.encode ? dialect.encode(message) : (message as Json);
            const { value } = redactMessage(stored, (text) => `<${text}>`);
            const read: unknown = dialect.decode ? dialect.decode(value) : value;
            expect(dialect.check(read)).toBe(dialect.check(message));
            expect(dialect.role(read)).toBe(dialect.role(message));
            expect(dialect.results(read)).toEqual(dialect.results(message));
            const facts = ({ id, by, awaiting }: { id: string; by: string; awaiting?: boolean }) => ({
              id,
              by,
              awaiting,
            });
            expect(dialect.calls(read).map(facts)).toEqual(dialect.calls(message).map(facts));
          }
        }),
        seed,
        100,
      );
    },
  );
});
