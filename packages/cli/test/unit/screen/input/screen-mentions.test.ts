import { describe, expect, test } from "vitest";
import { EDITOR, withText } from "../../../../src/screen/input/editor.ts";
import {
  candidatesIn,
  completeMention,
  droppedPath,
  mentionAt,
  mentionOf,
} from "../../../../src/screen/input/file-mentions.ts";

const NAMES = ["README.md", "src/", "scripts/", "my notes.md", ".env", "🙂a", "🙃a"];

/** What Tab makes of a line in a folder with these names. */
function tab(text: string, names: readonly string[] = NAMES): string {
  const editor = withText(EDITOR, text);
  const mention = mentionAt(editor);
  return mention === null ? text : completeMention(editor, mention, candidatesIn(mention, names)).text;
}

describe("@file", () => {
  test("is found at the end of a word that starts with @, and nowhere else", () => {
    expect(mentionAt({ text: "see @src/in", cursor: 11 })).toEqual({ start: 4, path: "src/in" });
    expect(mentionAt({ text: "see @src/in", cursor: 8 })).toEqual({ start: 4, path: "src" });
    expect(mentionAt({ text: "(@a", cursor: 3 })).toEqual({ start: 1, path: "a" });
    expect(mentionAt({ text: '@"my no', cursor: 7 })).toEqual({ start: 0, path: "my no" });
    for (const text of ["me@example.org", "@a b", '@"my notes.md" x', ""])
      expect(mentionAt({ text, cursor: text.length }), text).toBeNull();
  });

  test("Tab completes what all candidates share, and one file in full", () => {
    expect(tab("see @s")).toBe("see @s");
    expect(tab("see @sr")).toBe("see @src/");
    expect(tab("see @read")).toBe("see @README.md ");
    expect(tab("see @nothing")).toBe("see @nothing");
    expect(tab("@my")).toBe('@"my notes.md" ');
    expect(tab("@docs/a", ["api.md", "arch.md"])).toBe("@docs/a");
    expect(tab("@docs/ap", ["api.md", "arch.md"])).toBe("@docs/api.md ");
  });

  test("hidden files only if their dot was typed", () => {
    expect(tab("@")).toBe("@");
    expect(tab("@.e")).toBe("@.env ");
    expect(candidatesIn({ start: 0, path: "" }, NAMES)).not.toContain(".env");
  });

  test("never cuts a character in half", () => {
    expect(tab("@", ["🙂a", "🙃a"])).toBe("@");
  });
});

describe("a file that is dropped on the terminal", () => {
  test.each([
    ["/tmp/a.png", "/tmp/a.png"],
    ["'/tmp/my picture.png' ", "/tmp/my picture.png"],
    ['"/tmp/my picture.png"', "/tmp/my picture.png"],
    ["/tmp/my\\ picture\\ \\(1\\).png", "/tmp/my picture (1).png"],
    ["file:///tmp/my%20picture.png", "/tmp/my picture.png"],
  ])("%s", (pasted, path) => {
    expect(droppedPath(pasted)).toBe(path);
  });

  test.each(["hello", "/tmp is full", "a.png", "/tmp/a\n/tmp/b", "file://%", ""])("%j is a text", (pasted) => {
    expect(droppedPath(pasted)).toBeNull();
  });

  test("is written as a mention", () => {
    expect(mentionOf("/tmp/a.png")).toBe("@/tmp/a.png");
    expect(mentionOf("/tmp/my picture.png")).toBe('@"/tmp/my picture.png"');
  });
});
