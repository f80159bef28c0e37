import { type Fields, fieldsOf, listIn, textIn } from "../../contract/shapes.ts";

/**
 * What Claude Code writes a second time: newer versions keep the messages of each request (`api-request-blob`) and the
 * prompts in their queue (`queue-operation`).
 */
export class Twins {
  readonly #calls = new Map<string, Fields>();
  readonly #results = new Map<string, Fields>();
  readonly #queued: string[] = [];
  readonly #prompts = new Set<string>();

  see(value: unknown): void {
    const fields = fieldsOf(value);
    const { content } = fieldsOf(fields["message"]);
    if (fields["type"] === "queue-operation") {
      const text = textIn(fields["content"]);
      if (fields["operation"] === "enqueue" && text !== null) this.#queued.push(text);
    } else if (fields["type"] === "user" && typeof content === "string") this.#prompts.add(content);
    else if (fields["type"] === "user") {
      for (const block of listIn(content)) {
        const text = textIn(fieldsOf(block)["text"]);
        if (text !== null) this.#prompts.add(text);
      }
    } else if (fields["type"] === "api-request-blob") {
      for (const block of listIn(content)) {
        const part = fieldsOf(block);
        if (part["type"] === "tool_use") this.#calls.set(String(part["id"]), part);
        if (part["type"] === "tool_result") this.#results.set(String(part["tool_use_id"]), part);
      }
    }
  }

  call(id: string): Fields | null {
    return this.#calls.get(id) ?? null;
  }

  result(call: string): Fields | null {
    return this.#results.get(call) ?? null;
  }

  /** The first prompt that was queued, and stands nowhere in the conversation. Each is given once. */
  lostPrompt(): string | null {
    const found = this.#queued.find((text) => !this.#prompts.has(text) && !/^(?:\/|<task-notification>)/.test(text));
    if (found === undefined) return null;
    this.#prompts.add(found);
    return found;
  }
}
