import { credentials } from "holdfast";
import { describe, expect, test } from "vitest";
import { answerHtml } from "../../src/export/answer-html.ts";
import { fence } from "../../src/export/markdown.ts";
import { escapedHtml } from "../../src/export/markdown-html.ts";
import { redactDeep } from "../../src/export/redact.ts";
import { applyKey, EDITOR, rowsOf, withText } from "../../src/screen/input/editor.ts";
import { parseSlashCommand } from "../../src/screen/input/slash-commands.ts";
import { cut, line, untab, wrap } from "../../src/screen/lines/line.ts";
import { markdownLines } from "../../src/screen/lines/markdown.ts";
import { advanceStream, EMPTY_STREAM, finishStream } from "../../src/screen/lines/markdown-stream.ts";
import { plain, plainLine } from "../../src/terminal/plain.ts";
import { fit, widthOf } from "../../src/terminal/width.ts";
import { allowsCommand } from "../../src/tools/permission/command-rules.ts";
import { namesPath, parseRule } from "../../src/tools/permission/rules.ts";
import { simpleCommands } from "../../src/tools/permission/shell-words.ts";
import { callWords } from "../../src/transcript/words.ts";

/**
 * What parses or prints text that a model, a file or a command made takes time that grows with the text, not with its
 * square. The work is done by the engine's regular expressions, where steps cannot be counted: so the time of the
 * processor for a text eight times as long is compared, and has to be far from 64 times as much. `plain` itself is
 * counted (plain-cost.test.ts).
 */

const PIECES = [
  ...[
    "\x9d",
    "\x1b]",
    "\x1b[",
    "\x9b0",
    "\r",
    "\u0301",
    "👩\u200d",
    "\u202e",
    "\ud800",
    "\0",
    "\ufffd",
    "\t",
    " ",
    "\n",
  ],
  ...["`", "```\n", "[", "![", "[a](", "<", "<!--", "**", "_a", "*a_b", "> ", ">", "- ", "- a\n", "1. ", "|a|\n", "!"],
  ...[
    "\\",
    "'",
    '"',
    "(",
    "{",
    "a",
    "a ",
    "=.",
    "../",
    "/",
    ";",
    ">/dev/null ",
    "…",
    "日",
    "\\`<",
    "` `` ",
    "password=",
  ],
];

const rule = parseRule("shell(a *x*)")!;
const paths = parseRule("read(**/a/**/*b*)")!;

const TARGETS: readonly [name: string, work: (text: string) => unknown][] = [
  ["plain", plain],
  ["plainLine", plainLine],
  ["widthOf", widthOf],
  ["fit", (text) => fit(text, 1_000_000)],
  ["cut", (text) => cut(line(text), 80)],
  ["untab", untab],
  ["wrap", (text) => wrap(line(text), 80)],
  ["markdownLines", (text) => markdownLines(text, 80)],
  ["answerHtml", answerHtml],
  ["escapedHtml", escapedHtml],
  ["fenced", (text) => fence(text, "text")],
  ["export --redact", (text) => redactDeep({ text, arguments: JSON.stringify({ a: text }), password: text })],
  ["credentials", credentials],
  ["the editor", (text) => [rowsOf(text, 80), applyKey(withText(EDITOR, text), { name: "deleteWord" } as never, 80)]],
  ["slash commands", (text) => [parseSlashCommand(text), parseSlashCommand(`/quit${text}`)]],
  ["callWords", (text) => callWords({ name: "shell", input: { command: text } })],
  ["simpleCommands", (text) => [simpleCommands(text), simpleCommands(`echo "${text}`)]],
  ["rules", (text) => [parseRule(text), parseRule(`shell${text}`), allowsCommand(rule, ["a", `${text}x`])]],
  ["paths of rules", (text) => namesPath(paths, "read", `/${text}`, { cwd: "/w", home: "/h" }, true)],
];

const SMALL = 8_000;
const TIMES = 8;
/** Below this, the time says nothing. */
const NOISE_MS = 60;

function millisecondsOf(work: () => unknown): number {
  const before = process.threadCpuUsage();
  work();
  const { user, system } = process.threadCpuUsage(before);
  return (user + system) / 1000;
}

const of = (piece: string, length: number): string => `${piece.repeat(Math.ceil(length / piece.length))}x`;

describe("hostile text", () => {
  test.each(TARGETS)(
    "%s takes time that grows with the text",
    (_name, work) => {
      for (const piece of PIECES) {
        const small = Math.min(...[1, 2].map(() => millisecondsOf(() => work(of(piece, SMALL)))));
        const large = millisecondsOf(() => work(of(piece, TIMES * SMALL)));
        // Linear is 8 times as much, quadratic 64 times.
        expect(large, `${JSON.stringify(piece)}: ${small} ms, then ${large} ms`).toBeLessThan(
          Math.max(10 * NOISE_MS, 3 * TIMES * small),
        );
      }
    },
    60_000,
  );

  test("markdown that is streamed", () => {
    for (const piece of ["_a", "**", "> ", "```\n", "![", "- a\n", "|a|\n"]) {
      const text = of(piece, 20_000);
      let stream = EMPTY_STREAM;
      for (let at = 1000; at < text.length; at += 1000)
        stream = advanceStream(stream, text.slice(0, at), 80, 20).stream;
      expect(finishStream(stream, text, 80)).toBeDefined();
    }
  }, 60_000);

  test("nesting deeper than the stack, and more rows than a call has arguments", () => {
    for (const piece of [">", "> ", "1. ", "- ", "[", "**a _b "]) {
      expect(markdownLines(piece.repeat(20_000), 80).length).toBeGreaterThan(0);
      expect(answerHtml(piece.repeat(8_000))).not.toBe("");
    }
    expect(markdownLines(`\`\`\`\n${"a\n".repeat(200_000)}\`\`\``, 80).length).toBeGreaterThanOrEqual(200_000);
  }, 60_000);
});
