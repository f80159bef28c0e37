import { closeSync, constants, fstatSync, openSync, readFileSync } from "node:fs";
import { basename } from "node:path";
import type { PromptImage } from "../../host/host.ts";

/** Five megabytes as base64: the most that providers accept. */
const BYTES_MAX = 3_750_000;

const KINDS: readonly (readonly [mediaType: string, magic: RegExp])[] = [
  ["image/png", /^\x89PNG\r\n/],
  ["image/jpeg", /^\xff\xd8\xff/],
  ["image/gif", /^GIF8/],
  ["image/webp", /^RIFF[\s\S]{4}WEBP/],
];

/**
 * The image in a file, judged by its first bytes; null if it is something else. Read now: what is sent is what was
 * dropped. Throws an error worded for people if it is too large for a model, or cannot be read.
 */
export function readImage(path: string): PromptImage | null {
  // A FIFO would block: it is opened without waiting, and refused.
  const file = openSync(path, constants.O_RDONLY | (constants.O_NONBLOCK ?? 0));
  try {
    const stat = fstatSync(file);
    if (!stat.isFile()) return null;
    if (stat.size > BYTES_MAX) {
      if (!/\.(?:png|jpe?g|gif|webp)$/i.test(path)) return null;
      const size = (stat.size / 1_000_000).toFixed(1);
      throw new Error(`The image is too large for a model (${size} MB; at most ${BYTES_MAX / 1_000_000} MB).`);
    }
    const bytes = readFileSync(file);
    const beginning = bytes.toString("latin1", 0, 16);
    const kind = KINDS.find(([, magic]) => magic.test(beginning));
    return kind ? { name: basename(path), mediaType: kind[0], data: bytes.toString("base64") } : null;
  } finally {
    closeSync(file);
  }
}
