import type { Token, Tokens } from "marked";
import { plain, widthOf } from "../../terminal/index.ts";
import { BoundedLexer } from "../../terminal/markdown-lexer.ts";
import { BLANK, type Line, line, lineWidth, type Span, type Style, span, untab, wrap } from "./line.ts";

/** The blocks of a text, including the blank space between them. Their `raw` texts add up to the text. */
export function blocksOf(text: string): Token[] {
  return new BoundedLexer({ gfm: true }).lex(text);
}

/** Prepares text for `blocksOf`: harmless (C25), and of the same length in `raw` afterwards. */
export function toReadable(text: string): string {
  return untab(plain(text));
}

/** Lays out a whole text for the terminal. */
export function markdownLines(text: string, columns: number, style: Style = {}): Line[] {
  return blockLines(blocksOf(toReadable(text).trim()), columns, style);
}

/** Lays out blocks, with a blank line between them. */
export function blockLines(tokens: readonly Token[], columns: number, style: Style = {}): Line[] {
  const out: Line[] = [];
  for (const token of tokens) {
    const rows = oneBlock(token, columns, style);
    if (rows.length === 0) continue;
    if (out.length > 0) out.push(BLANK);
    // Not in one push: there may be more rows than a call can have arguments.
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

/** Unlike the blocks of a text, those of a tight item have no blank line between them. */
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

/** The inline content of a paragraph, as lines split at line breaks. */
function inlineLines(tokens: readonly Token[] | undefined, style: Style = {}): Line[] {
  const lines: Span[][] = [[]];
  for (const { text, style: own } of (tokens ?? []).flatMap((token) => spansOf(token, style))) {
    for (const [i, piece] of text.split("\n").entries()) {
      if (i > 0) lines.push([]);
      if (piece !== "") lines.at(-1)!.push(span(piece, own));
    }
  }
  return lines;
}

function spansOf(token: Token, style: Style): Span[] {
  const inner = (of: Style): Span[] => ((token as Tokens.Strong).tokens ?? []).flatMap((one) => spansOf(one, of));
  switch (token.type) {
    case "strong":
      return inner({ ...style, bold: true });
    case "em":
      return inner({ ...style, italic: true });
    case "del":
      return inner({ ...style, strike: true });
    case "codespan":
      return [span((token as Tokens.Codespan).text, { ...style, colour: "cyan" })];
    case "br":
      return [span("\n", style)];
    case "link": {
      const { href, text } = token as Tokens.Link;
      const words = inner({ ...style, underline: true, colour: "blue" });
      // Always show where a link leads, unless its text already says so; `mailto:` adds nothing to an address.
      const told = text === href || `mailto:${text}` === href || href === "";
      return told ? words : [...words, span(` (${href})`, { ...style, dim: true })];
    }
    case "image": {
      const { text, href } = token as Tokens.Image;
      return [span(`[image: ${text || href}]`, { ...style, dim: true })];
    }
    case "checkbox":
      return [span((token as Tokens.Checkbox).checked ? "☑ " : "☐ ", style)];
    default: {
      const { tokens, text, raw } = token as Tokens.Text;
      return tokens !== undefined && tokens.length > 0 ? inner(style) : [span(text ?? raw, style)];
    }
  }
}

const GAP = 3;
const NARROWEST = 4;

/** A table whose columns shrink until it fits; cells wrap. */
function tableRows(table: Tokens.Table, columns: number, style: Style): Line[] {
  const cell = (one: Tokens.TableCell, of: Style): Line =>
    inlineLines(one.tokens, of).flatMap((row, i) => (i > 0 ? [span(" "), ...row] : row));
  const head = table.header.map((one) => cell(one, { ...style, bold: true }));
  const body = table.rows.map((row) => row.map((one) => cell(one, style)));
  const widths = head.map((title, i) =>
    body.reduce((most, row) => Math.max(most, lineWidth(row[i] ?? BLANK)), Math.max(1, lineWidth(title))),
  );
  shrink(widths, columns - GAP * (widths.length - 1));
  const aligned = (cells: readonly Line[]): Line[] => alignCells(cells, widths, table.align);
  const rule: Line = [span(widths.map((width) => "─".repeat(width)).join("─┼─"), { dim: true })];
  return [...aligned(head), rule, ...body.flatMap(aligned)];
}

function shrink(widths: number[], room: number): void {
  const sum = (): number => widths.reduce((total, width) => total + width, 0);
  // Shrink the widest columns first: search for the largest width limit that fits.
  let [low, high] = [NARROWEST, widths.reduce((most, width) => Math.max(most, width), NARROWEST)];
  if (sum() <= room) return;
  const cutTo = (most: number): number => widths.reduce((total, width) => total + Math.min(width, most), 0);
  while (low < high) {
    const most = Math.ceil((low + high) / 2);
    if (cutTo(most) <= room) low = most;
    else high = most - 1;
  }
  let left = Math.max(0, room - cutTo(low));
  for (let i = widths.length - 1; i >= 0; i--) {
    if (widths[i]! <= low) continue;
    const more = left > 0 ? 1 : 0;
    widths[i] = low + more;
    left -= more;
  }
}

function alignCells(cells: readonly Line[], widths: readonly number[], align: Tokens.Table["align"]): Line[] {
  const wrapped = widths.map((width, i) => wrap(cells[i] ?? BLANK, width));
  const height = wrapped.reduce((most, rows) => Math.max(most, rows.length), 0);
  return Array.from({ length: height }, (_, r) =>
    widths.flatMap((width, i) => {
      const own = wrapped[i]![r] ?? BLANK;
      const room = Math.max(0, width - own.reduce((total, { text }) => total + widthOf(text), 0));
      const left = align[i] === "right" ? room : align[i] === "center" ? Math.floor(room / 2) : 0;
      const last = i === widths.length - 1;
      return [
        span(" ".repeat(left)),
        ...own,
        span(last ? "" : " ".repeat(room - left)),
        span(last ? "" : " │ ", { dim: true }),
      ];
    }),
  );
}
