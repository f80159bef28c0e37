import { crc32 } from "node:zlib";
import fc from "fast-check";
import { afterEach, describe, expect, test, vi } from "vitest";
import { assembleEscape } from "../../../../../../scripts/wasm.ts";
import { Encoder } from "../../../../src/journal/lines/encode.ts";
import { ESCAPE_MODULE } from "../../../../src/journal/lines/escape-module.ts";
import { JsonBytes, LINES_AT } from "../../../../src/journal/lines/json-bytes.ts";
import type { NewRecord } from "../../../../src/journal/record.ts";
import { holds, seedOf } from "../../../seed.ts";
import { json, newRecord } from "../arbitraries.ts";
import { AT } from "../journals.ts";

const seed = seedOf(import.meta.url, "unit");
const bytes = JsonBytes.open()!;
const encoder = new Encoder();

/** What is written for `{ "": value }`; null if that is left to JSON.stringify. */
function written(value: unknown, at = LINES_AT): string | null {
  const end = bytes.putMembers(at, { "": value }, [""]);
  return end < 0 ? null : bytes.buffer.toString("utf8", at, end);
}

/** The line as FORMAT.md describes it, by means of JSON.stringify alone. */
function lineOf(record: NewRecord, seq: number, unit = ""): string {
  const { kind, must, ...rest } = record;
  const others = JSON.stringify(rest).slice(1, -1);
  const start = `{"seq":${seq}${unit},"at":"${AT}","kind":${JSON.stringify(kind)}${must ? ',"must":true' : ""}`;
  const covered = others === "" ? start : `${start},${others}`;
  return `${covered},"crc":"${crc32(covered).toString(16).padStart(8, "0")}"}\n`;
}

describe("S1: the bytes are those of JSON.stringify", () => {
  test("any value", () => {
    holds(
      fc.property(json, (value) => {
        const text = written(value);
        if (text === null) expect(JSON.stringify(value)).toMatch(/\\ud[89a-f]/);
        else expect(text).toBe(JSON.stringify({ "": value }));
      }),
      seed,
      2000,
    );
  });

  test("every ASCII character, at every place of a block, in texts of every length up to four blocks", () => {
    for (let code = 0; code < 0x80; code++) {
      const character = String.fromCharCode(code);
      for (const length of [1, 2, 15, 16, 17, 41, 47, 48, 49, 64]) {
        for (let at = 0; at < length; at++) {
          const text = `${"x".repeat(at)}${character}${"y".repeat(length - at - 1)}`;
          const found = written(text);
          // A failed `expect` for each of these would take minutes.
          if (found !== JSON.stringify({ "": text })) expect(found).toBe(JSON.stringify({ "": text }));
        }
      }
    }
    const all = String.fromCharCode(...Array.from({ length: 0x80 }, (_, code) => code));
    expect(written(all.repeat(100))).toBe(JSON.stringify({ "": all.repeat(100) }));
  });

  test("texts of any characters, long and short", () => {
    const unit = fc.constantFrom("x", '"', "\\", "\n", "\u0000", "\u001f", "\u007f", "é", "€", "😀", " ".repeat(20));
    holds(
      fc.property(fc.array(unit, { maxLength: 200 }), fc.nat(3), (units, shift) => {
        const text = units.join("");
        expect(written(text, LINES_AT + shift)).toBe(JSON.stringify({ "": text }));
      }),
      seed,
      1000,
    );
  });

  test("numbers, names and nothing at all", () => {
    const values = [0, -0, 1e21, 1e-7, -1.5, Number.MAX_SAFE_INTEGER, Number.MIN_VALUE, [], {}, [[], {}, null, true]];
    for (const value of values) expect(written(value)).toBe(JSON.stringify({ "": value }));
    const names = JSON.parse('{"__proto__":1,"2":2,"a\\"b":3,"é":4}') as object;
    expect(written(names)).toBe(JSON.stringify({ "": names }));
    expect(written({ gone: undefined, here: 1, gone2: undefined })).toBe('{"":{"here":1}}');
    expect(written({ gone: undefined })).toBe('{"":{}}');
  });

  test("left to JSON.stringify: half a character, what is not JSON, deep and long values", () => {
    for (const value of ["\ud800", "long enough for a block, and more: \udc00", Number.NaN, 1n, undefined, () => 1])
      expect(written([value])).toBeNull();
    let deep: unknown = 1;
    for (let i = 0; i < 2000; i++) deep = [deep];
    expect(written(deep)).toBeNull();
    expect(written("x".repeat(64 * 1024 + 1))).toBeNull();
    expect(written("x".repeat(64 * 1024))).not.toBeNull();
    expect(written("€".repeat(64 * 1024)), "it might take more than there is").toBeNull();
    // Many of any kind: what is behind the buffer's end is never written to.
    for (const one of ["x".repeat(1000), "short", null, 1234567, [], {}, { a: 1 }, "é".repeat(300)])
      expect(written(new Array(600_000).fill(one))).toBeNull();
  });

  test("the assembled module is that of escape.wat: if not, run `npm run wasm`", async () => {
    expect(ESCAPE_MODULE).toBe(await assembleEscape());
  });
});

describe("lines", () => {
  const encode = (records: readonly NewRecord[], with_ = encoder): string =>
    with_.encode(records, { seq: 7, at: AT }).toString();

  afterEach(() => vi.unstubAllGlobals());

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

  test("without WebAssembly, and where it may not be compiled, the lines are the same", async () => {
    const records = [
      { kind: "note", value: { text: '"\n é 😀 \ud800'.repeat(20), n: [1, null, true] } },
      { kind: "b" },
    ];
    const expected = encode(records);
    for (const WebAssembly of [
      undefined,
      {
        Module: class {
          constructor() {
            throw new Error("not allowed");
          }
        },
      },
    ]) {
      vi.resetModules();
      vi.stubGlobal("WebAssembly", WebAssembly);
      const other: typeof import("../../../../src/journal/lines/encode.ts") = await import(
        "../../../../src/journal/lines/encode.ts"
      );
      expect(encode(records, new other.Encoder())).toBe(expected);
      const { JsonBytes: none } = await import("../../../../src/journal/lines/json-bytes.ts");
      expect(none.open()).toBeNull();
    }
  });
});
