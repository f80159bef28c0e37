import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import fc from "fast-check";
import { afterAll, beforeAll, expect, test } from "vitest";
import { scanBytes } from "../../src/journal/scan.ts";
import { decideTail } from "../../src/journal/tail.ts";
import { readSession } from "../corpus/independent-reader.ts";
import { holds, seedOf } from "../seed.ts";
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
