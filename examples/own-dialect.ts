import { dialects, mapDialect } from "holdfast";

/** The messages of an imaginary framework: other names than OpenAI's, and a trace id that no model is sent. */
export interface Note {
  readonly from: "human" | "ai" | "tool";
  readonly said: string | null;
  readonly asks?: readonly { readonly ref: string; readonly fn: string; readonly args: unknown }[];
  readonly answers?: string;
  readonly trace?: string;
}

/** What is used of OpenAI's messages. */
interface ChatMessage {
  readonly role: "user" | "assistant" | "tool";
  readonly content: string | null;
  readonly tool_calls?: readonly ReturnType<typeof toCall>[];
  readonly tool_call_id?: string;
}

const ROLES = { human: "user", ai: "assistant", tool: "tool" } as const;

export const notes = mapDialect<Note, ChatMessage>(dialects["openai-chat"], {
  name: "notes",
  to: ({ from, said, asks, answers }) => ({
    role: ROLES[from],
    content: said,
    ...(answers === undefined ? {} : { tool_call_id: answers }),
    ...(asks === undefined ? {} : { tool_calls: asks.map(({ ref, fn, args }) => toCall(ref, fn, args)) }),
  }),
  from: ({ role, content, tool_calls, tool_call_id }) => ({
    from: role === "assistant" ? "ai" : role === "tool" ? "tool" : "human",
    said: content,
    ...(tool_call_id === undefined ? {} : { answers: tool_call_id }),
    ...(tool_calls === undefined ? {} : { asks: tool_calls.map(fromCall) }),
  }),
});

function toCall(id: string, name: string, args: unknown) {
  return { id, type: "function", function: { name, arguments: JSON.stringify(args) } };
}

function fromCall({ id, function: { name, arguments: args } }: ReturnType<typeof toCall>) {
  return { ref: id, fn: name, args: JSON.parse(args) };
}
