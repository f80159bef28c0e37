import type { Token, Tokens } from "marked";
import { plain } from "../../terminal/index.ts";
import { BoundedLexer } from "../../terminal/markdown-lexer.ts";
import { inlineLines } from "./inline.ts";
import { BLANK, type Line, line, type Style, span, untab, wrap } from "./line.ts";
import { tableRows } from "./markdown-table.ts";

/** Blocks of a text, with the blank lines between them as blocks of their own. The `raw` of all is the text. */
export function blocksOf(text: string): Token[] {
  return new BoundedLexer({ gfm: true }).lex(text);
}

/** What `blocksOf` can be given: harmless (C25), and of the same length in `raw` afterwards. */
export function readable(text: string): string {
  return untab(plain(text));
}

/** A whole text for the terminal. */
export function markdownLines(text: string, columns: number, style: Style = {}): Line[] {
  return blockLines(blocksOf(readable(text).trim()), columns, style);
}

/** Blocks with one blank line between them. */
export function blockLines(tokens: readonly Token[], columns: number, style: Style = {}): Line[] {
  const out: Line[] = [];
  for (const token of tokens) {
    const rows = oneBlock(token, columns, style);
    if (rows.length === 0) continue;
    if (out.length > 0) out.push(BLANK);
    // Not all at once: there may be more rows than a call takes arguments.
    for (const row of rows) out.push(row);
  }
  return out;
}

function oneBlock(token: Token, columns: number, style: Style): Line[] {
  switch (token.type) {
    case "space":
    case "def":
      return [];
    case "heading": {
      const { depth, tokens } = token as Tokens.Heading;
      const of: Style = depth <= 2 ? { ...style, bold: true, colour: "magenta" } : { ...style, bold: true };
      const mark = span(`${"#".repeat(depth)} `, { ...of, dim: true });
      return inlineLines(tokens, of).flatMap((one) => wrap(one, columns, { first: [mark] }));
    }
    case "hr":
      return [line("─".repeat(Math.max(1, Math.min(columns, 60))), { dim: true })];
    case "code":
      return codeRows((token as Tokens.Code).text, (token as Tokens.Code).lang, columns);
    case "blockquote": {
      const inner = blockLines((token as Tokens.Blockquote).tokens, columns - 2, { ...style, italic: true });
      return inner.map((one) => [span("▏ ", { colour: "grey" }), ...one]);
    }
    case "list":
      return listRows(token as Tokens.List, columns, style);
    case "table":
      return tableRows(token as Tokens.Table, columns, style);
    case "html":
      return (token as Tokens.HTML).text
        .trimEnd()
        .split("\n")
        .flatMap((text) => wrap(line(text, style), columns));
    default: {
      const { tokens, text } = token as Tokens.Paragraph;
      const lines = tokens === undefined ? text.split("\n").map((one) => line(one, style)) : inlineLines(tokens, style);
      return lines.flatMap((one) => wrap(one, columns));
    }
  }
}

function codeRows(text: string, lang: string | undefined, columns: number): Line[] {
  const edge = span("│ ", { colour: "grey" });
  const rows = text
    .split("\n")
    .flatMap((one) => wrap(line(one, { colour: "cyan" }), columns, { first: [edge], rest: [edge], hard: true }));
  const name = lang?.trim();
  return name ? [[span("│ ", { colour: "grey" }), span(name, { dim: true })], ...rows] : rows;
}

function listRows(list: Tokens.List, columns: number, style: Style): Line[] {
  const start = typeof list.start === "number" ? list.start : 1;
  return list.items.flatMap((item, i) => {
    const mark = list.ordered ? `${start + i}. ` : "• ";
    const inner = itemRows(item, columns - mark.length, style);
    const rows = inner.length === 0 ? [BLANK] : inner;
    const indent = span(" ".repeat(mark.length));
    const led = rows.map((row, r) => (r === 0 ? [span(mark, { colour: "grey" }), ...row] : [indent, ...row]));
    return list.loose && i < list.items.length - 1 ? [...led, BLANK] : led;
  });
}

/** The words of an item stand close to the list within it, unlike the blocks of a text. */
function itemRows(item: Tokens.ListItem, columns: number, style: Style): Line[] {
  const out: Line[] = [];
  let box: Token | null = null;
  for (const token of item.tokens) {
    if (token.type === "checkbox") {
      box = token;
      continue;
    }
    const own = token as Tokens.Text;
    const led = box !== null && own.tokens !== undefined ? ({ ...own, tokens: [box, ...own.tokens] } as Token) : token;
    box = null;
    const rows = oneBlock(led, columns, style);
    if (rows.length === 0) continue;
    if (out.length > 0 && item.loose) out.push(BLANK);
    for (const row of rows) out.push(row);
  }
  return out;
}
