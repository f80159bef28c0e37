import type { ModelMessage } from "ai";
import { isHoldfastError, type Queued, type Session } from "holdfast";
import type { ChatState, PromptImage } from "../host.ts";

type UserMessage = Extract<ModelMessage, { role: "user" }>;

/** What the model is asked: a text, followed by the images that go with it. */
export function promptMessage(text: string, images: readonly PromptImage[]): UserMessage {
  if (images.length === 0) return { role: "user", content: text };
  const files = images.map(({ name, mediaType, data }) => ({ type: "file" as const, mediaType, data, filename: name }));
  return { role: "user", content: [{ type: "text", text }, ...files] };
}

/** The images of such a message. Those that another program recorded in another form are left out. */
export function imagesOf({ content }: ModelMessage): PromptImage[] {
  if (typeof content === "string") return [];
  return content.flatMap((part) =>
    part.type === "file" && typeof part.data === "string" && part.mediaType.startsWith("image/")
      ? [{ name: part.filename ?? "image", mediaType: part.mediaType, data: part.data }]
      : [],
  );
}

/** Queues the prompt, unless the prompt with this key has its turn already: then the number of that turn. */
export async function enqueueOnce<M>(session: Session<M>, message: M, key?: string): Promise<Queued<M> | number> {
  try {
    return await session.enqueue(message, key === undefined ? {} : { key });
  } catch (error) {
    if (isHoldfastError(error, "PROMPT_KNOWN")) return error.facts["turn"] as number;
    throw error;
  }
}

/** This turn died with its process, and nobody has decided about it since. Who repeats its prompt may not know. */
export function isCutOff({ status, account, interruption }: ChatState, turn: number): boolean {
  return interruption?.turn === turn && status === "interrupted" && account.state === "interrupted";
}
