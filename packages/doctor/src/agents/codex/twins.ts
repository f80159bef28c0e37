import { type Fields, fieldsOf, listIn, textIn } from "../../contract/shapes.ts";
import type { Entry, LineEntries } from "../../mend/entries.ts";

/** An item of the conversation that only an event still has. */
export interface MissingItem {
  readonly event: Entry;
  readonly item: Fields;
  /** On which side of its event it stood. */
  readonly isBefore: boolean;
}

/** `item_completed` says every item of a conversation a second time. */
export class Twins {
  readonly #events: { readonly entry: Entry; readonly item: Fields }[] = [];
  readonly #ids = new Set<string>();
  readonly #calls = new Set<string>();
  readonly #results = new Set<string>();
  /** How often the user said a text. */
  readonly #prompts = new Map<string, number>();
  readonly #inputs = new Map<string, Fields>();

  constructor(lines: LineEntries) {
    for (const entry of lines.living) {
      const value = fieldsOf(lines.valueOf(entry));
      const payload = fieldsOf(value["payload"]);
      if (value["type"] === "event_msg" && payload["type"] === "item_completed") {
        const item = fieldsOf(payload["item"]);
        this.#events.push({ entry, item });
        const command = textIn(listIn(item["command"]).at(-1));
        if (item["type"] === "CommandExecution" && command !== null)
          this.#inputs.set(String(item["id"]), { cmd: command });
      } else if (value["type"] === "response_item") this.#see(payload);
    }
  }

  #see(item: Fields): void {
    this.#ids.add(String(item["id"]));
    const call = textIn(item["call_id"]);
    if (call !== null) (/_output$/.test(String(item["type"])) ? this.#results : this.#calls).add(call);
    if (item["type"] !== "message" || item["role"] !== "user") return;
    const text = textsOf(item["content"]);
    this.#prompts.set(text, (this.#prompts.get(text) ?? 0) + 1);
  }

  input(call: string): Fields | null {
    return this.#inputs.get(call) ?? null;
  }

  /** In the order of their events. */
  *missing(): Generator<MissingItem> {
    for (const { entry: event, item } of this.#events) {
      const id = String(item["id"]);
      switch (item["type"]) {
        case "UserMessage": {
          const text = textsOf(item["content"]);
          const count = this.#prompts.get(text) ?? 0;
          this.#prompts.set(text, count - 1);
          const content = [{ type: "input_text", text }];
          if (count <= 0 && text !== "")
            yield { event, isBefore: true, item: { type: "message", role: "user", content } };
          break;
        }
        case "AgentMessage": {
          const content = [{ type: "output_text", text: textsOf(item["content"]) }];
          if (!this.#ids.has(id))
            yield { event, isBefore: false, item: { type: "message", id, role: "assistant", content } };
          break;
        }
        case "Reasoning": {
          const summary = listIn(item["summary_text"]).map((text) => ({ type: "summary_text", text }));
          if (!this.#ids.has(id))
            yield {
              event,
              isBefore: false,
              item: { type: "reasoning", id, summary, content: null, encrypted_content: null },
            };
          break;
        }
        case "CommandExecution": {
          const input = this.#inputs.get(id);
          const call = { type: "function_call", name: "exec_command", arguments: JSON.stringify(input), call_id: id };
          if (input && !this.#calls.has(id)) yield { event, isBefore: true, item: call };
          const output = `Process exited with code ${String(item["exit_code"])}\nOutput:\n${String(item["aggregated_output"] ?? "")}`;
          if (!this.#results.has(id))
            yield { event, isBefore: false, item: { type: "function_call_output", call_id: id, output } };
          break;
        }
        default:
      }
    }
  }
}

export const itemOf = (record: Fields): Fields => fieldsOf(record["payload"]);

function textsOf(parts: unknown): string {
  return listIn(parts)
    .map((part) => textIn(fieldsOf(part)["text"]) ?? "")
    .join("\n");
}
