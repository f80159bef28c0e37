import { isDeepStrictEqual } from "node:util";
import { createAnthropic } from "@ai-sdk/anthropic";
import { createGoogleGenerativeAI } from "@ai-sdk/google";
import { createOpenAI } from "@ai-sdk/openai";
import {
  signPart,
  signResponse,
  type Violation,
  validateAnthropic,
  validateGemini,
  validateOpenaiChat,
  validateOpenaiResponses,
} from "@holdfast/testkit/internal/providers";
import { generateText, jsonSchema, type LanguageModel, tool } from "ai";
import { aiSdk } from "../../../src/dialects/ai-sdk.ts";
import { frozen } from "./dialect-conversations.ts";
import { type MadeCall, type MadeStep, type Voice, voices } from "./dialect-voices.ts";

// biome-ignore lint/suspicious/noExplicitAny: parts and bodies have the shapes that their provider gives them.
type Made = any;

/** One provider package: what its models say, what it sends for a conversation, and who judges that. */
export interface Provider {
  readonly name: string;
  readonly model: LanguageModel;
  readonly options?: Made;
  /** Tools that the provider runs by itself, under the names that its models call them by. */
  readonly tools: Made;
  /** Whether a system message may stand anywhere. */
  readonly systemAnywhere: boolean;
  readonly voice: Voice;
  /** A response of a model that has seen this request. */
  signed(content: readonly Made[], body: Made): Made[];
  judge(body: Made, known?: Known): Violation[];
}

/** What is known of the conversation behind a request. */
export interface Known {
  /** The content of the responses in it, as it came. */
  readonly responses?: readonly (readonly Made[])[];
  /** It was made up, and nothing in it really signed. */
  readonly unsigned?: boolean;
}

const base = voices.find(({ dialect }) => dialect === aiSdk)!;

/** What a provider's models add to a step that any model could have made. */
interface Accent {
  readonly reasoning: (serial: number) => Made;
  readonly text?: (serial: number) => Made;
  readonly call?: (serial: number, index: number) => Made;
  readonly hosted: ((serial: number) => { call: Made; output: Made }) | null;
}

/** A tool of this name asks before it runs. */
const ASKS = "write";

function spokenWith({ reasoning, text, call, hosted }: Accent): Voice {
  const optional = (options: Made): Made => (options ? { providerOptions: options } : {});
  return {
    ...base,
    step: (step: MadeStep, serial) => {
      const [message] = base.step({ ...step, provider: "none" }, serial) as Made[];
      let index = 0;
      const content: Made[] = message.content.map((part: Made) => {
        if (part.type === "reasoning") return part.providerOptions ? { ...part, ...reasoning(serial) } : part;
        if (part.type === "text") return { ...part, ...optional(text?.(serial)) };
        return { ...part, ...optional(call?.(serial, index++)) };
      });
      const from = content.findIndex(({ type }) => type === "tool-call");
      if (hosted && step.provider !== "none") {
        const { call: made, output } = hosted(serial);
        const parts = [{ type: "tool-call", providerExecuted: true, ...made }];
        if (step.provider === "finished") {
          const { toolCallId, toolName, providerOptions } = made;
          parts.push({ type: "tool-result", toolCallId, toolName, output, ...optional(providerOptions) });
        }
        content.splice(from < 0 ? content.length : from, 0, ...parts);
      }
      const asked = content.filter(({ type, toolName }) => type === "tool-call" && toolName === ASKS);
      const requests = asked.map(({ toolCallId }) => request(toolCallId));
      return [{ ...message, content: [...content, ...requests.filter(({ toolCallId }) => toolCallId)] }];
    },
    result: (made: MadeCall, said, failed) => {
      const message = base.result(made, said, failed) as Made;
      const outputs = failed ? FAILED : CAME;
      const output = outputs[Number(said.replaceAll(/\D/g, "")) % outputs.length];
      const part = { ...message.content[0], ...(output ? { output } : {}) };
      const asked = made.name === ASKS && made.id !== null;
      return { ...message, content: asked ? [response(made.id!, !failed), part] : [part] };
    },
  };
}

const image = { type: "file", mediaType: "image/png", data: { type: "data", data: "iVBORw0KGgo=" } };
const words = (text: string): Made => ({ type: "text", text });

/** What a tool may come to; null: some text. */
const CAME: Made[] = [
  null,
  { type: "text", value: "" },
  { type: "text", value: " \n" },
  { type: "json", value: null },
  { type: "json", value: { n: [1] } },
  { type: "content", value: [] },
  { type: "content", value: [words("")] },
  { type: "content", value: [words("seen"), image, words(" ")] },
];
const FAILED: Made[] = [
  null,
  { type: "error-text", value: "" },
  { type: "error-json", value: { code: 1 } },
  { type: "execution-denied" },
  { type: "execution-denied", reason: "" },
  { type: "execution-denied", reason: "no" },
];

const request = (toolCallId: string): Made => ({
  type: "tool-approval-request",
  approvalId: `approval of ${toolCallId}`,
  toolCallId,
});
export const response = (toolCallId: string, approved: boolean): Made => ({
  type: "tool-approval-response",
  approvalId: `approval of ${toolCallId}`,
  approved,
});

/** The request is all that is asked for: whoever sends one, is told so by this. */
class Captured extends Error {
  readonly body: Made;

  constructor(body: Made) {
    super("captured");
    this.body = body;
  }
}

const fetch: Made = async (_: unknown, { body }: { body: string }) => {
  throw new Captured(JSON.parse(body));
};
const settings = { apiKey: "none", fetch };
const anthropic = createAnthropic(settings);
const openai = createOpenAI(settings);
const google = createGoogleGenerativeAI(settings);

(globalThis as Made).AI_SDK_LOG_WARNINGS = false;

/**
 * The body of the request that the SDK and the provider's package make of these messages. They are frozen, as those of
 * a session are. Rejects with what the SDK threw if it made none.
 */
export async function bodyOf(
  { model, tools, options }: Provider,
  messages: readonly unknown[],
  ran: (id: string) => void = () => {},
  send: (call: Made) => PromiseLike<unknown> = generateText,
): Promise<Made> {
  const own = tool({
    inputSchema: jsonSchema<object>({ type: "object" }),
    execute: async (_, { toolCallId }) => {
      ran(toolCallId);
      return "done";
    },
  });
  try {
    await send({
      model,
      messages: frozen(messages) as Made,
      tools: { read: own, [ASKS]: own, ...tools },
      maxRetries: 0,
      providerOptions: options,
      allowSystemInMessages: true,
    });
  } catch (error) {
    for (let at: Made = error; at; at = at.cause) if (at instanceof Captured) return at.body;
    throw error;
  }
  throw new Error("a model answered");
}

const isReasoning = ({ type }: Made): boolean => type === "reasoning";
const isSealed = (part: Made): boolean => isReasoning(part) && part.providerOptions !== undefined;

export const providers: readonly Provider[] = [
  {
    name: "anthropic",
    model: anthropic("claude-opus-4-8"),
    tools: { web_search: anthropic.tools.webSearch_20250305() },
    systemAnywhere: false,
    voice: spokenWith({
      reasoning: () => ({ providerOptions: { anthropic: { signature: "to be signed" } } }),
      hosted: (serial) => ({
        call: { toolCallId: `srvtoolu_${serial}`, toolName: "web_search", input: { query: "x" } },
        output: {
          type: "json",
          value: [{ type: "web_search_result", url: "x:y", title: "t", pageAge: null, encryptedContent: "e" }],
        },
      }),
    }),
    signed: (content, body) => {
      const blocks = signResponse(body, content.map(blockOf));
      return content.map((part, at) =>
        part.type === "reasoning" && part.providerOptions
          ? { ...part, providerOptions: { anthropic: { signature: blocks[at]!["signature"] } } }
          : part,
      );
    },
    judge: (body, { responses, unsigned } = {}) =>
      validateAnthropic(body, {
        systemMessages: true,
        signatures: unsigned ? "present" : "bound",
        ...(responses && {
          responses: responses.map((content) =>
            content.filter((part) => !isReasoning(part) || isSealed(part)).map(blockOf),
          ),
        }),
      }),
  },
  {
    name: "openai responses",
    model: openai.responses("gpt-5"),
    // What must survive cannot refer to a server (R4).
    options: { openai: { store: false } },
    tools: { web_search: openai.tools.webSearch({}) },
    systemAnywhere: true,
    voice: spokenWith({
      reasoning: (serial) => ({
        providerOptions: { openai: { itemId: `rs_${serial}`, reasoningEncryptedContent: `sig ${serial}` } },
      }),
      text: (serial) => ({ openai: { itemId: `msg_${serial}` } }),
      call: (serial, index) => ({ openai: { itemId: `fc_${serial}_${index}` } }),
      hosted: (serial) => ({
        call: { toolCallId: `ws_${serial}`, toolName: "web_search", input: {} },
        output: { type: "json", value: { action: { type: "search", query: "x" } } },
      }),
    }),
    signed: (content) => [...content],
    judge: (body, { responses = [] } = {}) => [
      ...validateOpenaiResponses(body),
      ...withoutReasoning(body.input, responses),
    ],
  },
  {
    name: "openai chat",
    model: openai.chat("gpt-4.1"),
    tools: {},
    systemAnywhere: true,
    voice: spokenWith({ reasoning: () => ({}), hosted: null }),
    signed: (content) => content.filter((part) => !isReasoning(part)),
    judge: (body) => validateOpenaiChat(body),
  },
  {
    name: "google",
    model: google("gemini-3-pro-preview"),
    tools: { code_execution: google.tools.codeExecution({}) },
    systemAnywhere: false,
    voice: spokenWith({
      reasoning: () => ({ providerOptions: undefined }),
      hosted: (serial) => ({
        call: { toolCallId: `code_${serial}`, toolName: "code_execution", input: { language: "PYTHON", code: "1" } },
        output: { type: "json", value: { outcome: "OUTCOME_OK", output: "1" } },
      }),
    }),
    // Gemini 3 signs the first call of each step.
    signed: (content) => {
      const first = content.findIndex(({ type, providerExecuted }) => type === "tool-call" && !providerExecuted);
      return content.map((part, at) => {
        if (at !== first) return part;
        const { toolCallId: id, toolName: name, input: args } = part;
        const thoughtSignature = signPart({ functionCall: { ...(id ? { id } : {}), name, args } });
        return { ...part, providerOptions: { google: { thoughtSignature } } };
      });
    },
    judge: (body) => validateGemini(body, { signatures: "bound" }),
  },
];

/** A part as the Messages API has it, as far as signatures go. */
function blockOf(part: Made): Made {
  if (part.type === "reasoning") {
    return { type: "thinking", thinking: part.text, signature: part.providerOptions?.anthropic?.signature };
  }
  if (part.type === "tool-call" && !part.providerExecuted) {
    return { type: "tool_use", id: part.toolCallId, name: part.toolName, input: part.input };
  }
  return part;
}

/**
 * Calls that go back without the reasoning that led to them, as it came. The validator goes by the ids of items, of
 * which this package sends only those of reasoning.
 */
function withoutReasoning(input: readonly Made[], responses: readonly (readonly Made[])[]): Violation[] {
  const found: Violation[] = [];
  for (const [at, { type, call_id }] of input.entries()) {
    if (type !== "function_call") continue;
    const content = responses.find((parts) => parts.some(({ toolCallId }) => toolCallId === call_id)) ?? [];
    for (const wanted of content.filter(isSealed).map(itemOf)) {
      if (input.slice(0, at).some((item) => isDeepStrictEqual(item, wanted))) continue;
      found.push({ rule: "openai-responses-2", at: `input.${at}`, why: `without its reasoning ${wanted.id}` });
    }
  }
  return found;
}

/** Reasoning as an item of a response. */
function itemOf({ text, providerOptions: { openai: options } }: Made): Made {
  const { itemId: id, reasoningEncryptedContent: encrypted_content } = options;
  return { type: "reasoning", id, encrypted_content, summary: [{ type: "summary_text", text }] };
}
