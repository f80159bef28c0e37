import { generateId, type LanguageModelMiddleware } from "ai";

type WrapStream = NonNullable<LanguageModelMiddleware["wrapStream"]>;
type WrapGenerate = NonNullable<LanguageModelMiddleware["wrapGenerate"]>;
type StreamPart =
  Awaited<ReturnType<WrapStream>>["stream"] extends ReadableStream<infer P extends { type: string }> ? P : never;
type Content = Awaited<ReturnType<WrapGenerate>>["content"][number];

/**
 * Some servers give several calls of one response the same id, or an empty one. Everything after this identifies calls
 * by their id: whether a call may run, and which result belongs to it. So each call gets a unique id before anything
 * else sees it. A good id stays as it is.
 */
export class CallIds {
  /** Ids of this response's calls. */
  readonly #made = new Set<string>();
  /** By the server's id, for its latest use: the id the call has here, and whether the call itself has arrived. */
  readonly #now = new Map<string, { readonly id: string; isWhole: boolean }>();

  of<P extends StreamPart | Content>(part: P): P {
    switch (part.type) {
      case "tool-input-start":
        return withId(part, "id", this.#begin(part.id, false));
      case "tool-input-delta":
      case "tool-input-end":
        return withId(part, "id", this.#now.get(part.id)?.id ?? part.id);
      case "tool-call":
        return withId(part, "toolCallId", this.#whole(part.toolCallId));
      case "tool-result":
      case "tool-approval-request":
        return withId(part, "toolCallId", this.#now.get(part.toolCallId)?.id ?? part.toolCallId);
      default:
        return part;
    }
  }

  #whole(given: string): string {
    const begun = this.#now.get(given);
    if (!begun || begun.isWhole) return this.#begin(given, true);
    begun.isWhole = true;
    return begun.id;
  }

  #begin(given: string, isWhole: boolean): string {
    const isFree = given !== "" && !this.#made.has(given);
    const id = isFree ? given : `call_${generateId()}`;
    this.#made.add(id);
    this.#now.set(given, { id, isWhole });
    return id;
  }
}

function withId<P extends object>(part: P, key: "id" | "toolCallId", id: string): P {
  return (part as Record<string, unknown>)[key] === id ? part : { ...part, [key]: id };
}
