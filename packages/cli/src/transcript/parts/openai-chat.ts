import { fileOf } from "./file.ts";
import { call, type Ids, type Part, reasoning, result, text } from "./part.ts";
import { type Shape, shapeOf, shapesOf, textOf } from "./shape.ts";

export function openaiChatParts(message: Shape, { calls, results }: Ids): Part[] {
  const said = contentParts(message["content"]);
  if (results.length > 0) {
    const words = said.flatMap((part) => (part.type === "text" ? [part.text] : [])).join("\n");
    const files = said.flatMap((part) => (part.type === "file" ? [part.file] : []));
    return result(results[0], { text: words, failed: saysError(words), files });
  }
  const refused = said.length === 0 ? text(textOf(message["refusal"])) : [];
  return [...reasoning(thought(message)), ...said, ...refused, ...calls.flatMap(call)];
}

/** This API has no mark for an error: the library, like most agents, begins the text with the word. */
export function saysError(words: string): boolean {
  return /^Error\b/.test(words);
}

/** Servers that show their reasoning do it under one of these names. */
function thought({ reasoning_content, reasoning: plain, reasoning_details }: Shape): string {
  const shown = textOf(reasoning_content) || textOf(plain);
  if (shown) return shown;
  return shapesOf(reasoning_details)
    .map(({ text: words, summary }) => textOf(words) || textOf(summary))
    .filter((words) => words !== "")
    .join("\n");
}

function contentParts(content: unknown): Part[] {
  if (typeof content === "string") return text(content);
  return shapesOf(content).flatMap((part): Part[] => {
    switch (part["type"]) {
      case "text":
        return text(textOf(part["text"]));
      case "refusal":
        return text(textOf(part["refusal"]));
      case "image_url":
        return [{ type: "file", file: fileOf(shapeOf(part["image_url"])?.["url"] ?? part["image_url"], "") }];
      case "input_audio": {
        const audio = shapeOf(part["input_audio"]) ?? {};
        return [{ type: "file", file: fileOf(audio["data"], audioType(audio["format"])) }];
      }
      case "file": {
        const file = shapeOf(part["file"]) ?? {};
        return [{ type: "file", file: fileOf(file["file_data"], "", file["filename"]) }];
      }
      default:
        return [];
    }
  });
}

function audioType(format: unknown): string {
  return format === "mp3" ? "audio/mpeg" : `audio/${textOf(format) || "wav"}`;
}
