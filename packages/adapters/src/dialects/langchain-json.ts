import { type Dialect, dialects, type Json, mapDialect, type OpenAIChatMessage } from "holdfast";

/** A message as LangChain serializes it. */
export interface StoredMessage {
  readonly lc: 1;
  readonly type: "constructor";
  /** The path of its class. */
  readonly id: readonly string[];
  readonly kwargs: Readonly<Record<string, Json>>;
}

/** What Holdfast has to know of a message, in an instance of its class and in JSON alike. */
export interface MessageFields {
  readonly content?: unknown;
  readonly tool_calls?: unknown;
  readonly tool_call_id?: unknown;
}

/** The messages of the dialect `langchain` as they are stored: to read them without LangChain. */
export const langchainJson: Dialect<StoredMessage> = mapDialect<StoredMessage, OpenAIChatMessage>(
  dialects["openai-chat"],
  { name: "langchain", to: ({ id, kwargs }) => toChat(typeOf(id.at(-1) ?? ""), kwargs), from: fromChat },
);

/** The type of the messages of a class. */
function typeOf(name: string): string {
  const types: Readonly<Record<string, string>> = { HumanMessage: "human", AIMessage: "ai", ToolMessage: "tool" };
  const kind = name.replace(/Chunk$/, "");
  return Object.hasOwn(types, kind) ? types[kind]! : kind.replace(/Message$/, "").toLowerCase();
}

export function toChat(type: string, { content, tool_calls, tool_call_id }: MessageFields): OpenAIChatMessage {
  if (typeof content !== "string" && !Array.isArray(content)) throw new TypeError("its content is no content");
  const text = textOf(content);
  switch (type) {
    case "human":
      return { role: "user", content: typeof content === "string" ? content : content.map(shownBlock) };
    case "ai": {
      const calls = callsIn(tool_calls);
      // An answer of reasoning alone is still an answer.
      const said = text !== "" || content.length === 0 ? text : JSON.stringify(content);
      return { role: "assistant", content: said, ...(calls.length > 0 ? { tool_calls: calls } : {}) };
    }
    case "tool":
      return {
        role: "tool",
        tool_call_id: tool_call_id as string,
        content: text === "" ? JSON.stringify(content) : text,
      };
    case "system":
    case "developer":
      return { role: "system", content: text };
    default:
      throw new TypeError(`a message of the type "${type}" cannot be sent to a model`);
  }
}

/** A message that Holdfast made. */
export function fromChat(message: OpenAIChatMessage): StoredMessage {
  const content = typeof message.content === "string" ? message.content : "";
  switch (message.role) {
    case "assistant": {
      const calls = (message.tool_calls ?? []) as { id: string; function: { name: string; arguments: string } }[];
      const tool_calls = calls.map(({ id, function: { name, arguments: args } }) => ({
        type: "tool_call",
        id,
        name,
        args: JSON.parse(args) as Json,
      }));
      return stored("AIMessage", { content, tool_calls });
    }
    case "tool":
      return stored("ToolMessage", { content, tool_call_id: message.tool_call_id });
    default:
      return stored("HumanMessage", { content });
  }
}

function stored(name: string, kwargs: StoredMessage["kwargs"]): StoredMessage {
  return { lc: 1, type: "constructor", id: ["langchain_core", "messages", name], kwargs };
}

function textOf(content: string | readonly unknown[]): string {
  if (typeof content === "string") return content;
  const texts = content.map((block) => {
    if (typeof block === "string") return block;
    const { type, text } = block as { type?: unknown; text?: unknown };
    return type === "text" && typeof text === "string" ? text : "";
  });
  return texts.join("");
}

function callsIn(calls: unknown): { id: string; type: "function"; function: { name: string; arguments: string } }[] {
  if (!Array.isArray(calls)) return [];
  return (calls as { id?: string; name: string; args: unknown }[]).map(({ id, name, args }) => ({
    id: id ?? "",
    type: "function",
    function: { name, arguments: JSON.stringify(args) },
  }));
}

function shownBlock(block: unknown): { type: string } {
  const { type, text } = block as { type?: unknown; text?: unknown };
  const shown = type === "text" ? String(text) : JSON.stringify(block);
  return { type: "text", text: shown } as { type: string };
}
