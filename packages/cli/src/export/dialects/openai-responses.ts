import type { ShownFile } from "../../transcript/item.ts";
import type { ModelPart } from "./steps.ts";
import { type Block, dataUrl, fileWords, inputText, isRaster, isWeb, markedText, type Writer } from "./writer.ts";

const input = (words: string): Block => ({ type: "input_text", text: words });
const message = (role: string, content: unknown): unknown => ({ type: "message", role, content });

/** Reasoning is left out: the API accepts only what it encrypted itself. */
export const openaiResponsesWriter: Writer = {
  user: (parts) => {
    const [only] = parts;
    if (parts.length === 1 && only?.type === "text") return [message("user", only.text)];
    return [
      message(
        "user",
        parts.map((part) => (part.type === "text" ? input(part.text) : filePart(part.file))),
      ),
    ];
  },
  system: (words) => [message("developer", words)],
  model: (parts) => parts.flatMap(items),
  results: (calls) =>
    calls.map(({ id, result }) => {
      const files = result.files.map(filePart);
      const words = markedText(result);
      const output = files.length === 0 ? words : [...(words === "" ? [] : [input(words)]), ...files];
      return { type: "function_call_output", call_id: id, output };
    }),
};

function items(part: ModelPart): unknown[] {
  if (part.type === "reasoning") return [];
  if (part.type === "call") {
    return [{ type: "function_call", call_id: part.id, name: part.name, arguments: inputText(part.input) }];
  }
  return [message("assistant", part.type === "text" ? part.text : fileWords(part.file))];
}

function filePart(file: ShownFile): Block {
  const { mediaType, data, url, name } = file;
  if (isRaster(mediaType) && data) return { type: "input_image", image_url: dataUrl(file), detail: "auto" };
  if (mediaType.startsWith("image/") && isWeb(url)) return { type: "input_image", image_url: url, detail: "auto" };
  if (mediaType === "application/pdf" && data) {
    return { type: "input_file", filename: name ?? "file.pdf", file_data: dataUrl(file) };
  }
  return mediaType === "application/pdf" && isWeb(url) ? { type: "input_file", file_url: url } : input(fileWords(file));
}
