import { crc32 } from "node:zlib";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { Encoder } from "../../../../src/journal/lines/encode.ts";
import type { NewRecord } from "../../../../src/journal/record.ts";
import { holds, seedOf } from "../../../seed.ts";
import { newRecord } from "../arbitraries.ts";
import { AT } from "../journals.ts";

const seed = seedOf(import.meta.url, "unit");
const encoder = new Encoder();

/** The line as FORMAT.md describes it, by means of JSON.stringify alone. */
function lineOf(record: NewRecord, seq: number, unit = ""): string {
  const { kind, must, ...rest } = record;
  const others = JSON.stringify(rest).slice(1, -1);
  const start = `{"seq":${seq}${unit},"at":"${AT}","kind":${JSON.stringify(kind)}${must ? ',"must":true' : ""}`;
  const covered = others === "" ? start : `${start},${others}`;
  return `${covered},"crc":"${crc32(covered).toString(16).padStart(8, "0")}"}\n`;
}

describe("S1: lines", () => {
  const encode = (records: readonly NewRecord[]): string => encoder.encode(records, { seq: 7, at: AT }).toString();

  test("any unit of any records is what JSON.stringify makes of it", () => {
    holds(
      fc.property(fc.array(newRecord, { minLength: 1, maxLength: 4 }), (records) => {
        const mark = records.length > 1 ? `,"unit":${records.length}` : "";
        expect(encode(records)).toBe(records.map((one, i) => lineOf(one, 7 + i, i === 0 ? mark : "")).join(""));
      }),
      seed,
      500,
    );
  });

  test("a unit that outgrows the buffer somewhere in any of its records", () => {
    const size = fc.oneof(fc.nat(2000), fc.nat(70_000), fc.nat(700_000), fc.nat(1_400_000));
    const text = fc
      .tuple(size, fc.constantFrom("x", "\n", "é", '\\"', "\ud800"))
      .map(([length, of]) => of.repeat(length));
    holds(
      fc.property(fc.array(text, { minLength: 1, maxLength: 8 }), (texts) => {
        const records = texts.map((value) => ({ kind: "note", value, behind: "the text" }));
        const mark = records.length > 1 ? `,"unit":${records.length}` : "";
        const expected = records.map((one, i) => lineOf(one, 7 + i, i === 0 ? mark : "")).join("");
        expect(encode(records) === expected).toBe(true);
      }),
      seed,
      40,
    );
  });
});
