import type { Unit } from "../../contract/record.ts";
import { type Fields, fieldsOf, textIn, timeIn } from "../../contract/shapes.ts";
import { unitsOfMessage } from "../../document/anthropic.ts";
import type { DocumentFormat } from "../../document/read-document.ts";

/**
 * Simple, txcript's format for interchange: one object, `{messages: [{role, content}], …}`, whose blocks are those of
 * Anthropic. Nearly everything may be left out, also the ids of calls: `Numbers` makes them up, as txcript does.
 */
export function simpleFormat(): DocumentFormat {
  const numbers = new Numbers();
  return {
    list: "messages",
    isRecord: isMessage,
    understand(value) {
      if (!isMessage(value)) return null;
      const message = numbers.named(fieldsOf(value));
      const role = String(message["role"]).toLowerCase();
      return {
        kind: role,
        at: timeIn(message["timestamp"]),
        units: unitsOfMessage({ ...message, role }).map(withInput),
      };
    },
    understandFacts(facts) {
      const title = textIn(facts["title"]);
      return { kind: "facts", units: title === null ? [] : [{ type: "title", text: title }] };
    },
  };
}

export function isMessage(value: unknown): boolean {
  const { role, content } = fieldsOf(value);
  return /^(?:user|assistant)$/i.test(String(role)) && (typeof content === "string" || Array.isArray(content));
}

/** A call without an input is legal here. */
const withInput = (unit: Unit): Unit =>
  unit.type === "call" && (unit.input ?? null) === null ? { ...unit, input: {} } : unit;

/** Calls without an id, and results that go to the oldest call without one. */
class Numbers {
  #count = 0;
  readonly #open: string[] = [];

  named(message: Fields): Fields {
    const { content } = message;
    if (!Array.isArray(content)) return message;
    return { ...message, content: content.map((block) => this.#named(fieldsOf(block), block)) };
  }

  #named(fields: Fields, block: unknown): unknown {
    const { type, id, tool_use_id } = fields;
    if (type === "tool_use") {
      const own = textIn(id) ?? `call-${++this.#count}`;
      this.#open.push(own);
      return { ...fields, id: own };
    }
    if (type !== "tool_result") return block;
    const call = textIn(tool_use_id) ?? this.#open[0];
    const at = call === undefined ? -1 : this.#open.indexOf(call);
    if (at >= 0) this.#open.splice(at, 1);
    return call === undefined
      ? { type: "text", text: textIn(fields["content"]) ?? JSON.stringify(fields["content"]) }
      : { ...fields, tool_use_id: call };
  }
}
