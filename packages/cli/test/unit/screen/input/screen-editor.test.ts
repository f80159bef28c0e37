import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { holds, seedOf } from "../../../../../holdfast/test/seed.ts";
import {
  applyKey,
  continueLine,
  cursorAt,
  EDITOR,
  type Editor,
  markSent,
  rowsOf,
  withText,
} from "../../../../src/screen/input/editor.ts";
import { type Key, type KeyName, keysOf } from "../../../../src/screen/input/keys.ts";
import {
  completeCommand,
  guessCommand,
  matchCommands,
  parseSlashCommand,
} from "../../../../src/screen/input/slash-commands.ts";

const seed = seedOf(import.meta.url, "unit");
const COLUMNS = 20;

function press(editor: Editor, ...keys: (KeyName | string)[]): Editor {
  return keys.reduce((now, key) => {
    const named = NAMES.has(key as KeyName) ? { name: key as KeyName } : { name: "text" as const, text: key };
    return applyKey(now, named as Key, COLUMNS) ?? now;
  }, editor);
}

const NAMES = new Set<KeyName>([
  ...(["newline", "backspace", "delete", "up", "down", "left", "right", "wordLeft", "wordRight"] as const),
  ...(["home", "end", "killToEnd", "killToStart", "killWord"] as const),
]);

describe("the editor", () => {
  test("moves and removes what a reader sees as one character", () => {
    const typed = press(EDITOR, "a👩‍🚀é日");
    expect(press(typed, "backspace").text).toBe("a👩‍🚀é");
    expect(press(typed, "left", "left", "left", "backspace").text).toBe("👩‍🚀é日");
    expect(press(typed, "home", "right", "delete").text).toBe("aé日");
  });

  test("Ctrl+A, E, K, U, W work on the line and the word", () => {
    const typed = press(EDITOR, "one two", "newline", "three four");
    expect(press(typed, "killWord").text).toBe("one two\nthree ");
    expect(press(typed, "killToStart").text).toBe("one two\n");
    expect(press(typed, "home", "killToEnd").text).toBe("one two\n");
    expect(press(typed, "home", "killToStart").text).toBe("one twothree four");
    expect(press(typed, "up", "end", "killToEnd").text).toBe("one twothree four");
    expect(press(typed, "wordLeft", "wordLeft", "X").text).toBe("one two\nXthree four");
  });

  test("up and down go by rows, and at the edge into the history and back to what was being written", () => {
    const with2 = markSent(press(markSent(press(EDITOR, "first")), "second"));
    const typed = press(with2, "draft", "newline", "row");
    const top = press(typed, "up");
    expect(top.text).toBe("draft\nrow");
    expect(press(top, "up").text).toBe("second");
    expect(press(top, "up", "up").text).toBe("first");
    expect(press(top, "up", "up", "up").text).toBe("first");
    expect(press(top, "up", "up", "down", "down").text).toBe("draft\nrow");
  });

  test("a backslash before Enter is a new line", () => {
    expect(continueLine(press(EDITOR, "a\\"))?.text).toBe("a\n");
    expect(continueLine(press(EDITOR, "a"))).toBeNull();
  });

  test("control characters never get in, by paste or from a prompt that comes back", () => {
    const pasted = applyKey(EDITOR, { name: "paste", text: "a\r\nb\rc\u001b[31m\td\u0000" }, COLUMNS)!;
    expect(pasted.text).toBe("a\nb\nc[31m    d");
    expect(withText(EDITOR, "\u001b[2Jx\u009b").text).toBe("[2Jx");
  });

  test("whatever is pressed, the cursor stands between two characters, and on a row that is there", () => {
    const key = fc.oneof(
      fc.constantFrom(...NAMES).map((name): Key => ({ name })),
      fc.constantFrom("a", " ", "日", "👩‍🚀", "e\u0301", "word ", "\n").map((text): Key => ({ name: "paste", text })),
    );
    holds(
      fc.property(fc.array(key, { maxLength: 60 }), fc.integer({ min: 2, max: 12 }), (keys, columns) => {
        let editor = EDITOR;
        for (const one of keys) {
          editor = applyKey(editor, one, columns) ?? editor;
          const rows = rowsOf(editor.text, columns);
          const at = cursorAt(rows, editor.cursor, columns);
          expect(at.column).toBeLessThan(columns);
          expect(at.row).toBeLessThanOrEqual(rows.length);
          const before = editor.text.slice(0, editor.cursor);
          const bounds = new Set([0]);
          let offset = 0;
          for (const { segment } of new Intl.Segmenter("en").segment(editor.text)) {
            offset += segment.length;
            bounds.add(offset);
          }
          expect(bounds.has(before.length)).toBe(true);
        }
      }),
      seed,
      200,
    );
  });
});

const NONE = {
  ...{ upArrow: false, downArrow: false, leftArrow: false, rightArrow: false, pageDown: false, pageUp: false },
  ...{ home: false, end: false, return: false, escape: false, ctrl: false, shift: false, tab: false, backspace: false },
  ...{ delete: false, meta: false, super: false, hyper: false, capsLock: false, numLock: false },
};

describe("keys", () => {
  test("several keys that came at once are taken apart", () => {
    expect(keysOf("hello\rmore\u0015\u0003", NONE)).toEqual([
      { name: "text", text: "hello" },
      { name: "enter" },
      { name: "text", text: "more" },
      { name: "killToStart" },
      { name: "interrupt" },
    ]);
  });

  test("what was typed before the screen was there is sent; Ctrl+J alone is a new line", () => {
    expect(keysOf("hello\n", NONE)).toEqual([{ name: "text", text: "hello" }, { name: "enter" }]);
    expect(keysOf("j", { ...NONE, ctrl: true })).toEqual([{ name: "newline" }]);
  });

  test("Alt+Enter is a new line, Enter is not; a release is nothing", () => {
    expect(keysOf("\r", { ...NONE, return: true })).toEqual([{ name: "enter" }]);
    expect(keysOf("\r", { ...NONE, return: true, meta: true })).toEqual([{ name: "newline" }]);
    expect(keysOf("a", { ...NONE, eventType: "release" })).toEqual([]);
    expect(keysOf("x", { ...NONE, ctrl: true })).toEqual([]);
  });
});

describe("commands with a slash", () => {
  test("one slip of the hand is understood, two are not", () => {
    for (const slip of ["modle", "mdoel", "modl", "modell", "mobel", "odel"]) expect(guessCommand(slip)).toBe("model");
    for (const other of ["mobile", "", "x", "led", "sesions2"]) expect(guessCommand(other)).toBeNull();
    expect(parseSlashCommand("/Model offline")).toEqual({ kind: "command", name: "model", argument: "offline" });
  });

  test("a path is a prompt, an unknown word is not", () => {
    expect(parseSlashCommand("/etc/hosts is what?")).toEqual({ kind: "prompt" });
    expect(parseSlashCommand("/model a/b")).toEqual({ kind: "command", name: "model", argument: "a/b" });
    expect(parseSlashCommand(" /quit ")).toEqual({ kind: "command", name: "quit", argument: "" });
    expect(parseSlashCommand("/exit")).toEqual({ kind: "command", name: "quit", argument: "" });
    expect(parseSlashCommand("/nonsense")).toEqual({ kind: "unknown", name: "nonsense" });
    expect(parseSlashCommand("/fork\nand more")).toEqual({ kind: "prompt" });
  });

  test("Tab completes as far as it is certain", () => {
    expect(completeCommand("/re")).toBe("/re");
    expect(completeCommand("/rew")).toBe("/rewind");
    expect(completeCommand("/ren")).toBe("/rename ");
    expect(completeCommand("/c")).toBe("/c");
    expect(completeCommand("hello")).toBe("hello");
    expect(matchCommands("/re").map(({ name }) => name)).toEqual(["rewind", "rename"]);
  });
});
