import { objectOf, type Params } from "./message.ts";

/** A message is not made longer than this, so that it can be replayed in one piece. */
const CHARS_MAX = 64 * 1024;

/**
 * The same conversation in fewer messages: an agent streams an answer in many small chunks. Only chunks that say
 * nothing but text, in one message, are joined.
 */
export function mergeChunks(updates: readonly Params[]): Params[] {
  const merged: Params[] = [];
  let open: { readonly first: Params; readonly texts: string[]; chars: number } | null = null;
  const close = (): void => {
    if (open) merged.push({ ...open.first, content: { type: "text", text: open.texts.join("") } });
    open = null;
  };
  for (const update of updates) {
    const text = textIn(update);
    if (text === null) {
      close();
      merged.push(update);
      continue;
    }
    const before: { readonly first: Params; readonly texts: string[]; chars: number } | null = open;
    if (before && isSame(before.first, update) && before.chars + text.length <= CHARS_MAX) {
      before.texts.push(text);
      before.chars += text.length;
      continue;
    }
    close();
    open = { first: update, texts: [text], chars: text.length };
  }
  close();
  return merged;
}

const CHUNKS = new Set<unknown>(["agent_message_chunk", "agent_thought_chunk"]);
const MEMBERS = new Set(["sessionUpdate", "content", "messageId"]);

function textIn(update: Params): string | null {
  if (!CHUNKS.has(update["sessionUpdate"])) return null;
  if (!Object.keys(update).every((name) => MEMBERS.has(name))) return null;
  const content = objectOf(update["content"]);
  const text = content?.["type"] === "text" && Object.keys(content).length === 2 ? content["text"] : null;
  return typeof text === "string" ? text : null;
}

function isSame(a: Params, b: Params): boolean {
  return a["sessionUpdate"] === b["sessionUpdate"] && a["messageId"] === b["messageId"];
}
