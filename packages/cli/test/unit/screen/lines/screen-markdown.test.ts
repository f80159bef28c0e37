import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { holds, seedOf } from "../../../../../holdfast/test/seed.ts";
import { type Line, lineText, lineWidth } from "../../../../src/screen/lines/line.ts";
import { markdownLines } from "../../../../src/screen/lines/markdown.ts";
import { advanceStream, EMPTY_STREAM, finishStream } from "../../../../src/screen/lines/markdown-stream.ts";

const seed = seedOf(import.meta.url, "unit");
const text = (lines: readonly Line[]): string => lines.map(lineText).join("\n");

const SAMPLE = `# A heading

Some *words* and **more**, with \`code\` and a [link](https://example.org/x).
A second line.

- one
  - nested
- [x] done

3. three
4. four

> quoted
> twice

\`\`\`ts
const x = 1;
\tindented();
\`\`\`

| name | 数 |
|------|---:|
| a    | 1  |
| 日本 | 22 |

The end 👩‍🚀.`;

describe("markdown for the terminal", () => {
  test("headings, lists, code, quotes, tables and links", () => {
    expect(text(markdownLines(SAMPLE, 80))).toBe(`# A heading

Some words and more, with code and a link (https://example.org/x).
A second line.

• one
  • nested
• ☑ done

3. three
4. four

▏ quoted
▏ twice

│ ts
│ const x = 1;
│     indented();

name │ 数
─────┼───
a    │  1
日本 │ 22

The end 👩‍🚀.`);
  });

  test("where a link leads is never hidden behind its words", () => {
    expect(text(markdownLines("[https://good.example](https://evil.example)", 80))).toContain("(https://evil.example)");
    expect(text(markdownLines("<https://good.example>", 80))).toBe("https://good.example");
  });

  test("C25: escape sequences and bidirectional controls in markdown are harmless, in code and tables too", () => {
    const evil =
      "a \u001b[31mred\u001b[0m `\u001b]0;x\u0007` \u202e|\n\n```\n\u001b[2J\n```\n\n| \u001b[1m |\n|---|\n| \u202e |";
    const shown = text(markdownLines(evil, 80));
    for (const character of ["\u001b", "\u0007", "\u202e"]) expect(shown).not.toContain(character);
  });

  test("a table that does not fit gives way, and no row is wider than the screen", () => {
    const table = `| a | b |\n|---|---|\n| ${"long ".repeat(20)}| ${"words ".repeat(30)}|`;
    const rows = markdownLines(table, 50);
    for (const row of rows) expect(lineWidth(row)).toBeLessThanOrEqual(50);
    expect(text(rows).match(/long/g)).toHaveLength(20);
  });
});

const block = fc.oneof(
  fc.constantFrom(
    "# Title",
    "plain words that go on",
    "two\nlines",
    "- a\n- b\n- c",
    "1. a\n2. b",
    "```js\nlet a;\n\nlet b;\n```",
    "| a | b |\n|---|---|\n| 1 | 2 |",
    "> quote",
    "---",
    "日本 👩‍🚀 *é*",
  ),
  fc.integer({ min: 1, max: 60 }).map((count) => Array.from({ length: count }, (_, i) => `line ${i}`).join("\n")),
  fc.integer({ min: 1, max: 60 }).map((count) => `\`\`\`\n${"code;\n".repeat(count)}\`\`\``),
  fc.integer({ min: 1, max: 40 }).map((count) => Array.from({ length: count }, (_, i) => `- item ${i}`).join("\n")),
);

describe("markdown that is streamed", () => {
  test("whatever pieces it comes in, what is finished and what follows is the whole text, and what is unfinished stays small", () => {
    holds(
      fc.property(
        fc.array(block, { minLength: 1, maxLength: 8 }),
        fc.array(fc.integer({ min: 1, max: 200 }), { minLength: 1, maxLength: 20 }),
        (blocks, sizes) => {
          const whole = blocks.join("\n\n");
          let stream = EMPTY_STREAM;
          let at = 0;
          const written: Line[] = [];
          for (let i = 0; at < whole.length; i++) {
            at += sizes[i % sizes.length]!;
            const step = advanceStream(stream, whole.slice(0, at), 80, 10);
            stream = step.stream;
            written.push(...step.finished);
            expect(stream.pending.split("\n").length).toBeLessThanOrEqual(30);
          }
          written.push(...finishStream(stream, whole, 80));
          const shown = (lines: readonly Line[]): string[] =>
            lines.map((row) => lineText(row).trimEnd()).filter((row) => row !== "");
          expect(shown(written)).toEqual(shown(markdownLines(whole, 80)));
        },
      ),
      seed,
      200,
    );
  });

  test("a block of code of 10,000 lines is finished as it comes: no step looks at more than its end", () => {
    let stream = EMPTY_STREAM;
    let all = "```\n";
    let rows = 0;
    let largest = 0;
    for (let i = 0; i < 10_000; i++) {
      all += `line ${i}\n`;
      if (i % 50 !== 0) continue;
      const step = advanceStream(stream, all, 80, 16);
      stream = step.stream;
      rows += step.finished.length;
      largest = Math.max(largest, stream.pending.length, step.live.length);
    }
    rows += finishStream(stream, `${all}\`\`\``, 80).length;
    expect(rows).toBe(10_000);
    expect(largest).toBeLessThan(2_000);
  });

  test("one line without an end is finished piece by piece too", () => {
    let stream = EMPTY_STREAM;
    let all = "";
    let written = "";
    for (let i = 0; i < 400; i++) {
      all += `word${i} `.repeat(20);
      const step = advanceStream(stream, all, 80, 10);
      stream = step.stream;
      written += text(step.finished);
      expect(stream.pending.length).toBeLessThan(10_000);
    }
    written += text(finishStream(stream, all, 80));
    expect(written.match(/word399/g)).toHaveLength(20);
  });
});
