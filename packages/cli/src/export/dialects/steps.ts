import type { Part } from "holdfast";
import { type PartOf, saidIn } from "../../transcript/said.ts";

/** A conversation in no dialect: what a person said, and what the model did, each call with its result. */
export type Step =
  | { readonly kind: "user" | "system"; readonly parts: readonly SpokenPart[] }
  | { readonly kind: "model"; readonly parts: readonly ModelPart[] };

export type SpokenPart = PartOf<"text" | "file">;
export type ModelPart = SpokenPart | PartOf<"reasoning"> | ModelCall;

export interface ModelCall {
  readonly type: "call";
  /** Unique in the conversation. */
  readonly id: string;
  readonly name: string;
  /** As recorded: the target dialect's `arrange` converts it to what the provider requires. */
  readonly input: unknown;
  readonly result: ModelResult;
  /** No result is recorded: `result` says so. */
  readonly isOpen?: true;
}

export type ModelResult = Pick<PartOf<"result">, "text" | "json" | "failed" | "denied" | "files">;

type Open = { -readonly [K in keyof ModelCall]: ModelCall[K] | (K extends "result" ? null : never) } & {
  readonly known: string;
  readonly by: PartOf<"call">["by"];
};

/** The result of a call that has none: providers refuse a call without a result. */
const NO_RESULT: ModelResult = { text: "No result is recorded.", failed: true, files: [] };

/**
 * The messages that the model would see, as steps. A step ends at its results: what the assistant says next, it says
 * knowing them. A provider's own calls become ordinary calls, since no other provider has them; unfinished ones are
 * left out. `keepsParts`: two texts in a row stay two.
 */
export function stepsOf(messages: readonly unknown[], dialect: string, { keepsParts = false } = {}): Step[] {
  return new Builder(dialect === "acp", keepsParts).build(messages.map((message) => saidIn(message, dialect)));
}

const waitsForAgent = (part: ModelPart | Open): boolean =>
  part.type === "call" && part.result === null && "by" in part && part.by === "agent";

class Builder {
  readonly #steps: Step[] = [];
  readonly #ids = new Set<string>();
  readonly #isChunked: boolean;
  readonly #keepsParts: boolean;
  #parts: (Exclude<ModelPart, ModelCall> | Open)[] = [];
  /** The model's steps since the last message from someone else. */
  readonly #since: (Exclude<ModelPart, ModelCall> | Open)[][] = [];
  #isAnswered = false;

  constructor(isChunked: boolean, keepsParts: boolean) {
    this.#isChunked = isChunked;
    this.#keepsParts = keepsParts;
  }

  build(messages: readonly { readonly role: string; readonly parts: readonly Part[] }[]): Step[] {
    for (const { role, parts } of messages) {
      if (role === "assistant") for (const part of parts) this.#modelPart(part);
      else this.#others(role, parts);
    }
    this.#endTurn();
    return this.#steps;
  }

  #modelPart(part: Part): void {
    if (part.type === "result") {
      this.#result(part);
      return;
    }
    if (part.type === "approval" || part.type === "progress") return;
    if (this.#isAnswered) this.#endStep();
    const last = this.#parts.at(-1);
    if (part.type === "call") {
      const { id: known, name, input, by } = part;
      this.#parts.push({
        type: "call",
        id: this.#newId(known),
        known,
        name: name || "tool",
        input: input ?? {},
        result: null,
        by,
      });
    } else if (part.type !== "file" && last?.type === part.type && this.#continues(part.type)) {
      this.#parts[this.#parts.length - 1] = { type: part.type, text: last.text + part.text };
    } else this.#parts.push(part);
  }

  #continues(type: "text" | "reasoning"): boolean {
    return this.#isChunked || (type === "text" && !this.#keepsParts);
  }

  #others(role: string, parts: readonly Part[]): void {
    const spoken: SpokenPart[] = [];
    for (const part of parts) {
      if (part.type === "result") this.#result(part);
      else if (part.type === "file" || (part.type === "text" && part.text.trim() !== "")) spoken.push(part);
    }
    if (spoken.length === 0 || role === "other") return;
    this.#endTurn();
    const kind = role === "system" ? "system" : "user";
    this.#steps.push({ kind, parts: spoken });
  }

  #result(result: PartOf<"result">): void {
    const open = this.#openCall(result.call);
    if (!open) return;
    // The model knows the result of what it says next, unless the provider ran its own tool while the agent's call
    // waits.
    this.#isAnswered ||= open.by === "agent" || !this.#parts.some(waitsForAgent);
    open.result = result;
  }

  /** If several share an id, one in the newest step comes first. */
  #openCall(call: string): Open | null {
    for (const step of [this.#parts, ...this.#since.toReversed()]) {
      for (const part of step) if (part.type === "call" && part.known === call && part.result === null) return part;
    }
    return null;
  }

  #endStep(): void {
    if (this.#parts.length > 0) this.#since.push(this.#parts);
    this.#parts = [];
    this.#isAnswered = false;
  }

  /** Until someone else speaks, a call can still get its result: ACP agents speak while their tools run. */
  #endTurn(): void {
    this.#endStep();
    for (const step of this.#since.splice(0)) {
      const parts = step.flatMap((part): ModelPart[] => {
        if (part.type !== "call") return [part];
        const { id, name, input, result, by } = part;
        if (result === null && by === "provider") return [];
        const call = { type: "call", id, name, input } as const;
        return [result === null ? { ...call, result: NO_RESULT, isOpen: true } : { ...call, result }];
      });
      const isSaid = parts.some((part) => part.type === "call" || part.type === "file" || part.text.trim() !== "");
      if (isSaid) this.#steps.push({ kind: "model", parts });
    }
  }

  /** Ids may be missing, or repeat (R9). */
  #newId(known: string): string {
    const wanted = known === "" ? "call" : known;
    let id = wanted;
    for (let count = 2; this.#ids.has(id); count++) id = `${wanted}_${count}`;
    this.#ids.add(id);
    return id;
  }
}
