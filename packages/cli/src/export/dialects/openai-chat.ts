import type { ShownFile } from "../../transcript/item.ts";
import { callsIn, dataUrl, fileWords, inputText, isRaster, isWeb, markedText, type Writer } from "./writer.ts";

const text = (words: string): unknown => ({ type: "text", text: words });

/** Reasoning is left out: this API has no place for it. */
export const openaiChatWriter: Writer = {
  user: (parts) => {
    const [only] = parts;
    if (parts.length === 1 && only?.type === "text") return [{ role: "user", content: only.text }];
    return [
      { role: "user", content: parts.map((part) => (part.type === "text" ? text(part.text) : filePart(part.file))) },
    ];
  },
  system: (words) => [{ role: "system", content: words }],
  model: (parts) => {
    const words = parts.flatMap((part) =>
      part.type === "text" ? [part.text] : part.type === "file" ? [fileWords(part.file)] : [],
    );
    const calls = callsIn(parts).map(({ id, name, input }) => ({
      id,
      type: "function",
      function: { name, arguments: inputText(input) },
    }));
    const content = words.length > 0 ? words.join("\n") : null;
    return [{ role: "assistant", content, ...(calls.length > 0 ? { tool_calls: calls } : {}) }];
  },
  // A result can contain only text.
  results: (calls) =>
    calls.map(({ id, result }) => {
      const content = [markedText(result), ...result.files.map(fileWords)].filter((words) => words !== "").join("\n");
      return { role: "tool", tool_call_id: id, content };
    }),
};

function filePart(file: ShownFile): unknown {
  const { mediaType, data, url, name } = file;
  if (isRaster(mediaType) && data) return { type: "image_url", image_url: { url: dataUrl(file) } };
  if (mediaType.startsWith("image/") && isWeb(url)) return { type: "image_url", image_url: { url } };
  const format = /^audio\/(wav|mpeg|mp3)$/.exec(mediaType)?.[1];
  if (format && data) return { type: "input_audio", input_audio: { data, format: format === "wav" ? "wav" : "mp3" } };
  if (mediaType === "application/pdf" && data) {
    return { type: "file", file: { filename: name ?? "file.pdf", file_data: dataUrl(file) } };
  }
  return text(fileWords(file));
}
