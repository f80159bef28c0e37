import { describe, expect, test } from "vitest";
import { labelled } from "../../../../src/screen/input/chips.ts";
import {
  applyKey,
  cursorAt,
  EDITOR,
  type Editor,
  markSent,
  rowsOf,
  wholeText,
  withChip,
  withText,
} from "../../../../src/screen/input/editor.ts";
import type { Key } from "../../../../src/screen/input/keys.ts";

const LONG = Array.from({ length: 300 }, (_, i) => `line ${i}`).join("\n");

function press(editor: Editor, ...keys: readonly Key[]): Editor {
  return keys.reduce((now, key) => applyKey(now, key, 40) ?? now, editor);
}

function shown(editor: Editor): string {
  return labelled(editor.text, editor.chips);
}

describe("a long paste", () => {
  test("stands in the line as its size, and is sent in full", () => {
    const editor = press(EDITOR, { name: "text", text: "Why? " }, { name: "paste", text: LONG });
    expect(shown(editor)).toBe("Why? [300 lines pasted]");
    expect(wholeText(editor)).toBe(`Why? ${LONG}`);
  });

  test("a long line counts its characters, not its UTF-16 units", () => {
    expect(shown(press(EDITOR, { name: "paste", text: "🙂".repeat(1_200) }))).toBe("[1,200 characters pasted]");
  });

  test("line ends count as a terminal sends them", () => {
    const editor = press(EDITOR, { name: "paste", text: LONG.replaceAll("\n", "\r") });
    expect(shown(editor)).toBe("[300 lines pasted]");
    expect(wholeText(editor)).toBe(LONG);
  });

  test("short pastes stay text", () => {
    expect(shown(press(EDITOR, { name: "paste", text: "one\ntwo" }))).toBe("one\ntwo");
  });

  test("is one character for the cursor and for backspace: no half of it is ever sent", () => {
    const editor = press(EDITOR, { name: "paste", text: LONG }, { name: "text", text: "x" });
    const before = press(editor, { name: "left" }, { name: "left" });
    expect(before.cursor).toBe(0);
    expect(wholeText(press(editor, { name: "left" }, { name: "backspace" }))).toBe("x");
    expect(wholeText(press(editor, { name: "backspace" }, { name: "backspace" }))).toBe("");
  });

  test("can be put into the line in full, to edit it", () => {
    const editor = press(EDITOR, { name: "paste", text: LONG }, { name: "expand" });
    expect(editor.text).toBe(LONG);
    expect(press(editor, { name: "expand" })).toBe(editor);
  });

  test("two of them are two; the history keeps both", () => {
    const twice = press(EDITOR, { name: "paste", text: LONG }, { name: "paste", text: `${LONG}!` });
    expect(wholeText(twice)).toBe(`${LONG}${LONG}!`);
    const again = press(markSent(twice), { name: "up" });
    expect(wholeText(again)).toBe(`${LONG}${LONG}!`);
  });

  test("text from outside cannot pretend to be a paste", () => {
    const editor = press(EDITOR, { name: "paste", text: LONG });
    const forged = withText(editor, `x${editor.text}`);
    expect(wholeText(forged)).toBe("x");
    expect(wholeText(press(editor, { name: "text", text: editor.text }))).toBe(LONG);
  });

  test("takes the width of its label", () => {
    const editor = press(EDITOR, { name: "text", text: "ab" }, { name: "paste", text: LONG });
    const rows = rowsOf(editor.text, 40, editor.chips);
    expect(cursorAt(rows, editor.cursor, 40, editor.chips)).toEqual({
      row: 0,
      column: 2 + "[300 lines pasted]".length,
    });
    expect(rowsOf(editor.text, 12, editor.chips)).toHaveLength(2);
  });

  test("a label shows nothing that a terminal would obey", () => {
    expect(shown(withChip(EDITOR, "!echo \u001b[31m\u202ered", "red"))).toBe("[!echo ?[31m?red]");
  });
});
