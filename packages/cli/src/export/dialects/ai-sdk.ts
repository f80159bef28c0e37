import type { ShownFile } from "../../transcript/item.ts";
import type { ModelResult } from "./steps.ts";
import { type Block, fileWords, type Writer } from "./writer.ts";

/**
 * Reasoning is kept as text without a provider's marks: the SDK's packages drop what their provider would refuse.
 */
export const aiSdkWriter: Writer = {
  user: (parts) => [
    { role: "user", content: parts.map((part): Block => (part.type === "text" ? part : filePart(part.file))) },
  ],
  model: (parts) => [
    {
      role: "assistant",
      content: parts.map((part): Block => {
        if (part.type === "text" || part.type === "reasoning") return part;
        if (part.type === "file") return filePart(part.file);
        return { type: "tool-call", toolCallId: part.id, toolName: part.name, input: part.input };
      }),
    },
  ],
  results: (calls) => [
    {
      role: "tool",
      content: calls.map(({ id, name, result }) => ({
        type: "tool-result",
        toolCallId: id,
        toolName: name,
        output: outputOf(result),
      })),
    },
  ],
};

function outputOf({ text, json, failed, denied, files }: ModelResult): Block {
  if (denied) return { type: "execution-denied", reason: text };
  if (failed) return { type: "error-text", value: text };
  if (files.length > 0) return { type: "content", value: [{ type: "text", text }, ...files.map(resultFile)] };
  return json === undefined ? { type: "text", value: text } : { type: "json", value: json };
}

function resultFile(file: ShownFile): Block {
  const { mediaType, data, url, name } = file;
  const filename = name ? { filename: name } : {};
  if (data) return { type: "file", data: { type: "data", data }, mediaType, ...filename };
  if (url && URL.canParse(url))
    return { type: "file", data: { type: "url", url: new URL(url) }, mediaType, ...filename };
  return { type: "text", text: fileWords(file) };
}

function filePart(file: ShownFile): Block {
  const { mediaType, data, url, name } = file;
  const filename = name ? { filename: name } : {};
  if (data) return { type: "file", data, mediaType, ...filename };
  if (url && URL.canParse(url)) return { type: "file", data: new URL(url), mediaType, ...filename };
  return { type: "text", text: fileWords(file) };
}
