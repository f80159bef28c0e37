import fc from "fast-check";
import { expect, test } from "vitest";
import { holds, seedOf } from "../../../../../holdfast/test/seed.ts";
import { approvalLines, lineWords } from "../../../../src/host/approval/approval-request.ts";
import type { PermissionAsk, ShownPart } from "../../../../src/host/host.ts";
import { excerpt, requestText } from "../../../../src/run/ask.ts";
import { widthOf } from "../../../../src/terminal/index.ts";
import { visible, visibleLine } from "../../../../src/terminal/visible.ts";
import { asking } from "../../../screen/ask.ts";

const seed = seedOf(import.meta.url, "unit");

/** What a terminal hides, obeys or draws as something else, among ordinary words. */
const hostile = fc.constantFrom(
  ...["\n", "\r", "\r\n", "\t", " ", "  ", "\u001b[2K", "\u001b]0;x\u0007", "\u009b31m", "\u0000", "\u007f", "\u0085"],
  ...[
    "\u200b",
    "\u200d",
    "\u202e",
    "\u2066",
    "\ufeff",
    "\u00ad",
    "\u2028",
    "\u2029",
    "\u00a0",
    "\u3000",
    "\u2800",
    "\u3164",
  ],
  ...[
    "\ufe0f",
    "\u{e0041}",
    "\ud800",
    "\udc00",
    "\ue000",
    "\u0301",
    "↵",
    "↵\n",
    "⇥",
    "<U+001B>",
    "<U+",
    "<",
    "│",
    "- ",
    "+ ",
  ],
);
const words = fc.oneof(
  hostile,
  fc.string({ unit: "binary", maxLength: 4 }),
  fc.constantFrom("rm -rf x", "日本", "👩‍🚀", "echo"),
);
const text = fc.array(words, { maxLength: 12 }).map((pieces) => pieces.join(""));

/** The text that was made visible. */
function decoded(shown: string): string {
  return shown.replace(/↵\n|⇥|<U\+([0-9A-F]+)>/gu, (found, code: string | undefined) =>
    code === undefined ? (found === "⇥" ? "\t" : "\n") : String.fromCodePoint(Number.parseInt(code, 16)),
  );
}

/** The input, from what is shown of it and nothing else. */
function inputOf({ parts }: PermissionAsk): unknown {
  const members = parts.flatMap((part): [string, unknown][] => {
    const { kind, label } = part;
    if (kind === "fact") return [];
    if (kind === "diff")
      return [
        ["old", sideOf(part, "+")],
        ["new", sideOf(part, "-")],
      ];
    const value = decoded(part.text);
    return [[decoded(label), kind === "json" ? JSON.parse(value) : value]];
  });
  return Object.fromEntries(members);
}

function sideOf({ text: shown }: ShownPart, other: string): string {
  const lines = shown === "" ? [] : shown.split("\n").filter((line) => line[0] !== other);
  return decoded(lines.map((line) => (line.endsWith("↵") ? `${line.slice(2)}\n` : line.slice(2))).join(""));
}

test("a text with everything in it visible determines the text, and nothing in it is hidden or drives a terminal", () => {
  holds(
    fc.property(text, (given) => {
      const shown = visible(given);
      expect(decoded(shown)).toBe(given);
      expect(shown.replaceAll("\n", "")).not.toMatch(
        /[\p{C}\p{Zl}\p{Zp}\p{Default_Ignorable_Code_Point}]|(?! )\p{Zs}/u,
      );
      expect(shown.isWellFormed()).toBe(true);
      for (const line of shown.split("\n")) expect(line === "" || widthOf(line) > 0).toBe(true);
      expect(visibleLine(given)).not.toContain("\n");
      expect(decoded(visibleLine(given))).toBe(given);
    }),
    seed,
    2000,
  );
});

test("what a person is shown determines the input of the call", () => {
  const inputs = fc.oneof(
    fc.record({
      name: fc.constant("shell"),
      input: fc.record({ command: text, timeoutSeconds: fc.nat() }, { requiredKeys: ["command"] }),
    }),
    fc.record({ name: fc.constant("write"), input: fc.record({ path: text, content: text }) }),
    fc.record({
      name: fc.constant("edit"),
      input: fc.record(
        { path: text, old: text, new: text, all: fc.boolean() },
        { requiredKeys: ["path", "old", "new"] },
      ),
    }),
    fc.record({ name: fc.constant("search"), input: fc.record({ pattern: text, path: text }) }),
    fc.record({
      name: fc.constantFrom("other", "edit", "write", "shell"),
      input: fc.dictionary(
        text.filter((key) => key !== "__proto__"),
        fc.oneof(
          text,
          fc.jsonValue().filter((value) => typeof value !== "string"),
        ),
      ),
    }),
  );
  holds(
    fc.property(inputs, (question) => {
      const ask = asking(question);
      expect(inputOf(ask)).toEqual(JSON.parse(JSON.stringify(question.input)));
      // Every line of it stands on the screen as one line.
      const lines = approvalLines(ask).map(lineWords);
      for (const line of lines) expect(line).not.toMatch(/[\p{Cc}\p{Cf}]/u);
      expect(requestText(ask).split("\n").slice(1)).toEqual(lines);
    }),
    seed,
    2000,
  );
});

test("a long request is cut at a line or a character, with the exact count of what is left out", () => {
  const long = Array.from({ length: 1_000 }, (_, i) => `line ${i}`).join("\n");
  const { text: shown, hidden } = excerpt(long);
  expect(shown.split("\n")).toHaveLength(400);
  expect(long.startsWith(`${shown}\n`)).toBe(true);
  expect(hidden).toBe(`600 lines (${Buffer.byteLength(long) - Buffer.byteLength(shown)} bytes)`);
  const wide = excerpt(`x${"👩".repeat(100_000)}`);
  expect(wide.text.isWellFormed()).toBe(true);
  expect(wide.hidden).toBe(`1 line (${400_001 - Buffer.byteLength(wide.text)} bytes)`);
  expect(excerpt("short\ntext")).toEqual({ text: "short\ntext", hidden: null });
});

test("a request says where a write leads and what it replaces, and where an edit changes what", () => {
  const file = { kind: "file", identity: "1:2", bytes: 12, version: "sha256:00" } as const;
  const shown = (ask: PermissionAsk): string => approvalLines(ask).map(lineWords).join("\n");
  const write = { name: "write", input: { path: "a.txt", content: "one\ntwo" }, rule: "write(a.txt)" };
  expect(shown(asking(write))).toBe(
    '  real path: /tmp/x/file\n  file: new\n  size: 2 lines, 7 bytes\n  "always" allows: write(a.txt)\n  path: a.txt\n  content:\n  │ one↵\n  │ two',
  );
  expect(shown(asking(write, file))).toContain("  file: replaces the existing file (12 bytes)");
  const edit = { name: "edit", input: { path: "a.txt", old: "a\nb\nc\n", new: "a\nB\nc\n" } };
  expect(shown(asking(edit, file))).toContain("  change:\n  │   a↵\n  │ - b↵\n  │ + B↵\n  │   c↵");
});

test("another input, path or target is another digest; the order of members is not", () => {
  const base = asking({ name: "write", input: { path: "a", content: "b" } });
  expect(asking({ name: "write", input: { content: "b", path: "a" } }).digest).toBe(base.digest);
  const others = [
    asking({ name: "edit", input: { path: "a", content: "b" } }),
    asking({ name: "write", input: { path: "a", content: "c" } }),
    asking({ name: "write", input: { path: "a", content: "b", more: true } }),
    asking({ name: "write", input: { path: "a", content: "b" } }, { kind: "folder", identity: "1:1" }),
  ];
  expect(new Set([base, ...others].map(({ digest }) => digest)).size).toBe(5);
});
