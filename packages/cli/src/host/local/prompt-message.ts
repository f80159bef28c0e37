import type { ModelMessage } from "ai";
import type { PromptImage } from "../host.ts";

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
