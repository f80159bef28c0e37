import { fieldsOf } from "../contract/shapes.ts";

/** Content of any agent as blocks of the Anthropic dialect. */

export interface Block {
  readonly type: string;
  readonly [field: string]: unknown;
}

const IMAGE_TYPES: ReadonlySet<unknown> = new Set(["image/png", "image/jpeg", "image/gif", "image/webp"]);

export function blocksOf(content: unknown): Block[] {
  if (content === null || content === undefined || content === "") return [];
  if (typeof content === "string") return [{ type: "text", text: content }];
  if (Array.isArray(content)) return content.flatMap(blocksOf);
  const { text, type, source } = fieldsOf(content);
  if (typeof text === "string") return text === "" ? [] : [{ type: "text", text }];
  const image = fieldsOf(source);
  if (type === "image" && image["type"] === "base64" && IMAGE_TYPES.has(image["media_type"]))
    return [{ type: "image", source: { type: "base64", media_type: image["media_type"], data: image["data"] } }];
  // Nothing is dropped: what has no form of its own is shown as it was written.
  return [{ type: "text", text: JSON.stringify(content) }];
}

/** The content of a result: a text stays one. */
export function resultContent(content: unknown): string | Block[] {
  return typeof content === "string" ? content : blocksOf(content);
}
