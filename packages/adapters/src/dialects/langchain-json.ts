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
  {
    name: "langchain",
    to: (message) => toChat(typeOf(message.id.at(-1) ?? ""), message.kwargs, message),
    from: (message) => fromChat(message, (source) => source as StoredMessage),
  },
);

/** What a message, or a call in it, was converted from. The base copies it along when it must change the message. */
const SOURCE = Symbol("what it is in LangChain");

/** The type of the messages of a class. */
function typeOf(name: string): string {
  const types: Readonly<Record<string, string>> = { HumanMessage: "human", AIMessage: "ai", ToolMessage: "tool" };
  const kind = name.replace(/Chunk$/, "");
  return Object.hasOwn(types, kind) ? types[kind]! : kind.replace(/Message$/, "").toLowerCase();
}

export function toChat(type: string, fields: MessageFields, source: unknown): OpenAIChatMessage {
  return Object.assign(converted(type, fields), { [SOURCE]: source });
}

function converted(type: string, { content, tool_calls, tool_call_id }: MessageFields): OpenAIChatMessage {
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

/** A message that Holdfast made, or a recorded one with the changes that a model requires. */
export function fromChat(message: OpenAIChatMessage, stored: (source: unknown) => StoredMessage): StoredMessage {
  const source = (message as { readonly [SOURCE]?: unknown })[SOURCE];
  if (source === undefined) return made(message);
  const { kwargs, ...rest } = stored(source);
  return { ...rest, kwargs: { ...kwargs, ...changesIn(message, kwargs) } };
}

type Kwargs = StoredMessage["kwargs"];

/** The members that are not as they were recorded. */
function changesIn(message: OpenAIChatMessage, kwargs: Kwargs): Kwargs {
  if (message.role === "tool") return { tool_call_id: message.tool_call_id };
  if (message.role === "assistant") return callsFrom((message.tool_calls ?? []) as ChatCall[], kwargs);
  const { content } = kwargs;
  return Array.isArray(content) ? { content: content.filter((block) => !isBlankText(block)) } : {};
}

/** Every list of a message that names its calls, with the ids that the calls have now. */
function callsFrom(calls: readonly ChatCall[], kwargs: Kwargs): Kwargs {
  const recorded = listOf(kwargs["tool_calls"]) as readonly Item[];
  const now = recorded.map((_, at) => calls.find((call) => call[SOURCE] === at) ?? null);
  const renamed = (given: readonly Json[]): Json[] => {
    const left = recorded.map(({ id }, at) => ({ id, call: now[at] }));
    return given.flatMap((item): Json[] => {
      const at = left.findIndex(({ id }) => id !== undefined && id === (item as Item | null)?.id);
      if (at < 0) return [item];
      const [{ call }] = left.splice(at, 1) as [(typeof left)[number]];
      return call ? [{ ...(item as Item), id: call.id }] : [];
    });
  };
  const { content, additional_kwargs, tool_call_chunks } = kwargs;
  const more = additional_kwargs as Kwargs | undefined;
  const raw = more?.["tool_calls"];
  return {
    tool_calls: recorded.flatMap((item, at) => (now[at] ? [callFrom(now[at], item)] : [])),
    ...(Array.isArray(content) ? { content: renamed(content) } : {}),
    ...(Array.isArray(tool_call_chunks) ? { tool_call_chunks: renamed(tool_call_chunks) } : {}),
    ...(Array.isArray(raw) ? { additional_kwargs: { ...more, tool_calls: renamed(raw) } } : {}),
  };
}

function callFrom({ id, function: { name, arguments: text } }: ChatCall, recorded: Item): Json {
  const isSame = text === JSON.stringify(recorded["args"]);
  return { ...recorded, id, name, ...(isSame ? {} : { args: JSON.parse(text) as Json }) } as Json;
}

type Item = { readonly id?: string; readonly [member: string]: Json | undefined };

function listOf(value: Json | undefined): readonly Json[] {
  return Array.isArray(value) ? value : [];
}

function isBlankText(block: Json): boolean {
  const { type, text } = (block ?? {}) as { readonly type?: unknown; readonly text?: unknown };
  return type === "text" && String(text ?? "").trim() === "";
}

function made(message: OpenAIChatMessage): StoredMessage {
  const content = typeof message.content === "string" ? message.content : "";
  switch (message.role) {
    case "assistant": {
      const calls = (message.tool_calls ?? []) as ChatCall[];
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

interface ChatCall {
  readonly id: string;
  readonly type: "function";
  readonly function: { readonly name: string; readonly arguments: string };
  /** Its position among the recorded calls. */
  readonly [SOURCE]?: number;
}

function callsIn(calls: unknown): ChatCall[] {
  if (!Array.isArray(calls)) return [];
  return (calls as { id?: string; name: string; args: unknown }[]).map(({ id, name, args }, at) => ({
    id: id ?? "",
    type: "function",
    function: { name, arguments: JSON.stringify(args) },
    [SOURCE]: at,
  }));
}

function shownBlock(block: unknown): { type: string } {
  const { type, text } = block as { type?: unknown; text?: unknown };
  const shown = type === "text" ? String(text) : JSON.stringify(block);
  return { type: "text", text: shown } as { type: string };
}
