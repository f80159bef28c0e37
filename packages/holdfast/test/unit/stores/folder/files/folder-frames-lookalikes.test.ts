import { createHash } from "node:crypto";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { zstdCompressSync } from "node:zlib";
import { nodeDisk } from "holdfast/disk";
import { expect, test } from "vitest";
import { readFrames } from "../../../../../src/stores/folder/files/frames.ts";
import { place } from "../../../../place.ts";

const MAGIC = Buffer.from([0x28, 0xb5, 0x2f, 0xfd]);

/**
 * Bytes that zstd cannot shorten, so that what looks like the beginning of a frame is still there when they are packed.
 */
function withLookalikes(count: number): Buffer {
  const noise = (i: number): Buffer => createHash("shake256", { outputLength: 200 }).update(`${count} ${i}`).digest();
  return Buffer.concat([...Array.from({ length: count }, (_, i) => [noise(i), MAGIC]).flat(), noise(count)]);
}

test("S17: a packed segment is read whole, though bytes inside its frames look like beginnings of frames", () => {
  using here = place();
  const path = join(here.path, "000001.jsonl.zst");
  const contents = [0, 1, 4, 0].map(withLookalikes);
  const frames = contents.map((content) => zstdCompressSync(content));
  for (const [i, frame] of frames.entries()) expect(frame.indexOf(contents[i]!), "stored as it is").toBeGreaterThan(0);
  writeFileSync(path, Buffer.concat(frames));
  const file = nodeDisk.open(path, "read");
  const found = [...readFrames(file)];
  file.close();
  expect(found.map(({ bytes }) => bytes?.toString("hex"))).toEqual(contents.map((content) => content.toString("hex")));
  expect(found.map(({ offset, size }) => [offset, size])).toEqual(
    contents.map(({ length }, i) => [contents.slice(0, i).reduce((sum, { length }) => sum + length, 0), length]),
  );
});
