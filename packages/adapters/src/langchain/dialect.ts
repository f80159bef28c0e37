import {
  AIMessage,
  AIMessageChunk,
  type BaseMessage,
  ChatMessage,
  FunctionMessage,
  HumanMessage,
  HumanMessageChunk,
  SystemMessage,
  SystemMessageChunk,
  ToolMessage,
  ToolMessageChunk,
} from "@langchain/core/messages";
import { type Dialect, dialects, type Json, mapDialect, type OpenAIChatMessage } from "holdfast";

/** A message as LangChain serializes it. */
interface StoredMessage {
  readonly id: readonly string[];
  readonly kwargs: Readonly<Record<string, Json>>;
}

type MessageClass = new (fields: never) => BaseMessage;

const CLASSES: Readonly<Record<string, MessageClass>> = {
  AIMessage,
  AIMessageChunk,
  ChatMessage,
  FunctionMessage,
  HumanMessage,
  HumanMessageChunk,
  SystemMessage,
  SystemMessageChunk,
  ToolMessage,
  ToolMessageChunk,
};

/**
 * Messages of LangChain, of any provider. They are stored as LangChain serializes them, with all metadata and
 * reasoning. What Holdfast has to know about a message, it reads from its text, its tool calls and its tool call id.
 */
export const langchain: Dialect<BaseMessage> = mapDialect<BaseMessage, OpenAIChatMessage>(dialects["openai-chat"], {
  name: "langchain",
  to,
  from,
  encode: (message) => JSON.parse(JSON.stringify(message)) as Json,
  decode,
});

/** A message of the caller's own, with nothing in common with the given one. */
export function copyOf(message: BaseMessage): BaseMessage {
  return decode(JSON.parse(JSON.stringify(message)) as Json);
}

function decode(stored: Json): BaseMessage {
  const { id, kwargs } = stored as unknown as StoredMessage;
  const name = id.at(-1) ?? "";
  const Class = Object.hasOwn(CLASSES, name) ? CLASSES[name] : undefined;
  if (!Class) throw new TypeError(`There is no class of messages "${name}" in LangChain.`);
  return new Class({ ...kwargs } as never);
}

function to(message: BaseMessage): OpenAIChatMessage {
  const { content } = message;
  if (typeof content !== "string" && !Array.isArray(content)) throw new TypeError("its content is no content");
  switch (message.getType()) {
    case "human":
      return { role: "user", content: typeof content === "string" ? content : content.map(shownBlock) };
    case "ai": {
      const calls = ((message as AIMessage).tool_calls ?? []).map(({ id, name, args }) => ({
        id: id ?? "",
        type: "function",
        function: { name, arguments: JSON.stringify(args) },
      }));
      return { role: "assistant", content: spokenIn(message), ...(calls.length > 0 ? { tool_calls: calls } : {}) };
    }
    case "tool": {
      const { tool_call_id } = message as ToolMessage;
      return { role: "tool", tool_call_id, content: message.text === "" ? JSON.stringify(content) : message.text };
    }
    case "system":
    case "developer":
      return { role: "system", content: message.text };
    default:
      throw new TypeError(`a message of the type "${message.getType()}" cannot be sent to a model`);
  }
}

/** What says something, if it is not text: an answer of reasoning alone is still an answer. */
function spokenIn(message: BaseMessage): string | null {
  if (message.text !== "" || message.content.length === 0) return message.text;
  return JSON.stringify(message.content);
}

function shownBlock(block: unknown): { type: string } {
  const { type, text } = block as { type?: unknown; text?: unknown };
  if (type === "text") return { type, text: String(text) } as { type: string };
  return { type: "text", text: JSON.stringify(block) } as { type: string };
}

function from(message: OpenAIChatMessage): BaseMessage {
  const text = typeof message.content === "string" ? message.content : "";
  switch (message.role) {
    case "assistant": {
      const calls = (message.tool_calls ?? []) as { id: string; function: { name: string; arguments: string } }[];
      const tool_calls = calls.map(({ id, function: { name, arguments: args } }) => ({
        type: "tool_call" as const,
        id,
        name,
        args: JSON.parse(args) as Record<string, unknown>,
      }));
      return new AIMessage({ content: text, tool_calls });
    }
    case "tool":
      return new ToolMessage({ content: text, tool_call_id: message.tool_call_id });
    default:
      return new HumanMessage({ content: text });
  }
}
