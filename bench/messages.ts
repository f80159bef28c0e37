import type { DialectName } from "holdfast";
import type { NewRecord } from "holdfast/store";
import { randomFrom } from "./statistics.ts";

/** One message of the mix, ready before any clock runs. */
export interface Entry {
  readonly message: unknown;
  /** What the journal is given for it. */
  readonly record: NewRecord;
  /** Size of the message as JSON. */
  readonly bytes: number;
}

/** Mean sizes in bytes of JSON (research/perf.md, section 1). */
const MEAN_BYTES = { prompt: 307, call: 1221, result: 4319, answer: 1221 } as const;
const NOT_LATIN_SHARE = 0.05;

const LATIN =
  "the file and its test read a line of code from src/index.ts then write what changed run it again see why that fails " +
  'const result = await store.open(id); if (!result.ok) { throw new Error("not found"); }\n return { status: 200, body };\n';
const NOT_LATIN = "файл и его проверка 文件和它的测试 読み込み ✓ → “done” 🙂 ";

export type Spoken = DialectName;
type Kind = "prompt" | "call" | "result" | "answer";

/** Messages in equal parts of three kinds, whatever their order would mean to a model. */
export function makeEntries(count: number): Entry[] {
  const kinds: readonly Kind[] = ["prompt", "call", "result"];
  return entriesOf("ai-sdk", count, (i) => kinds[i % 3]!);
}

/** How many messages a turn of `makeConversation` has. */
export const PER_TURN = 10;

/** Messages as they come in an agent: a prompt, four calls with their results, an answer; about 2 KB each. */
export function makeConversation(count: number, dialect: Spoken): Entry[] {
  return entriesOf(dialect, count, (i) => {
    const at = i % PER_TURN;
    if (at === 0) return "prompt";
    return at === PER_TURN - 1 ? "answer" : at % 2 === 1 ? "call" : "result";
  });
}

/**
 * Sizes are ±50 % around their means, about one in twenty has text outside Latin-1 (which V8 keeps in two bytes per
 * character, and JSON in up to three). Every tool result answers the call right before it.
 */
function entriesOf(dialect: Spoken, count: number, kindOf: (i: number) => Kind): Entry[] {
  const random = randomFrom(1);
  const shapes = SHAPES[dialect];
  let callId = "";
  const latin = LATIN.split(" ");
  const other = NOT_LATIN.split(" ");
  const text = (bytes: number, words: readonly string[]): string => {
    const parts: string[] = [];
    for (let size = 0; size < bytes; ) {
      const word = words[Math.floor(random() * words.length)]!;
      parts.push(word);
      size += Buffer.byteLength(JSON.stringify(word)) - 1;
    }
    return parts.join(" ");
  };
  return Array.from({ length: count }, (_, i) => {
    const kind = kindOf(i);
    const target = MEAN_BYTES[kind] * (0.5 + random());
    const words = random() < NOT_LATIN_SHARE ? [...latin.slice(0, 20), ...other] : latin;
    if (kind === "call") callId = `call_${Math.floor(random() * 1e12).toString(36)}`;
    const content = (bytes: number): string => text(Math.max(1, bytes), words);
    const shape = (): unknown => {
      if (kind === "prompt") return shapes.prompt(content(target - 35));
      if (kind === "answer") return shapes.answer(content(target - 65));
      if (kind === "result") return shapes.result(callId, content(target - 135));
      const input = { path: "src/index.ts", text: content((target - 190) / 2) };
      return shapes.call(callId, input, content((target - 190) / 2));
    };
    // Through JSON once, so that strings are flat: the first side to touch a rope would pay for the other one too.
    const json = JSON.stringify(shape());
    const message = JSON.parse(json) as unknown;
    const record = { kind: "message", id: identity(random), turn: 1 + Math.floor(i / 30), message };
    return { message, record, bytes: Buffer.byteLength(json) };
  });
}

/** A prompt, an assistant's message with one call, the message that answers it, and the last answer of a turn. */
interface Shapes {
  prompt(text: string): unknown;
  call(id: string, input: object, text: string): unknown;
  result(id: string, value: string): unknown;
  answer(text: string): unknown;
}

const PLAIN = {
  prompt: (content: string) => ({ role: "user", content }),
  answer: (text: string) => ({ role: "assistant", content: [{ type: "text", text }] }),
};

const SHAPES: Record<Spoken, Shapes> = {
  "ai-sdk": {
    ...PLAIN,
    call: (toolCallId, input, text) => ({
      role: "assistant",
      content: [
        { type: "text", text },
        { type: "tool-call", toolCallId, toolName: "edit", input },
      ],
    }),
    result: (toolCallId, value) => ({
      role: "tool",
      content: [{ type: "tool-result", toolCallId, toolName: "edit", output: { type: "text", value } }],
    }),
  },
  anthropic: {
    ...PLAIN,
    call: (id, input, text) => ({
      role: "assistant",
      content: [
        { type: "text", text },
        { type: "tool_use", id, name: "edit", input },
      ],
    }),
    result: (tool_use_id, content) => ({
      role: "user",
      content: [{ type: "tool_result", tool_use_id, content }],
    }),
  },
  "openai-chat": {
    prompt: PLAIN.prompt,
    call: (id, input, content) => ({
      role: "assistant",
      content,
      tool_calls: [{ id, type: "function", function: { name: "edit", arguments: JSON.stringify(input) } }],
    }),
    result: (tool_call_id, content) => ({ role: "tool", tool_call_id, content }),
    answer: (content) => ({ role: "assistant", content }),
  },
  // A call is an item of its own, so its text is one more argument.
  "openai-responses": {
    prompt: PLAIN.prompt,
    call: (call_id, input, why) => ({
      type: "function_call",
      call_id,
      name: "edit",
      arguments: JSON.stringify({ ...input, why }),
    }),
    result: (call_id, output) => ({ type: "function_call_output", call_id, output }),
    answer: (text) => ({
      type: "message",
      role: "assistant",
      status: "completed",
      content: [{ type: "output_text", text, annotations: [] }],
    }),
  },
  gemini: {
    prompt: (text) => ({ role: "user", parts: [{ text }] }),
    call: (id, args, text) => ({ role: "model", parts: [{ text }, { functionCall: { id, name: "edit", args } }] }),
    result: (id, output) => ({
      role: "user",
      parts: [{ functionResponse: { id, name: "edit", response: { output } } }],
    }),
    answer: (text) => ({ role: "model", parts: [{ text }] }),
  },
  acp: {
    prompt: (text) => ({ prompt: [{ type: "text", text }] }),
    call: (toolCallId, rawInput, title) => ({
      sessionUpdate: "tool_call",
      toolCallId,
      title,
      kind: "edit",
      status: "pending",
      rawInput,
    }),
    result: (toolCallId, text) => ({
      sessionUpdate: "tool_call_update",
      toolCallId,
      status: "completed",
      content: [{ type: "content", content: { type: "text", text } }],
    }),
    answer: (text) => ({ sessionUpdate: "agent_message_chunk", content: { type: "text", text } }),
  },
};

function identity(random: () => number): string {
  const hex = Array.from({ length: 32 }, () => Math.floor(random() * 16).toString(16)).join("");
  return `${hex.slice(0, 8)}-${hex.slice(8, 12)}-7${hex.slice(13, 16)}-a${hex.slice(17, 20)}-${hex.slice(20)}`;
}
