import { isDeepStrictEqual } from "node:util";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { decodeLine } from "../../../../src/journal/lines/decode.ts";
import { Encoder } from "../../../../src/journal/lines/encode.ts";
import { scanBytes } from "../../../../src/journal/lines/scan.ts";
import { holds, seedOf } from "../../../seed.ts";
import { json, newRecord } from "../arbitraries.ts";
import { AT } from "../journals.ts";

const seed = seedOf(import.meta.url, "unit");
const encoder = new Encoder();

describe("round trip", () => {
  test("any JSON payload comes back as it was, under its own name", () => {
    holds(
      fc.property(json, (value) => {
        const bytes = encoder.encode([{ kind: "note", value }], { seq: 1, at: AT });
        const record = decodeLine(bytes, 0, bytes.length - 1);
        // Not `toStrictEqual`: it takes a member called `constructor` for the object's class.
        expect(isDeepStrictEqual(record?.["value"], value)).toBe(true);
        expect(bytes.indexOf("\n")).toBe(bytes.length - 1);
      }),
      seed,
      1000,
    );
  });

  test("any record comes back with its members, its envelope in the order of S1, and the checksum last", () => {
    holds(
      fc.property(newRecord, fc.integer({ min: 1 }), fc.option(fc.string({ unit: "binary" })), (record, seq, key) => {
        const bytes = encoder.encode([record], { seq, at: AT, synced: seq - 1, key: key ?? undefined });
        const start = `{"seq":${seq},"synced":${seq - 1},"at":"${AT}","kind":${JSON.stringify(record.kind)}`;
        expect(bytes.toString().startsWith(start)).toBe(true);
        expect(bytes.toString()).toMatch(/,"crc":"[0-9a-f]{8}"\}\n$/);
        const { crc, ...found } = decodeLine(bytes, 0, bytes.length - 1)!;
        expect(typeof crc).toBe("string");
        const envelope = { seq, synced: seq - 1, at: AT, ...(key === null ? {} : { key }) };
        expect(isDeepStrictEqual(found, { ...record, ...envelope })).toBe(true);
      }),
      seed,
      500,
    );
  });

  test("a unit of any records is read back as those records, numbered without gaps", () => {
    holds(
      fc.property(fc.array(newRecord, { minLength: 2, maxLength: 5 }), (records) => {
        const scan = scanBytes(Buffer.from(encoder.encode(records, { seq: 41, at: AT })));
        expect(scan.strays).toEqual([]);
        expect(scan.records.map((record) => record.seq)).toEqual(records.map((_, i) => 41 + i));
        expect(scan.records.map((record) => record.unit)).toEqual(
          records.map((_, i) => (i === 0 ? records.length : undefined)),
        );
        for (const [i, record] of records.entries()) expect(scan.records[i]).toMatchObject({ kind: record.kind });
      }),
      seed,
      200,
    );
  });
});

test("text of any width, in lines that do and do not fit the buffer that is at hand", () => {
  for (const char of ["x", "€", "😀", "\ud800"]) {
    for (const count of [1, 87_000, 100_000, 262_143, 262_144]) {
      const text = char.repeat(count);
      const records = [{ kind: "a", text }, { kind: "b" }, { kind: "c", text }];
      const scan = scanBytes(encoder.encode(records, { seq: 1, at: AT, key: text.slice(0, 1024) }));
      expect(scan.strays).toEqual([]);
      expect(scan.records.map((record) => record["text"] === text)).toEqual([true, false, true]);
      expect(scan.records[0]?.key === text.slice(0, 1024)).toBe(true);
    }
  }
});

test("C28: a message of 50 MB is written as one line and read back whole, between its neighbours", () => {
  const image = "0123456789abcdef".repeat((50 * 1024 * 1024) / 16);
  const bytes = encoder.encode([{ kind: "a" }, { kind: "message", image }, { kind: "b" }], { seq: 1, at: AT });
  const scan = scanBytes(bytes);
  expect(scan.records.map((record) => record.kind)).toEqual(["a", "message", "b"]);
  expect(scan.records[1]?.["image"] === image).toBe(true);
});
