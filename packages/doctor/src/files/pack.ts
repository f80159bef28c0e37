import { createWriteStream } from "node:fs";
import { join } from "node:path";
import { Readable } from "node:stream";
import { pipeline } from "node:stream/promises";
import { createZstdCompress } from "node:zlib";
import type { Door } from "./door.ts";
import type { SourceFile } from "./source-file.ts";

/** Compresses what a file holds, with these bytes replaced, to a file of the door: its path. */
export async function packZstd(
  file: SourceFile,
  edits: readonly { readonly offset: number; readonly length: number; readonly bytes: Uint8Array }[],
  door: Door,
): Promise<string> {
  const target = join(door.temporary(), `${door.nextNumber()}.zst`);
  await pipeline(Readable.from(changed(file, edits)), createZstdCompress(), createWriteStream(target, { mode: 0o600 }));
  return target;
}

function* changed(
  file: SourceFile,
  edits: readonly { readonly offset: number; readonly length: number; readonly bytes: Uint8Array }[],
): Generator<Uint8Array> {
  let at = 0;
  for (const { offset, length, bytes } of edits) {
    yield* file.chunks(at, offset);
    if (bytes.length > 0) yield bytes;
    at = offset + length;
  }
  yield* file.chunks(at);
}
