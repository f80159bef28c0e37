import type { Body } from "../../../adapters/test/loopback/server.ts";
import type { Unit } from "./agent.ts";

/** The wires that the programs speak. */
export type Wire = "anthropic" | "openai-responses" | "openai-chat" | "gemini";

/** What a request shows the model of the conversation, in order. The system's prompt is left out. */
export function heard(wire: Wire, body: Body): Unit[] {
  return HEARD[wire](body);
}

type Block = Readonly<Record<string, unknown>>;

const json = (value: unknown): string => (typeof value === "string" ? value : JSON.stringify(value));
const blocks = (content: unknown): Block[] =>
  typeof content === "string" ? [{ type: "text", text: content }] : ((content ?? []) as Block[]);
const textOf = (content: unknown): string =>
  blocks(content)
    .map((block) => (block["text"] === undefined ? JSON.stringify(block) : String(block["text"])))
    .join("\n");
const said = (role: unknown): Unit["kind"] => (role === "assistant" || role === "model" ? "assistant" : "user");

const HEARD: Readonly<Record<Wire, (body: Body) => Unit[]>> = {
  anthropic: (body) =>
    ((body["messages"] ?? []) as Block[]).flatMap(({ role, content }) =>
      blocks(content).map((block): Unit => {
        if (block["type"] === "thinking") return { kind: "reasoning", text: String(block["thinking"]) };
        if (block["type"] === "tool_use")
          return { kind: "call", text: json(block["input"]), call: String(block["id"]), name: String(block["name"]) };
        if (block["type"] === "tool_result")
          return { kind: "result", text: textOf(block["content"]), call: String(block["tool_use_id"]) };
        return { kind: said(role), text: textOf([block]) };
      }),
    ),
  "openai-responses": (body) =>
    ((body["input"] ?? []) as Block[]).flatMap((item): Unit[] => {
      const call = String(item["call_id"]);
      switch (item["type"]) {
        case "reasoning":
          return [{ kind: "reasoning", text: textOf(item["summary"]) }];
        case "function_call":
          return [{ kind: "call", text: json(item["arguments"]), call, name: String(item["name"]) }];
        case "custom_tool_call":
          return [{ kind: "call", text: json(item["input"]), call, name: String(item["name"]) }];
        case "local_shell_call":
          return [{ kind: "call", text: json(item["action"]), call, name: "local_shell" }];
        case "function_call_output":
        case "custom_tool_call_output":
        case "local_shell_call_output":
          return [{ kind: "result", text: textOf(item["output"]), call }];
        case "message":
        case undefined:
          if (item["role"] === "developer" || item["role"] === "system") return [];
          return blocks(item["content"]).map((block) => ({ kind: said(item["role"]), text: textOf([block]) }));
        default:
          return [{ kind: "assistant", text: JSON.stringify(item) }];
      }
    }),
  "openai-chat": (body) =>
    ((body["messages"] ?? []) as Block[]).flatMap((message): Unit[] => {
      if (message["role"] === "system" || message["role"] === "developer") return [];
      if (message["role"] === "tool")
        return [{ kind: "result", text: textOf(message["content"]), call: String(message["tool_call_id"]) }];
      const reasoning = message["reasoning_content"] ?? message["reasoning"];
      const calls = (message["tool_calls"] ?? []) as { id: string; function: { name: string; arguments: string } }[];
      return [
        ...(reasoning ? [{ kind: "reasoning", text: textOf(reasoning) } as const] : []),
        ...blocks(message["content"])
          .filter(({ text }) => text !== "")
          .map((block): Unit => ({ kind: said(message["role"]), text: textOf([block]) })),
        ...calls.map(
          ({ id, function: { name, arguments: input } }): Unit => ({ kind: "call", text: input, call: id, name }),
        ),
      ];
    }),
  gemini: (body) => heardOfContents((body["contents"] ?? []) as Block[]),
};

/** Gemini's contents, also as its core hands them out without a request. */
export function heardOfContents(contents: readonly Block[]): Unit[] {
  return contents.flatMap(({ role, parts }) =>
    (parts as Block[]).map((part): Unit => {
      const call = part["functionCall"] as { id?: string; name: string; args: unknown } | undefined;
      const result = part["functionResponse"] as { id?: string; name: string; response: unknown } | undefined;
      if (call) return { kind: "call", text: json(call.args), call: call.id ?? call.name, name: call.name };
      if (result) return { kind: "result", text: json(result.response), call: result.id ?? result.name };
      if (part["thought"]) return { kind: "reasoning", text: String(part["text"]) };
      return { kind: said(role), text: part["text"] === undefined ? JSON.stringify(part) : String(part["text"]) };
    }),
  );
}
