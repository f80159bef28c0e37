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
import { fromChat, type MessageFields, type StoredMessage, toChat } from "../dialects/langchain-json.ts";

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
  to: (message) => toChat(message.getType(), message as MessageFields, message),
  from: (message) => decode(fromChat(message, (source) => encode(source) as unknown as StoredMessage) as never),
  encode,
  decode,
});

function encode(message: unknown): Json {
  return JSON.parse(JSON.stringify(message)) as Json;
}

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
