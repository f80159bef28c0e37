import { Buffer } from "node:buffer";

const IMAGES: readonly [kind: string, magic: readonly number[]][] = [
  ["a PNG image", [0x89, 0x50, 0x4e, 0x47]],
  ["a JPEG image", [0xff, 0xd8, 0xff]],
  ["a GIF image", [0x47, 0x49, 0x46, 0x38]],
  ["a WebP image", [0x52, 0x49, 0x46, 0x46]],
  ["a PDF document", [0x25, 0x50, 0x44, 0x46, 0x2d]],
];

/** The kind of file, judged by its first bytes; null if it may be text. */
export function notText(beginning: Uint8Array): string | null {
  for (const [kind, magic] of IMAGES) if (magic.every((byte, at) => beginning[at] === byte)) return kind;
  return beginning.includes(0) ? "a binary file" : null;
}

/** Null if the bytes are not UTF-8: writing the text back would change them. */
export function decodedExactly(bytes: Uint8Array): string | null {
  const text = Buffer.from(bytes).toString("utf8");
  return Buffer.from(text, "utf8").equals(bytes) ? text : null;
}
