import { Buffer } from "node:buffer";
import { withoutNul } from "../tools/results/result-text.ts";

export interface ResultImage {
  readonly mediaType: string;
  /** In base64. */
  readonly data: string;
}

/** What a server answered to a call. */
export interface ServerResult {
  readonly text: string;
  readonly images: readonly ResultImage[];
  /** The tool ran and reports an error. */
  readonly isError: boolean;
}

/** Anthropic's limit for one image. */
const IMAGE_CHARS_MAX = 5 * 1024 * 1024;
const IMAGES_MAX = 8;
const PIXELS_MAX = 8000;

/**
 * A server's result in the forms that models take. What a model cannot take is described in words. An image is checked:
 * providers refuse a request with a bad one, and every later request would carry it.
 */
export function readResult(given: unknown, canSee: boolean): ServerResult {
  const { content, structuredContent, isError } = shapeOf(given);
  const images: ResultImage[] = [];
  const texts: string[] = [];
  const addBytes = (data: unknown, mediaType: unknown, what: string): void => {
    const image = imageIn(data);
    if (typeof image !== "string" && canSee && images.length < IMAGES_MAX) {
      images.push(image);
      return;
    }
    const size = typeof data === "string" ? `, about ${Math.floor((data.length * 3) / 4)} bytes` : "";
    const why = typeof image === "string" ? image : canSee ? "too many images" : "this model's tools return text only";
    texts.push(
      `[${what}${typeof mediaType === "string" ? ` (${mediaType.slice(0, 80)})` : ""}${size}: left out, ${why}.]`,
    );
  };
  for (const part of Array.isArray(content) ? content : []) {
    const block = shapeOf(part);
    switch (block["type"]) {
      case "text":
        if (typeof block["text"] === "string") texts.push(block["text"]);
        break;
      case "image":
        addBytes(block["data"], block["mimeType"], "An image");
        break;
      case "audio":
        addBytes(null, block["mimeType"], "Audio");
        break;
      case "resource": {
        const { uri, text, blob, mimeType } = shapeOf(block["resource"]);
        const name = typeof uri === "string" ? uri.slice(0, 500) : "unnamed";
        if (typeof text === "string") texts.push(`[Resource ${name}]\n${text}`);
        else addBytes(blob, mimeType, `The resource ${name}`);
        break;
      }
      case "resource_link":
        texts.push(
          `[A link to the resource ${String(block["name"] ?? "")}: ${String(block["uri"] ?? "")}]`.slice(0, 1000),
        );
        break;
      default:
        texts.push(`[A part of the unknown type ${JSON.stringify(block["type"])?.slice(0, 80)}: left out.]`);
    }
  }
  // The same in another form, if the server follows the specification.
  if (texts.length === 0 && images.length === 0 && structuredContent !== undefined)
    texts.push(JSON.stringify(structuredContent));
  const text = withoutNul(texts.join("\n")).toWellFormed();
  return { text: text === "" && images.length === 0 ? "[no output]" : text, images, isError: isError === true };
}

function shapeOf(value: unknown): Readonly<Record<string, unknown>> {
  return typeof value === "object" && value !== null ? (value as Record<string, unknown>) : {};
}

/** The image by its bytes, whatever the server calls it; or why it cannot be shown. */
function imageIn(data: unknown): ResultImage | string {
  if (typeof data !== "string") return "models cannot use it";
  if (data.length > IMAGE_CHARS_MAX) return "larger than models accept";
  if (!/^[A-Za-z0-9+/]+={0,2}$/.test(data)) return "not valid base64";
  const head = Buffer.from(data.slice(0, 64), "base64");
  const ascii = head.toString("latin1");
  if (ascii.startsWith("\x89PNG\r\n\x1a\n") && head.length >= 24) {
    const isTooWide = head.readUInt32BE(16) > PIXELS_MAX || head.readUInt32BE(20) > PIXELS_MAX;
    return isTooWide ? "larger than models accept" : { mediaType: "image/png", data };
  }
  if (ascii.startsWith("\xff\xd8\xff")) return { mediaType: "image/jpeg", data };
  if (/^GIF8[79]a/.test(ascii)) return { mediaType: "image/gif", data };
  if (/^RIFF[\s\S]{4}WEBP/.test(ascii)) return { mediaType: "image/webp", data };
  return "not an image that models accept";
}
