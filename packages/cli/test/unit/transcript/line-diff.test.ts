import { type DiffRow, diffRowText, editOf, lineDiff } from "@holdfast/server/internal/edits";
import fc from "fast-check";
import { expect, test } from "vitest";
import { holds, seedOf } from "../../../../holdfast/test/seed.ts";
import { diffLines } from "../../../src/transcript/terminal-lines.ts";

const seed = seedOf(import.meta.url, "unit");

const texts = (rows: readonly DiffRow[]): string[] => rows.map(diffRowText);

test("a change among equal lines, with three of them around it", () => {
  const before = Array.from({ length: 20 }, (_, i) => `line ${i}`);
  const after = before.toSpliced(10, 1, "line ten", "and a half");
  expect(texts(lineDiff(before.join("\n"), after.join("\n")))).toEqual([
    ...["  … 7 equal lines", "  line 7", "  line 8", "  line 9"],
    ...["- line 10", "+ line ten", "+ and a half"],
    ...["  line 11", "  line 12", "  line 13", "  … 6 equal lines"],
  ]);
});

test("nothing, everything, line ends", () => {
  expect(lineDiff("", "")).toEqual([]);
  expect(texts(lineDiff("", "a\nb\n"))).toEqual(["+ a", "+ b"]);
  expect(texts(lineDiff("a\n", ""))).toEqual(["- a"]);
  expect(texts(lineDiff("a\r\nb", "a\nc"))).toEqual(["  a", "- b", "+ c"]);
});

test("without the added rows it is the old text, without the removed ones the new text", () => {
  const line = fc.constantFrom("a", "b", "c", "");
  holds(
    fc.property(fc.array(line, { maxLength: 8 }), fc.array(line, { maxLength: 8 }), (old, fresh) => {
      // More lines around each change than there are lines: no gaps.
      const rows = lineDiff(`${old.join("\n")}\nend`, `${fresh.join("\n")}\nend`);
      if (rows.some(({ kind }) => kind === "gap")) return;
      const side = (without: DiffRow["kind"]): string[] =>
        rows.filter(({ kind }) => kind !== without).map(({ text }) => text);
      const isChanged = rows.some(({ kind }) => kind !== "same");
      if (!isChanged) expect(old).toEqual(fresh);
      expect(side("added").join("\n")).toBe(`${old.join("\n")}\nend`);
      expect(side("removed").join("\n")).toBe(`${fresh.join("\n")}\nend`);
    }),
    seed,
    500,
  );
});

test("texts without anything in common take bounded work, however long they are", () => {
  const old = Array.from({ length: 40_000 }, (_, i) => `old ${i}`).join("\n");
  const fresh = Array.from({ length: 40_000 }, (_, i) => `new ${i}`).join("\n");
  const rows = lineDiff(old, fresh);
  expect(rows.filter(({ kind }) => kind === "removed")).toHaveLength(40_000);
  expect(rows.filter(({ kind }) => kind === "added")).toHaveLength(40_000);
});

test.each([
  ["edit", { path: "a", old: "x", new: "y", all: true }, ["- x", "+ y"], { path: "a", all: true }],
  ["Edit", { file_path: "a", old_string: "x", new_string: "y" }, ["- x", "+ y"], { file_path: "a" }],
  ["str_replace_based_edit_tool", { old_str: "x", new_str: "" }, ["- x"], {}],
  [
    "MultiEdit",
    {
      edits: [
        { old: "x", new: "y" },
        { old: "1", new: "2" },
      ],
    },
    ["- x", "+ y", "  …", "- 1", "+ 2"],
    {},
  ],
  ["write", { path: "a", content: "x\n" }, ["+ x"], { path: "a" }],
  ["apply_patch", { patch: "*** Begin Patch\n-x\n+y\n z\n" }, ["  *** Begin Patch", "- x", "+ y", "  z"], {}],
  ["edit", JSON.stringify({ old: "x", new: "y" }), ["- x", "+ y"], {}],
])("what %s changes", (name, input, rows, rest) => {
  const edit = editOf({ name, input });
  expect(texts(edit!.rows)).toEqual(rows);
  expect(edit!.rest).toEqual(rest);
});

test.each([
  ["read", { path: "a" }],
  ["shell", { command: "x" }],
  ["note", { content: "x" }],
  ["edit", null],
  ["edit", "not json"],
  ["edit", { old: 1, new: 2 }],
  ["MultiEdit", { edits: [{ old: "x" }] }],
])("%s %j changes no file that its input shows", (name, input) => {
  expect(editOf({ name, input })).toBeNull();
});

test("C25: a diff is harmless, within its width, and cut when it is long", () => {
  const hostile = "\x1b[2J\ttab \ud83d \u202e end";
  const layout = { paint: (style: string, text: string) => `${style}|${text}`, full: false, columns: 20 };
  const rows = lineDiff("", `${hostile}\n${"long ".repeat(10)}\n`);
  expect([...diffLines(rows, layout)]).toEqual([
    "good|  +     tab \ufffd  end",
    "good|  + long long long",
    "good|    long long long",
    "good|    long long long",
    "good|    long",
  ]);
  const many = lineDiff("", "x\n".repeat(1_000));
  const shown = [...diffLines(many, { ...layout, columns: undefined })];
  expect(shown).toHaveLength(40);
  expect(shown.at(-1)).toBe("faint|  … 961 more lines of the change");
  expect([...diffLines(many, { ...layout, full: true })]).toHaveLength(1_000);
});
