import { expect, test } from "vitest";
import { itemLines } from "../../../../src/screen/lines/item-lines.ts";
import type { CallItem } from "../../../../src/transcript/item.ts";

function edited(change: Partial<CallItem>): { text: string; colours: (string | undefined)[] } {
  const item: CallItem = {
    ...{ kind: "call", id: "m1", at: "2026-11-16T10:00:00.000Z", turn: 1, call: "c1", name: "edit", state: "done" },
    input: { path: "a.ts", old: "  const a = 1;\n", new: "  const a = 2;\n" },
    ...change,
  };
  const lines = itemLines(item, 60);
  return {
    text: lines.map((line) => line.map(({ text }) => text).join("")).join("\n"),
    colours: lines.flatMap((line) => line.filter(({ text }) => /^[+-] /.test(text)).map(({ style }) => style?.colour)),
  };
}

test("what an edit changed is shown as a coloured diff, with its indentation", () => {
  const { text, colours } = edited({});
  expect(text).toContain("  -   const a = 1;\n  +   const a = 2;");
  expect(colours).toEqual(["red", "green"]);
});

test("a call that did not run shows no change", () => {
  for (const state of ["denied", "not-run", "waiting", "failed"] as const)
    expect(edited({ state }).text, state).not.toContain("const a");
});

test("a long change is cut, and control characters are not obeyed", () => {
  const input = { path: "a", content: Array.from({ length: 100 }, (_, i) => `line ${i} \u001b[31m`).join("\n") };
  const { text } = edited({ name: "write", input });
  expect(text).toContain("+ line 0");
  expect(text).toContain("… 85 more lines");
  expect(text).not.toContain("\u001b");
});
