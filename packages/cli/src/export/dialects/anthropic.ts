import type { ShownFile } from "../../transcript/item.ts";
import { type Block, fileWords, isRaster, isWeb, textIn, type Writer } from "./writer.ts";

const text = (words: string): Block => ({ type: "text", text: words });

/** Reasoning is left out: the API refuses any that it has not signed itself. */
export const anthropicWriter: Writer = {
  user: (parts) => [
    { role: "user", content: parts.map((part) => (part.type === "text" ? text(part.text) : fileBlock(part.file))) },
  ],
  model: (parts) => {
    const content = parts.flatMap((part): Block[] => {
      if (part.type === "text") return [text(part.text)];
      if (part.type === "file") return [text(fileWords(part.file))];
      if (part.type === "reasoning") return [];
      return [{ type: "tool_use", id: part.id, name: part.name, input: part.input }];
    });
    return content.length > 0 ? [{ role: "assistant", content }] : [];
  },
  results: (calls) => [
    {
      role: "user",
      content: calls.map(({ id, result }) => {
        // An error can contain only text.
        const files = result.failed ? [] : result.files.map(fileBlock);
        const content = files.length > 0 ? [text(result.text), ...files] : result.text;
        return { type: "tool_result", tool_use_id: id, content, ...(result.failed ? { is_error: true } : {}) };
      }),
    },
  ],
};

function fileBlock(file: ShownFile): Block {
  const { mediaType, data, url, name } = file;
  const title = name ? { title: name } : {};
  if (isRaster(mediaType) && data) return { type: "image", source: { type: "base64", media_type: mediaType, data } };
  if (mediaType.startsWith("image/") && isWeb(url)) return { type: "image", source: { type: "url", url } };
  if (mediaType === "application/pdf" && data) {
    return { type: "document", source: { type: "base64", media_type: mediaType, data }, ...title };
  }
  if (mediaType === "application/pdf" && isWeb(url))
    return { type: "document", source: { type: "url", url }, ...title };
  if (mediaType.startsWith("text/") && data && textIn(file).trim() !== "") {
    return { type: "document", source: { type: "text", media_type: "text/plain", data: textIn(file) }, ...title };
  }
  return text(fileWords(file));
}
