import fc from "fast-check";
import { expect, test } from "vitest";
import { holds, seedOf } from "../../../../../holdfast/test/seed.ts";
import {
  ansiOf,
  cut,
  type Line,
  line,
  lineText,
  lineWidth,
  span,
  untab,
  wrap,
} from "../../../../src/screen/lines/line.ts";

const seed = seedOf(import.meta.url, "unit");

const words = fc
  .array(fc.constantFrom("a", "word", "longer-word", " ", "  ", "日本", "👩‍🚀", "é", "x".repeat(30)), { maxLength: 30 })
  .map((parts) => parts.join(""));

test("no row is wider than it may be, and no character is lost but spaces at the breaks", () => {
  holds(
    fc.property(words, fc.integer({ min: 4, max: 40 }), (text, columns) => {
      const rows = wrap([span(text, { bold: true }), span(text)], columns);
      for (const row of rows) expect(lineWidth(row)).toBeLessThanOrEqual(columns);
      const bare = (one: string): string => one.replace(/\s+/gu, "");
      expect(bare(rows.map(lineText).join(""))).toBe(bare(text + text));
    }),
    seed,
    300,
  );
});

test("code keeps every space, and its edge on each row", () => {
  const rows = wrap(line(`  if (x)   ${"y".repeat(20)}`), 12, { first: [span("│ ")], rest: [span("│ ")], hard: true });
  expect(rows.map(lineText)).toEqual(["│   if (x)  ", "│  yyyyyyyyy", "│ yyyyyyyyyy", "│ y"]);
});

test("a row that is cut ends with an ellipsis, and fits also with wide characters", () => {
  holds(
    fc.property(words, fc.integer({ min: 1, max: 30 }), (text, columns) => {
      const row = cut(line(text), columns);
      expect(lineWidth(row)).toBeLessThanOrEqual(columns);
      if (lineText(row) !== text) expect(lineText(row)).toMatch(/…$/u);
    }),
    seed,
    200,
  );
});

test("tabs become spaces up to the next stop", () => {
  expect(untab("a\tb\n\tc\n日\td")).toBe("a   b\n    c\n日  d");
});

test("NO_COLOR leaves out colours, and nothing else", () => {
  const styled: Line = [span("a", { bold: true, colour: "red" }), span("b")];
  expect(ansiOf(styled, true)).toBe("\u001b[1m\u001b[31ma\u001b[39m\u001b[22mb");
  expect(ansiOf(styled, false)).toBe("\u001b[1ma\u001b[22mb");
});
