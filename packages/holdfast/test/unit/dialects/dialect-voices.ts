import { acp } from "../../../src/dialects/acp.ts";
import { aiSdk } from "../../../src/dialects/ai-sdk.ts";
import { anthropic } from "../../../src/dialects/anthropic.ts";
import type { Dialect } from "../../../src/dialects/dialect.ts";
import { gemini } from "../../../src/dialects/gemini.ts";
import { openaiChat } from "../../../src/dialects/openai-chat.ts";
import { openaiResponses } from "../../../src/dialects/openai-responses.ts";

/** One call of a step that a test makes up. */
export interface MadeCall {
  /** Null: the server gave none. */
  readonly id: string | null;
  readonly name: string;
  readonly input: "whole" | "cut" | "null";
}

/** One response of a model that a test makes up. */
export interface MadeStep {
  readonly reasoning: "none" | "signed" | "unsigned";
  readonly text: string | null;
  readonly calls: readonly MadeCall[];
  /** Text that comes after the calls. */
  readonly after: string | null;
  /** A call that the provider runs by itself. */
  readonly provider: "none" | "finished" | "unfinished";
}

/** How a conversation that a test makes up is said in a dialect. A step may be several messages. */
export interface Voice {
  // biome-ignore lint/suspicious/noExplicitAny: each voice has messages of its own.
  readonly dialect: Dialect<any>;
  user(text: string): unknown;
  image(): unknown;
  system(text: string): unknown;
  step(step: MadeStep, serial: number): unknown[];
  result(call: MadeCall, text: string, failed: boolean): unknown;
  /**
   * What of a view has to stay as it is when the conversation goes on: its messages, or the blocks of which they are
   * joined.
   */
  atoms(view: readonly unknown[]): unknown[];
}

const OBJECT = { path: "a.txt" };
const inputOf = ({ input }: MadeCall): unknown =>
  input === "whole" ? OBJECT : input === "cut" ? '{"path":"a.t' : null;
const argumentsOf = ({ input }: MadeCall): unknown =>
  input === "whole" ? JSON.stringify(OBJECT) : input === "cut" ? '{"path":"a.t' : null;
const PIXEL = "iVBORw0KGgo=";

// biome-ignore lint/suspicious/noExplicitAny: made messages have the shapes that their voice gives them.
type Made = any;

const anthropicVoice: Voice = {
  dialect: anthropic,
  user: (text) => ({ role: "user", content: text }),
  image: () => ({
    role: "user",
    content: [{ type: "image", source: { type: "base64", media_type: "image/png", data: PIXEL } }],
  }),
  system: (text) => ({ role: "system", content: text }),
  step: ({ reasoning, text, calls, after, provider }, serial) => {
    const content: Made[] = [];
    if (reasoning !== "none") {
      const signature = reasoning === "signed" ? { signature: `sig ${serial}` } : {};
      content.push({ type: "thinking", thinking: "hm", ...signature });
    }
    if (text !== null) content.push({ type: "text", text });
    if (provider !== "none")
      content.push({ type: "server_tool_use", id: `srvtoolu_${serial}`, name: "web_search", input: {} });
    if (provider === "finished")
      content.push({ type: "web_search_tool_result", tool_use_id: `srvtoolu_${serial}`, content: ["hit"] });
    for (const call of calls) {
      content.push({
        type: "tool_use",
        ...(call.id === null ? {} : { id: call.id }),
        name: call.name,
        input: inputOf(call),
      });
    }
    if (after !== null) content.push({ type: "text", text: after });
    return [{ role: "assistant", content }];
  },
  result: ({ id }, text, failed) => ({
    role: "user",
    content: [
      {
        type: "tool_result",
        ...(id === null ? {} : { tool_use_id: id }),
        content: text,
        ...(failed ? { is_error: true } : {}),
      },
    ],
  }),
  atoms: (view) =>
    (view as Made[])
      .filter(({ role }) => role !== "system")
      .flatMap(({ role, content }) =>
        (typeof content === "string" ? [{ type: "text", text: content }] : content).map((block: Made) => ({
          role,
          block,
        })),
      ),
};

const chatVoice: Voice = {
  dialect: openaiChat,
  user: (text) => ({ role: "user", content: text }),
  image: () => ({
    role: "user",
    content: [{ type: "image_url", image_url: { url: `data:image/png;base64,${PIXEL}` } }],
  }),
  system: (text) => ({ role: "system", content: text }),
  step: ({ reasoning, text, calls, after }) => {
    const made: Made = { role: "assistant", content: text === null ? null : text + (after ?? "") };
    if (reasoning !== "none") made.reasoning_details = [{ type: "reasoning.text", text: "hm" }];
    if (reasoning === "signed") made.reasoning_details[0].signature = "sig";
    if (calls.length > 0) {
      made.tool_calls = calls.map((call) => ({
        ...(call.id === null ? {} : { id: call.id }),
        type: "function",
        function: { name: call.name, arguments: argumentsOf(call) },
      }));
    }
    return [made];
  },
  result: ({ id }, text) => ({ role: "tool", ...(id === null ? {} : { tool_call_id: id }), content: text }),
  atoms: (view) => [...view],
};

const responsesVoice: Voice = {
  dialect: openaiResponses,
  user: (text) => ({ role: "user", content: text }),
  image: () => ({
    type: "message",
    role: "user",
    content: [{ type: "input_image", image_url: `data:image/png;base64,${PIXEL}` }],
  }),
  system: (text) => ({ type: "message", role: "developer", content: text }),
  step: ({ reasoning, text, calls, after, provider }, serial) => {
    const items: Made[] = [];
    if (reasoning !== "none") {
      const encrypted = reasoning === "signed" ? { encrypted_content: `sig ${serial}` } : {};
      items.push({ type: "reasoning", id: `rs_${serial}`, summary: [], ...encrypted });
    }
    if (provider !== "none") {
      const status = provider === "finished" ? "completed" : "in_progress";
      items.push({ type: "web_search_call", id: `ws_${serial}`, status, action: { type: "search", query: "x" } });
    }
    const said = (id: string, words: string): Made => ({
      type: "message",
      id,
      role: "assistant",
      status: "completed",
      content: [{ type: "output_text", text: words, annotations: [] }],
    });
    if (text !== null) items.push(said(`msg_${serial}`, text));
    for (const [index, call] of calls.entries()) {
      items.push({
        type: "function_call",
        id: `fc_${serial}_${index}`,
        // Without one it is no item of this API.
        call_id: call.id ?? `no id of ${call.name}`,
        name: call.name,
        arguments: argumentsOf(call),
      });
    }
    if (after !== null) items.push(said(`msg_${serial}_2`, after));
    return items;
  },
  result: ({ id, name }, text) => ({
    type: "function_call_output",
    call_id: id ?? `no id of ${name}`,
    output: text,
  }),
  atoms: (view) => [...view],
};

const geminiVoice: Voice = {
  dialect: gemini,
  user: (text) => ({ role: "user", parts: [{ text }] }),
  image: () => ({ role: "user", parts: [{ inlineData: { mimeType: "image/png", data: PIXEL } }] }),
  system: (text) => ({ role: "user", parts: [{ text }] }),
  step: ({ reasoning, text, calls, after, provider }, serial) => {
    const parts: Made[] = [];
    if (reasoning !== "none") parts.push({ text: "hm", thought: true });
    if (text !== null) parts.push({ text });
    if (provider !== "none") parts.push({ toolCall: { id: `srv_${serial}`, toolType: "GOOGLE_SEARCH", args: {} } });
    if (provider === "finished")
      parts.push({ toolResponse: { id: `srv_${serial}`, toolType: "GOOGLE_SEARCH", response: {} } });
    for (const [index, call] of calls.entries()) {
      const made: Made = {
        functionCall: { ...(call.id === null ? {} : { id: call.id }), name: call.name, args: inputOf(call) },
      };
      if (reasoning === "signed" && index === 0) made.thoughtSignature = `sig ${serial}`;
      parts.push(made);
    }
    if (after !== null) parts.push({ text: after });
    return [{ role: "model", parts }];
  },
  result: ({ id, name }, text, failed) => ({
    role: "user",
    parts: [
      {
        functionResponse: {
          ...(id === null ? {} : { id }),
          name,
          response: failed ? { error: text } : { output: text },
        },
      },
    ],
  }),
  atoms: (view) => (view as Made[]).flatMap(({ role, parts }) => parts.map((part: Made) => ({ role, part }))),
};

const aiSdkVoice: Voice = {
  dialect: aiSdk,
  user: (text) => ({ role: "user", content: [{ type: "text", text }] }),
  image: () => ({
    role: "user",
    content: [{ type: "file", mediaType: "image/png", data: new Uint8Array([1, 2, 3]) }],
  }),
  system: (text) => ({ role: "system", content: text }),
  step: ({ reasoning, text, calls, after, provider }, serial) => {
    const content: Made[] = [];
    if (reasoning !== "none") {
      const signed = reasoning === "signed" ? { providerOptions: { anthropic: { signature: `sig ${serial}` } } } : {};
      content.push({ type: "reasoning", text: "hm", ...signed });
    }
    if (text !== null) content.push({ type: "text", text });
    const search = { toolCallId: `srvtoolu_${serial}`, toolName: "web_search" };
    if (provider !== "none") content.push({ type: "tool-call", ...search, input: {}, providerExecuted: true });
    if (provider === "finished") content.push({ type: "tool-result", ...search, output: { type: "json", value: [] } });
    for (const call of calls) {
      content.push({
        type: "tool-call",
        ...(call.id === null ? {} : { toolCallId: call.id }),
        toolName: call.name,
        input: inputOf(call),
      });
    }
    if (after !== null) content.push({ type: "text", text: after });
    return [{ role: "assistant", content }];
  },
  result: ({ id, name }, text, failed) => ({
    role: "tool",
    content: [
      {
        type: "tool-result",
        ...(id === null ? {} : { toolCallId: id }),
        toolName: name,
        output: { type: failed ? "error-text" : "text", value: text },
      },
    ],
  }),
  atoms: (view) =>
    (view as Made[]).flatMap((message) => {
      if (message.role !== "assistant" || typeof message.content === "string") return [message];
      return message.content.map((part: Made) => ({ role: "assistant", part }));
    }),
};

const acpVoice: Voice = {
  dialect: acp,
  user: (text) => ({ sessionUpdate: "user_message_chunk", content: { type: "text", text } }),
  image: () => ({
    sessionUpdate: "user_message_chunk",
    content: { type: "image", mimeType: "image/png", data: PIXEL },
  }),
  system: () => ({ sessionUpdate: "notice", severity: "info", title: "x" }),
  step: ({ reasoning, text, calls, after }) => {
    const said = (sessionUpdate: string, words: string): Made => ({
      sessionUpdate,
      content: { type: "text", text: words },
    });
    const updates: Made[] = [];
    if (reasoning !== "none") updates.push(said("agent_thought_chunk", "hm"));
    if (text !== null) updates.push(said("agent_message_chunk", text));
    for (const call of calls) {
      const toolCallId = call.id ?? "none";
      updates.push({ sessionUpdate: "tool_call", toolCallId, title: call.name, rawInput: inputOf(call) });
      updates.push({ sessionUpdate: "tool_call_update", toolCallId, status: "in_progress" });
    }
    if (after !== null) updates.push(said("agent_message_chunk", after));
    return updates;
  },
  result: ({ id }, text, failed) => ({
    sessionUpdate: "tool_call_update",
    toolCallId: id ?? "none",
    status: failed ? "failed" : "completed",
    content: [{ type: "content", content: { type: "text", text } }],
  }),
  atoms: (view) => [...view],
};

export const voices: readonly Voice[] = [anthropicVoice, chatVoice, responsesVoice, geminiVoice, aiSdkVoice, acpVoice];

/** All but acp, whose view is for a client. */
export const modelVoices: readonly Voice[] = voices.filter(({ dialect }) => dialect !== acp);
