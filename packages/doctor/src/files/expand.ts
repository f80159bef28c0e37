import { closeSync, constants, openSync, writeSync } from "node:fs";
import { Readable } from "node:stream";
import { createZstdDecompress } from "node:zlib";
import { framesOf } from "./frames.ts";
import { SourceFile } from "./source-file.ts";

/**
 * Writes what a compressed file holds to `target`, as far as it can be read, and opens that. A frame that is damaged
 * hides none of the others.
 */
export async function expandZstd(
  file: SourceFile,
  target: string,
  { bytesMax }: { readonly bytesMax: number },
): Promise<SourceFile> {
  const flags = constants.O_RDWR | constants.O_CREAT | constants.O_EXCL;
  const descriptor = openSync(target, flags, 0o600);
  let size = 0;
  let isCut = false;
  let end = 0;
  for (const frame of framesOf(file)) {
    end = frame.offset + frame.length;
    isCut ||= frame.isCut;
    try {
      const decompress = createZstdDecompress();
      const input = Readable.from(file.chunks(frame.offset, end));
      // Its failure ends the loop below.
      input.on("error", (error) => decompress.destroy(error));
      for await (const chunk of input.pipe(decompress) as AsyncIterable<Buffer>) {
        if (size + chunk.length > bytesMax) return new SourceFile(file.path, descriptor, size, { isCut: true });
        for (let at = 0; at < chunk.length; ) at += writeSync(descriptor, chunk, at, chunk.length - at, size + at);
        size += chunk.length;
      }
    } catch (error) {
      // A full disk of ours is no damage of theirs.
      if (error instanceof Error && "syscall" in error) {
        closeSync(descriptor);
        throw error;
      }
      isCut = true;
    }
  }
  return new SourceFile(file.path, descriptor, size, { isCut: isCut || end < file.size });
}
