import { callsOf } from "../acp/agent-permission.ts";
import type { ChatEvent } from "../host/host.ts";
import { shapeOf } from "../transcript/shape.ts";

type Update = Readonly<Record<string, unknown>>;
type Emit = (event: ChatEvent) => void;

/** What an agent says over the protocol, as events of a run. */
export class AgentEvents {
  readonly #emit: Emit;
  /** By call: how it is shown. */
  readonly #calls = new Map<string, Pick<ChatEvent & { type: "tool.started" }, "name" | "input">>();

  constructor(emit: Emit) {
    this.#emit = emit;
  }

  updated(update: Update): void {
    const text = textIn(shapeOf(update["content"])?.["text"]);
    switch (update["sessionUpdate"]) {
      case "agent_message_chunk":
        if (text !== null) this.#emit({ type: "text", text });
        break;
      case "agent_thought_chunk":
        if (text !== null) this.#emit({ type: "reasoning", text });
        break;
      case "tool_call":
      case "tool_call_update":
        this.#call(update);
    }
  }

  #call(update: Update): void {
    const call = textIn(update["toolCallId"]);
    if (call === null) return;
    const { status } = update;
    if (!this.#calls.has(call)) {
      const shown = shownCall(update);
      this.#calls.set(call, shown);
      this.#emit({ type: "tool.started", call, ...shown });
    }
    if (status !== "completed" && status !== "failed") return;
    const { name } = this.#calls.get(call)!;
    this.#calls.delete(call);
    this.#emit({ type: "tool.ended", call, name, failed: status === "failed", output: outputIn(update) });
  }
}

/** Under our own tools' names where the agent says what it does, else under the agent's title. */
function shownCall(update: Update): { readonly name: string; readonly input: unknown } {
  const [first] = callsOf(update);
  const isKnown = first !== undefined && (first.input["command"] ?? first.input["path"]) !== undefined;
  return isKnown ? first : { name: textIn(update["title"]) ?? textIn(update["name"]) ?? "call", input: null };
}

function outputIn({ content }: Update): string {
  const texts = (Array.isArray(content) ? content : []).map((one) =>
    textIn(shapeOf(shapeOf(shapeOf(one)?.["content"]))?.["text"]),
  );
  return texts.filter((text) => text !== null).join("\n");
}

function textIn(value: unknown): string | null {
  return typeof value === "string" && value !== "" ? value : null;
}
