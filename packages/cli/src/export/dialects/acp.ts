import type { ShownFile } from "../../transcript/item.ts";
import { type Block, fileWords, type Writer } from "./writer.ts";

const text = (words: string): Block => ({ type: "text", text: words });
const chunk = (sessionUpdate: string, content: Block): unknown => ({ sessionUpdate, content });

/** As an agent replays a session to its client. */
export const acpWriter: Writer = {
  user: (parts) =>
    parts.map((part) => chunk("user_message_chunk", part.type === "text" ? text(part.text) : fileBlock(part.file))),
  model: (parts) =>
    parts.map((part) => {
      if (part.type === "text") return chunk("agent_message_chunk", text(part.text));
      if (part.type === "reasoning") return chunk("agent_thought_chunk", text(part.text));
      if (part.type === "file") return chunk("agent_message_chunk", fileBlock(part.file));
      const { id, name, input } = part;
      return { sessionUpdate: "tool_call", toolCallId: id, title: name, status: "pending", rawInput: input };
    }),
  results: (calls) =>
    calls.map(({ id, result }) => {
      const words = result.text === "" ? [] : [text(result.text)];
      const content = [...words, ...result.files.map(fileBlock)].map((block) => ({ type: "content", content: block }));
      const status = result.failed ? "failed" : "completed";
      return { sessionUpdate: "tool_call_update", toolCallId: id, status, content };
    }),
};

function fileBlock(file: ShownFile): Block {
  const { mediaType, data, url, name } = file;
  if (data && mediaType.startsWith("image/")) return { type: "image", data, mimeType: mediaType };
  if (data && mediaType.startsWith("audio/")) return { type: "audio", data, mimeType: mediaType };
  if (data) return { type: "resource", resource: { uri: name ?? "file", blob: data, mimeType: mediaType } };
  return url ? { type: "resource_link", uri: url, name: name ?? url, mimeType: mediaType } : text(fileWords(file));
}
