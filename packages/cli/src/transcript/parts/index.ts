import { type DialectName, dialects } from "holdfast";
import { acpParts } from "./acp.ts";
import { aiSdkParts } from "./ai-sdk.ts";
import { anthropicParts } from "./anthropic.ts";
import { geminiParts } from "./gemini.ts";
import { openaiChatParts } from "./openai-chat.ts";
import { openaiResponsesParts } from "./openai-responses.ts";
import type { Ids, Part } from "./part.ts";
import { printed, type Shape, shapeOf } from "./shape.ts";

export type * from "./part.ts";

/** A message, as anybody can read it. */
export interface Said {
  readonly role: "system" | "user" | "assistant" | "tool" | "other";
  readonly parts: readonly Part[];
  /** It makes, answers or decides on calls. */
  readonly isTraffic: boolean;
}

const READERS: Readonly<Record<DialectName, (message: Shape, ids: Ids) => Part[]>> = {
  "ai-sdk": aiSdkParts,
  anthropic: anthropicParts,
  "openai-chat": openaiChatParts,
  "openai-responses": openaiResponsesParts,
  gemini: geminiParts,
  acp: acpParts,
};

export function isDialectName(name: string): name is DialectName {
  return Object.hasOwn(dialects, name);
}

/** What was recorded never changes: each message is read once, for as long as somebody has it. */
const known = new WeakMap<object, { readonly dialect: string; readonly said: Said }>();

/** Total: whatever the message is. One in an application's own dialect is shown as it is. */
export function saidIn(message: unknown, dialect: string): Said {
  const shape = shapeOf(message);
  if (!shape) return { role: "other", parts: [{ type: "text", text: printed(message) }], isTraffic: false };
  const kept = known.get(shape);
  if (kept?.dialect === dialect) return kept.said;
  const said = read(shape, dialect);
  known.set(shape, { dialect, said });
  return said;
}

function read(message: Shape, name: string): Said {
  if (!isDialectName(name))
    return { role: "other", parts: [{ type: "text", text: printed(message, 2) }], isTraffic: false };
  const dialect = dialects[name];
  const ids = { calls: dialect.calls(message), results: dialect.results(message) };
  const parts = READERS[name](message, ids);
  const isTraffic = parts.some(({ type }) => type !== "text" && type !== "reasoning" && type !== "file");
  return { role: dialect.role(message), parts, isTraffic };
}
