import { validateAiSdk } from "../providers/ai-sdk.ts";
import { validateAnthropic } from "../providers/anthropic.ts";
import { signResponse } from "../providers/anthropic-thinking.ts";
import { signPart, validateGemini } from "../providers/gemini.ts";
import { validateOpenaiChat } from "../providers/openai-chat.ts";
import { validateOpenaiResponses } from "../providers/openai-responses.ts";
import type { Json, Violation } from "../providers/violation.ts";

/** A message in any dialect: plain JSON. */
export type Message = Json;

/** One response of the scripted model, before it is put in a dialect. */
export interface Step {
  /** Unique in the session: servers give no id twice. */
  readonly serial: string;
  readonly reasoning: string | null;
  readonly text: string | null;
  readonly calls: readonly ModelCall[];
}

export interface ModelCall {
  readonly id: string;
  readonly name: string;
  readonly input: Json;
}

/** How the laboratory speaks a dialect, and how strict its provider is. */
export interface Voice {
  readonly dialect: VoiceName;
  user(text: string): Message;
  /** The messages of one response to `view`, signed where the provider does that. */
  step(step: Step, view: readonly Message[]): Message[];
  /** The messages that hold these results. */
  results(results: readonly { readonly call: ModelCall; readonly text: string }[]): Message[];
  /** A call and its results as a sentence, for an edit that replaces them. */
  said(serial: string, text: string): Message;
  /** The provider's verdict on a request; `steps` are the responses it gave. */
  judge(view: readonly Message[], steps: readonly (readonly Message[])[]): Violation[];
  /**
   * The part of a view that must stay the same as the conversation continues (the top of dialects/plan.ts): its
   * messages, or the blocks joined in them.
   */
  atoms(view: readonly Message[]): unknown[];
}

export const voiceNames = ["anthropic", "openai-chat", "openai-responses", "ai-sdk", "gemini"] as const;
export type VoiceName = (typeof voiceNames)[number];

const listOf = (value: unknown): readonly Json[] => (Array.isArray(value) ? (value as Json[]) : []);

const anthropic: Voice = {
  dialect: "anthropic",
  user: (text) => ({ role: "user", content: text }),
  step({ reasoning, text, calls }, view) {
    const content: Json[] = [];
    if (reasoning !== null) content.push({ type: "thinking", thinking: reasoning });
    if (text !== null) content.push({ type: "text", text });
    for (const { id, name, input } of calls) content.push({ type: "tool_use", id, name, input });
    return [{ role: "assistant", content: signResponse({ messages: view }, content) }];
  },
  // Its agents send one message for all results.
  results: (results) => [
    {
      role: "user",
      content: results.map(({ call, text }) => ({ type: "tool_result", tool_use_id: call.id, content: text })),
    },
  ],
  said: (_, text) => ({ role: "assistant", content: [{ type: "text", text }] }),
  judge: (view) => validateAnthropic(view),
  atoms: (view) =>
    view.flatMap(({ role, content }) =>
      (typeof content === "string" ? [{ type: "text", text: content }] : listOf(content)).map((block) => ({
        role,
        block,
      })),
    ),
};

const openaiChat: Voice = {
  dialect: "openai-chat",
  user: (text) => ({ role: "user", content: text }),
  step: ({ text, calls }) => [
    {
      role: "assistant",
      content: text,
      ...(calls.length > 0
        ? {
            tool_calls: calls.map(({ id, name, input }) => ({
              id,
              type: "function",
              function: { name, arguments: JSON.stringify(input) },
            })),
          }
        : {}),
    },
  ],
  results: (results) => results.map(({ call, text }) => ({ role: "tool", tool_call_id: call.id, content: text })),
  said: (_, text) => ({ role: "assistant", content: text }),
  judge: (view) => validateOpenaiChat(view),
  atoms: (view) => [...view],
};

const openaiResponses: Voice = {
  dialect: "openai-responses",
  user: (text) => ({ type: "message", role: "user", content: text }),
  step({ serial, reasoning, text, calls }) {
    const items: Json[] = [];
    if (reasoning !== null)
      items.push({ type: "reasoning", id: `rs_${serial}`, summary: [], encrypted_content: `secret ${reasoning}` });
    if (text !== null) items.push(this.said(serial, text));
    for (const [index, { id, name, input }] of calls.entries())
      items.push({
        type: "function_call",
        id: `fc_${serial}_${index}`,
        call_id: id,
        name,
        arguments: JSON.stringify(input),
      });
    return items;
  },
  results: (results) =>
    results.map(({ call, text }) => ({ type: "function_call_output", call_id: call.id, output: text })),
  said: (serial, text) => ({
    type: "message",
    id: `msg_${serial}`,
    role: "assistant",
    status: "completed",
    content: [{ type: "output_text", text, annotations: [] }],
  }),
  judge: (view, steps) => validateOpenaiResponses(view, { responses: steps }),
  atoms: (view) => [...view],
};

const aiSdk: Voice = {
  dialect: "ai-sdk",
  user: (text) => ({ role: "user", content: [{ type: "text", text }] }),
  step({ serial, reasoning, text, calls }) {
    const content: Json[] = [];
    if (reasoning !== null)
      content.push({
        type: "reasoning",
        text: reasoning,
        providerOptions: { anthropic: { signature: `sig ${serial}` } },
      });
    if (text !== null) content.push({ type: "text", text });
    for (const { id, name, input } of calls) content.push({ type: "tool-call", toolCallId: id, toolName: name, input });
    return [{ role: "assistant", content }];
  },
  results: (results) => [
    {
      role: "tool",
      content: results.map(({ call, text }) => ({
        type: "tool-result",
        toolCallId: call.id,
        toolName: call.name,
        output: { type: "text", value: text },
      })),
    },
  ],
  said: (_, text) => ({ role: "assistant", content: [{ type: "text", text }] }),
  judge: (view) => validateAiSdk(view),
  atoms: (view) =>
    view.flatMap((message): unknown[] =>
      message["role"] === "assistant" && Array.isArray(message["content"])
        ? listOf(message["content"]).map((part) => ({ role: "assistant", part }))
        : [message],
    ),
};

const gemini: Voice = {
  dialect: "gemini",
  user: (text) => ({ role: "user", parts: [{ text }] }),
  step({ reasoning, text, calls }) {
    const parts: Json[] = [];
    if (reasoning !== null) parts.push({ text: reasoning, thought: true });
    if (text !== null) parts.push({ text });
    for (const [index, { id, name, input }] of calls.entries()) {
      const part = { functionCall: { id, name, args: input } };
      // Gemini 3 signs the first call of each step.
      parts.push(index === 0 ? { ...part, thoughtSignature: signPart(part) } : part);
    }
    return [{ role: "model", parts }];
  },
  results: (results) => [
    {
      role: "user",
      parts: results.map(({ call, text }) => ({
        functionResponse: { id: call.id, name: call.name, response: { output: text } },
      })),
    },
  ],
  said: (_, text) => ({ role: "model", parts: [{ text }] }),
  judge: (view) => validateGemini(view),
  atoms: (view) => view.flatMap(({ role, parts }) => listOf(parts).map((part) => ({ role, part }))),
};

const voices: Record<VoiceName, Voice> = {
  anthropic,
  "openai-chat": openaiChat,
  "openai-responses": openaiResponses,
  "ai-sdk": aiSdk,
  gemini,
};

export const voiceOf = (name: VoiceName): Voice => voices[name];
