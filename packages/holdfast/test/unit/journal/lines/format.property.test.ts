import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { constants, zstdCompressSync } from "node:zlib";
import fc from "fast-check";
import { nodeDisk } from "holdfast/disk";
import { afterAll, beforeAll, expect, test } from "vitest";
import { scanBytes } from "../../../../src/journal/lines/scan.ts";
import { decideTail } from "../../../../src/journal/lines/tail.ts";
import { scanPacked } from "../../../../src/stores/folder/files/scan-file.ts";
import { readSession } from "../../../corpus/independent-reader.ts";
import { holds, seedOf } from "../../../seed.ts";
import { bytesOf, line } from "../journals.ts";
import { harmed } from "./damage.ts";

/** P10: FORMAT.md says all that this code does. The other reader was written from that page alone. */

const seed = seedOf(import.meta.url, "unit");
let folder: string;

beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), "holdfast-format-"));
});

afterAll(() => {
  rmSync(folder, { recursive: true });
});

test("a reader written from FORMAT.md alone decides the same about any damage", () => {
  holds(
    fc.property(harmed, (bytes) => {
      writeFileSync(join(folder, "000001.jsonl"), bytes);
      const other = readSession(folder);
      const scan = scanBytes(bytes);
      const tail = decideTail(scan, { sealed: false });
      const records = scan.records.slice(0, tail.keep);
      expect(records.map(({ seq, kind, crc }) => ({ seq, kind, crc }))).toEqual(other.records);
      expect(tail.cut).toBe(other.torn?.offset ?? null);
      expect(tail.next).toBe(other.next);
      expect(
        tail.damaged.map(({ offset, end, why, seq }) => ({
          offset,
          bytes: end - offset,
          why,
          ...(seq === undefined ? {} : { seq }),
        })),
      ).toEqual(other.damaged.map(({ segment: _segment, ...rest }) => rest));
      expect(tail.missing).toEqual(other.missing);
    }),
    seed,
    500,
  );
});

/** A packed segment of a few small frames, and something that happened to its bytes. */
const harmedPack = fc.tuple(
  fc.array(fc.integer({ min: 1, max: 40 }), { minLength: 1, maxLength: 6 }),
  fc.array(
    fc.record({
      what: fc.constantFrom(
        "flip" as const,
        "flip" as const,
        "remove" as const,
        "insert" as const,
        "end" as const,
        "table" as const,
      ),
      at: fc.nat(20_000),
      length: fc.integer({ min: 1, max: 60 }),
    }),
    { maxLength: 3 },
  ),
);

function packOf(frames: readonly number[]): Buffer {
  let seq = 0;
  const plains = frames.map((count) =>
    bytesOf(...Array.from({ length: count }, () => line(++seq, { text: `text of ${seq * 7919}` }))),
  );
  const packed = plains.map((plain) =>
    zstdCompressSync(plain, { params: { [constants.ZSTD_c_checksumFlag]: 1, [constants.ZSTD_c_contentSizeFlag]: 1 } }),
  );
  return bytesOf(...packed);
}

test("and about any damage to a packed segment", async () => {
  const path = join(folder, "000001.jsonl.zst");
  rmSync(join(folder, "000001.jsonl"), { force: true });
  let damaged = 0;
  let kept = 0;
  await fc.assert(
    fc.asyncProperty(harmedPack, async ([frames, harms]) => {
      let bytes = packOf(frames);
      for (const { what, at, length } of harms) {
        const place = at % Math.max(1, bytes.length);
        if (what === "flip" && bytes.length > 0) bytes[place]! ^= 1 << (length % 8);
        if (what === "remove") bytes = bytesOf(bytes.subarray(0, place), bytes.subarray(place + length));
        if (what === "insert")
          bytes = bytesOf(bytes.subarray(0, place), Buffer.alloc(length, at), bytes.subarray(place));
        if (what === "end") bytes = bytes.subarray(0, place);
        // What early versions wrote behind the frames.
        if (what === "table") bytes = bytesOf(bytes, Buffer.from("5e2a4d18", "hex"), Buffer.alloc(length, at));
      }
      writeFileSync(path, bytes);
      const file = nodeDisk.open(path, "read");
      const scan = await scanPacked(file, 0);
      file.close();
      const { keep, damaged: found, missing } = decideTail(scan, { sealed: true });
      const other = readSession(folder);
      expect(scan.records.slice(0, keep).map(({ seq, kind, crc }) => ({ seq, kind, crc }))).toEqual(other.records);
      expect(found.map(({ offset, end }) => [offset, end - offset])).toEqual(
        other.damaged.map(({ offset, bytes: size }) => [offset, size]),
      );
      expect(missing).toEqual(other.missing);
      damaged += found.length;
      kept += keep;
    }),
    { seed, numRuns: 400 * Number(process.env["HOLDFAST_EFFORT"] ?? 1) },
  );
  expect(damaged).toBeGreaterThan(20);
  expect(kept).toBeGreaterThan(1000);
});
