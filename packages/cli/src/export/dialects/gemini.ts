import type { ShownFile } from "../../transcript/item.ts";
import type { ModelResult } from "./steps.ts";
import { type Block, fileWords, type Writer } from "./writer.ts";

/** Reasoning is left out: thoughts are bound to the signatures of the model that produced them. */
export const geminiWriter: Writer = {
  user: (parts) => [
    { role: "user", parts: parts.map((part) => (part.type === "text" ? { text: part.text } : filePart(part.file))) },
  ],
  model: (parts) => {
    const made = parts.flatMap((part): Block[] => {
      if (part.type === "text") return [{ text: part.text }];
      if (part.type === "file") return [filePart(part.file)];
      if (part.type === "reasoning") return [];
      return [{ functionCall: { id: part.id, name: part.name, args: part.input } }];
    });
    return made.length > 0 ? [{ role: "model", parts: made }] : [];
  },
  results: (calls) => [
    {
      role: "user",
      parts: calls.map(({ id, name, result }) => {
        const parts = result.files.flatMap(({ mediaType, data }) =>
          data && TAKEN.test(mediaType) ? [{ inlineData: { mimeType: mediaType, data } }] : [],
        );
        return {
          functionResponse: { id, name, response: responseOf(result), ...(parts.length > 0 ? { parts } : {}) },
        };
      }),
    },
  ],
};

function responseOf({ failed, text, json, files }: ModelResult): Block {
  if (failed) return { error: text };
  const words = [text, ...files.filter(({ data, mediaType }) => !data || !TAKEN.test(mediaType)).map(fileWords)]
    .filter((one) => one !== "")
    .join("\n");
  return { output: json === undefined ? words : json };
}

/** What the API accepts; it refuses a request with anything else. */
const TAKEN = /^(?:image\/(?:png|jpeg|webp|heic|heif)$|audio\/|video\/|text\/|application\/pdf$)/;

function filePart(file: ShownFile): Block {
  const { mediaType, data, url } = file;
  if (!TAKEN.test(mediaType)) return { text: fileWords(file) };
  if (data) return { inlineData: { mimeType: mediaType, data } };
  return url ? { fileData: { fileUri: url, mimeType: mediaType } } : { text: fileWords(file) };
}
