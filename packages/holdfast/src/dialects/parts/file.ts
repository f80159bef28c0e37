import type { FileContent } from "../dialect.ts";
import { shapeOf, textOf } from "../shape.ts";

const DATA_URL = /^data:([^,;]*)((?:;[^,;]*)*),/;

/** A file from whatever its API calls data: base64, a data URL, an address, bytes. */
export function fileOf(data: unknown, mediaType: unknown, name?: unknown): FileContent {
  const named = textOf(name) ? { name: textOf(name) } : {};
  const type = textOf(mediaType);
  const base64 = base64Of(data);
  if (base64 !== null) return embedded(base64, type, named);
  if (data instanceof URL || typeof data === "string") return addressed(String(data), type, named);
  const shape = shapeOf(data);
  if (shape?.["type"] === "data") return fileOf(shape["data"], type, name);
  if (shape?.["type"] === "url")
    return fileOf(shape["url"] instanceof URL ? shape["url"] : textOf(shape["url"]), type, name);
  if (shape?.["type"] === "text") {
    return embedded(Buffer.from(textOf(shape["text"])).toString("base64"), type || "text/plain", named);
  }
  return { mediaType: type || UNKNOWN, ...named };
}

const UNKNOWN = "application/octet-stream";

function base64Of(data: unknown): string | null {
  if (Buffer.isBuffer(data)) return data.toString("base64");
  if (data instanceof ArrayBuffer) return Buffer.from(data).toString("base64");
  if (!ArrayBuffer.isView(data)) return null;
  return Buffer.from(data.buffer, data.byteOffset, data.byteLength).toString("base64");
}

function addressed(address: string, type: string, named: { name?: string }): FileContent {
  const found = DATA_URL.exec(address.slice(0, 1000));
  if (found) {
    const content = address.slice(found[0].length);
    const isBase64 = found[2]?.toLowerCase().endsWith(";base64") === true;
    return embedded(isBase64 ? content : percentDecoded(content), fullType(type) ?? (found[1] || "text/plain"), named);
  }
  if (/^[a-z][a-z0-9+.-]*:/i.test(address.slice(0, 50)))
    return { mediaType: type || typeByName(address), ...named, url: address };
  return address === "" ? { mediaType: type || UNKNOWN, ...named } : embedded(address, type, named);
}

function percentDecoded(content: string): string {
  try {
    return Buffer.from(decodeURIComponent(content)).toString("base64");
  } catch (error) {
    if (error instanceof URIError) return Buffer.from(content).toString("base64");
    throw error;
  }
}

function embedded(data: string, type: string, named: { name?: string }): FileContent {
  const padding = data.endsWith("==") ? 2 : data.endsWith("=") ? 1 : 0;
  const bytes = Math.max(0, Math.floor((data.length * 3) / 4) - padding);
  return { mediaType: fullType(type) ?? typeByBytes(data) ?? (type || UNKNOWN), ...named, data, bytes };
}

/** The AI SDK takes `image` or an asterisk for any image. */
function fullType(type: string): string | null {
  return /^[^/]+\/[^/*]+$/.test(type) ? type : null;
}

const BY_BYTES: readonly (readonly [string, string])[] = [
  ["iVBORw0KGgo", "image/png"],
  ["/9j/", "image/jpeg"],
  ["R0lGOD", "image/gif"],
  ["UklGR", "image/webp"],
  ["JVBERi0", "application/pdf"],
];

function typeByBytes(base64: string): string | null {
  return BY_BYTES.find(([beginning]) => base64.startsWith(beginning))?.[1] ?? null;
}

const BY_NAME = new Map([
  ["png", "image/png"],
  ["jpg", "image/jpeg"],
  ["jpeg", "image/jpeg"],
  ["gif", "image/gif"],
  ["webp", "image/webp"],
  ["pdf", "application/pdf"],
]);

function typeByName(address: string): string {
  const extension = /\.([a-z0-9]+)(?:[?#].*)?$/i.exec(address.slice(-200))?.[1]?.toLowerCase();
  return BY_NAME.get(extension ?? "") ?? UNKNOWN;
}
