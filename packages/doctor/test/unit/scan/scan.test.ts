import { describe, expect, test } from "vitest";
import { fieldsOf } from "../../../src/contract/shapes.ts";
import { scan } from "../../../src/scan/scan.ts";

const rules = { isRecord: (value: unknown) => typeof fieldsOf(value)["n"] === "number" };
/** A record with what is difficult in a text. */
const record = (n: number, text = 'two\nlines, \u2028, {"n":1} and 🦩'): string =>
  JSON.stringify({ type: "message", n, content: [{ type: "text", text }], deep: { a: [1, { b: null }] } });
const A = record(1);
const B = record(2);
const C = record(3);

function scanned(input: string | Uint8Array, chunkBytes = 2 ** 20, more: object = {}) {
  const bytes = Buffer.from(input as string);
  const chunks = function* () {
    for (let at = 0; at < bytes.length; at += chunkBytes) yield Uint8Array.from(bytes.subarray(at, at + chunkBytes));
  };
  const stretches = [...scan(chunks(), { ...rules, ...more })];
  for (const { offset, length, bytes: own } of stretches)
    if (own.length === length) expect(Buffer.from(own)).toEqual(bytes.subarray(offset, offset + length));
  return stretches;
}

/** Each stretch in short: the number of the record, its line, its state, what is wrong. */
const shortly = (input: string | Uint8Array, chunkBytes?: number, more?: object): string[] =>
  scanned(input, chunkBytes, more).map(({ value, line, state, damage }) =>
    [fieldsOf(value)["n"] ?? "-", line, state, ...damage].join(" "),
  );

const join = (...parts: (string | Uint8Array)[]): Buffer =>
  Buffer.concat(parts.map((part) => Buffer.from(part as string)));

const CASES: readonly [name: string, input: string | Uint8Array, found: readonly string[]][] = [
  ["whole lines", `${A}\n${B}\n`, ["1 1 intact", "2 2 intact"]],
  ["no line feed at the end", `${A}\n${B}`, ["1 1 intact", "2 2 intact"]],
  ["blank lines", `${A}\n\n  \n${B}\n`, ["1 1 intact", "2 4 intact"]],
  ["torn at the end", `${A}\n${B.slice(0, 60)}`, ["1 1 intact", "2 2 partial torn-record"]],
  [
    "torn, and another behind it",
    `${A.slice(0, 60)}${B}\n${C}\n`,
    [...["1 1 partial glued-records torn-record", "2 1 recovered glued-records", "3 2 intact"]],
  ],
  ["two on a line", `${A}${B}\n${C}\n`, ["1 1 recovered glued-records", "2 1 recovered glued-records", "3 2 intact"]],
  [
    "three on a line, blanks between",
    `${A} ${B}  ${C}\n`,
    [...["1 1 recovered glued-records", "2 1 recovered glued-records", "3 1 recovered glued-records"]],
  ],
  [
    "whole, then the beginning of another",
    `${A}${B.slice(0, 70)}\n${C}\n`,
    [...["1 1 recovered glued-records", "2 1 partial glued-records torn-record", "3 2 intact"]],
  ],
  [
    "NUL behind a record",
    join(A, "\n", new Uint8Array(5), B, "\n"),
    ["1 1 intact", "- 2 unreadable nul-run", "2 2 intact"],
  ],
  ["NUL to the end", join(A, "\n", new Uint8Array(3_000)), ["1 1 intact", "- 2 unreadable nul-run"]],
  [
    "NUL in place of the line feed",
    join(A, new Uint8Array(1), B, "\n"),
    ["1 1 intact", "- 1 unreadable nul-run", "2 1 intact"],
  ],
  ["NUL inside of a string", join(A.replace("two", "t\0\0o"), "\n", B, "\n"), ["1 1 partial nul-run", "2 2 intact"]],
  ["a raw line break", `${A.replace("\\n", "\n")}\n${B}\n`, ["1 1 recovered raw-line-break", "2 3 intact"]],
  [
    "two raw line breaks",
    `${A.replace("two\\nlines", "two\n\nlines")}\n${B}\n`,
    ["1 1 recovered raw-line-break", "2 4 intact"],
  ],
  ["a raw tab", `${A.replace("two", "t\tw")}\n${B}\n`, ["1 1 recovered raw-control-character", "2 2 intact"]],
  [
    "split between fields",
    `${A.replace(',"deep"', ',\n"deep"')}\n${B}\n`,
    ["1 1 recovered split-record", "2 3 intact"],
  ],
  ["indented", `${JSON.stringify(JSON.parse(A), null, 2)}\n${B}\n`, ["1 1 recovered split-record", "2 19 intact"]],
  ["split inside of a key", `${A.replace('"deep"', '"de\nep"')}\n${B}\n`, ["1 1 recovered split-record", "2 3 intact"]],
  ["only the end is missing", `${A.slice(0, -1)}\n${B}\n`, ["1 1 recovered unclosed-record", "2 2 intact"]],
  ["three ends are missing", `${A.slice(0, -3)}\n${B}\n`, ["1 1 recovered unclosed-record", "2 2 intact"]],
  [
    "not UTF-8",
    join(A.slice(0, A.indexOf("lines")), new Uint8Array([0xc3]), A.slice(A.indexOf("lines")), "\n"),
    ["1 1 partial invalid-utf8"],
  ],
  ["a byte order mark", `\ufeff${A}\n${B}\n`, ["1 1 recovered byte-order-mark", "2 2 intact"]],
  ["CR LF", `${A}\r\n${B}\r\n`, ["1 1 recovered crlf", "2 2 recovered crlf"]],
  ["garbage between", `${A}\n#!%&\n${B}\n`, ["1 1 intact", "- 2 unreadable garbage", "2 3 intact"]],
  [
    "garbage before a record",
    `${A}\n#!%&${B}\n`,
    ["1 1 intact", "- 2 unreadable glued-records garbage", "2 2 recovered glued-records"],
  ],
  ["the beginning is missing", `${A.slice(40)}\n${B}\n`, ["- 1 unreadable garbage", "2 2 intact"]],
  [
    "the end is missing, and the beginning of the next",
    `${A.slice(0, 50)}${B.slice(60)}\n${C}\n`,
    ["1 1 partial torn-record", "3 2 intact"],
  ],
  ["nothing", "", []],
];

describe("scan", () => {
  for (const [name, input, found] of CASES) {
    test(name, () => {
      expect(shortly(input)).toEqual(found);
    });
    test(`${name}, in chunks of any size`, () => {
      for (const bytes of [1, 2, 7, 64]) expect(shortly(input, bytes)).toEqual(shortly(input));
    });
    test(`${name}: what is repaired is whole, and says the same`, () => {
      for (const { repaired, value } of scanned(input)) {
        if (repaired === undefined) continue;
        expect(scanned(repaired).map((stretch) => [stretch.state, stretch.value])).toEqual([["intact", value]]);
      }
    });
  }

  test("U+2028 is damage only where the agent takes it for the end of a line", () => {
    expect(shortly(A)).toEqual(["1 1 intact"]);
    expect(shortly(A, 2 ** 20, { breaksAtSeparators: true })).toEqual(["1 1 recovered line-separator"]);
  });

  test("a record that is brought back whole is the record that was written", () => {
    for (const [name, input] of CASES) {
      if (/indented|tab/.test(name)) continue;
      for (const { state, value } of scanned(input)) {
        const n = fieldsOf(value)["n"];
        if (state === "recovered")
          expect(JSON.stringify(value), name).toBe(
            [A, B, C][Number(n) - 1]!.replace(
              "two\\nlines",
              name === "two raw line breaks" && n === 1 ? "two\\n\\nlines" : "two\\nlines",
            ),
          );
      }
    }
  });

  test("an endless line is held only in part, and what follows is found", () => {
    const input = join("{".repeat(5_000), "\n", A, "\n");
    const found = scanned(input, 100, { recordBytesMax: 1_000 });
    expect(found.map(({ length, bytes, state }) => [length, bytes.length, state])).toEqual([
      [5_000, 1_000, "unreadable"],
      [A.length + (Buffer.byteLength(A) - A.length), Buffer.byteLength(A), "intact"],
    ]);
  });

  test("many broken lines take time that grows with their number, not with its square", () => {
    for (const line of ["{", '{"a', "}", '"', '{"n":1,"a":"', '{"n":1}{"n":', "\0"]) {
      let count = 0;
      for (const { length } of scanned(`${line}\n`.repeat(20_000))) count += length;
      expect(count).toBeGreaterThan(0);
    }
  });
});
