import { graphemes, widthOf } from "../../terminal/index.ts";

export type Colour = "red" | "green" | "yellow" | "blue" | "magenta" | "cyan" | "grey";

export interface Style {
  readonly bold?: true;
  readonly dim?: true;
  readonly italic?: true;
  readonly underline?: true;
  readonly strike?: true;
  readonly inverse?: true;
  readonly colour?: Colour;
}

/** A piece of plain text on one line, in one style. */
export interface Span {
  readonly text: string;
  readonly style?: Style;
}

/** One row of the screen, or a line that is yet to be wrapped. */
export type Line = readonly Span[];

export const BLANK: Line = [];

export function span(text: string, style?: Style): Span {
  return style === undefined ? { text } : { text, style };
}

/** A line of one span. */
export function line(text: string, style?: Style): Line {
  return text === "" ? BLANK : [span(text, style)];
}

export function lineWidth(spans: Line): number {
  return spans.reduce((sum, { text }) => sum + widthOf(text), 0);
}

export function lineText(spans: Line): string {
  return spans.map(({ text }) => text).join("");
}

const COLOURS: Record<Colour, number> = {
  red: 31,
  green: 32,
  yellow: 33,
  blue: 34,
  magenta: 35,
  cyan: 36,
  grey: 90,
};

/** Adds escape sequences for the styles; `colour: false` leaves out only the colours (NO_COLOR). */
export function ansiOf(spans: Line, colour: boolean): string {
  return spans.map(({ text, style }) => applyStyle(text, style, colour)).join("");
}

function applyStyle(text: string, style: Style | undefined, colour: boolean): string {
  if (style === undefined || text === "") return text;
  let before = "";
  let after = "";
  const add = (on: number, off: number): void => {
    before += `\u001b[${on}m`;
    after = `\u001b[${off}m${after}`;
  };
  if (style.bold) add(1, 22);
  if (style.dim) add(2, 22);
  if (style.italic) add(3, 23);
  if (style.underline) add(4, 24);
  if (style.inverse) add(7, 27);
  if (style.strike) add(9, 29);
  if (style.colour !== undefined && colour) add(COLOURS[style.colour], 39);
  return before + text + after;
}

/** The start of a line that fits, ending in `…` if it was cut. */
export function cut(spans: Line, columns: number): Line {
  if (lineWidth(spans) <= columns) return spans;
  const kept: Span[] = [];
  let left = Math.max(0, columns - 1);
  for (const { text, style } of spans) {
    let piece = "";
    for (const [grapheme, own] of graphemes(text)) {
      if (own > left) {
        kept.push(span(columns > 0 ? `${piece}…` : "", style));
        return kept;
      }
      piece += grapheme;
      left -= own;
    }
    kept.push(span(piece, style));
  }
  return kept;
}

/** Expands tabs to stops of four columns: a tab has no width of its own, so it cannot be wrapped. */
export function untab(text: string): string {
  if (!text.includes("\t")) return text;
  let column = 0;
  let out = "";
  for (const [grapheme, own] of graphemes(text)) {
    const filled = grapheme === "\t" ? " ".repeat(4 - (column % 4)) : grapheme;
    out += filled;
    column = grapheme === "\n" ? 0 : column + (grapheme === "\t" ? filled.length : own);
  }
  return out;
}

export interface WrapOptions {
  /** Before the first row. */
  readonly first?: Line;
  /** Before each further row. */
  readonly rest?: Line;
  /** Break anywhere and keep every space: for code. */
  readonly hard?: true;
}

/** Wraps a line into rows of at most `columns`, between words, or within a word that is wider than a row. */
export function wrap(spans: Line, columns: number, options: WrapOptions = {}): Line[] {
  const first = options.first ?? BLANK;
  const rest = options.rest ?? BLANK;
  const rows: Line[] = [];
  let row: Span[] = [...first];
  let used = lineWidth(first);
  let empty = true;
  const limit = Math.max(columns, lineWidth(rest) + 2, used + 2);

  const next = (): void => {
    rows.push(trimmedEnd(row, options.hard === true));
    row = [...rest];
    used = lineWidth(rest);
    empty = true;
  };
  for (const { text, style } of spans) {
    for (const piece of options.hard ? [text] : words(text)) {
      const width = widthOf(piece);
      if (used + width <= limit) {
        // A wrapped row does not start with the space between two words.
        if (empty && rows.length > 0 && !options.hard && piece.trim() === "") continue;
        row.push(span(piece, style));
        used += width;
        empty = false;
        continue;
      }
      if (!options.hard && piece.trim() === "") continue;
      if (!options.hard && !empty && width <= limit - lineWidth(rest)) {
        next();
        row.push(span(piece, style));
        used += width;
        empty = false;
        continue;
      }
      let part = "";
      for (const [grapheme, own] of graphemes(piece)) {
        if (used + own > limit && (part !== "" || !empty)) {
          row.push(span(part, style));
          part = "";
          next();
        }
        part += grapheme;
        used += own;
        empty = false;
      }
      row.push(span(part, style));
    }
  }
  rows.push(trimmedEnd(row, options.hard === true));
  return rows;
}

function words(text: string): string[] {
  return text.match(/\s+|\S+/gu) ?? [];
}

function trimmedEnd(row: readonly Span[], hard: boolean): Line {
  const kept = mergeSpans(row);
  const last = kept.at(-1);
  if (hard || last === undefined) return kept;
  const text = last.text.trimEnd();
  return text === last.text ? kept : [...kept.slice(0, -1), span(text, last.style)];
}

/** Merges neighbours of the same style, for fewer escape sequences. */
function mergeSpans(row: readonly Span[]): Span[] {
  const out: Span[] = [];
  for (const one of row) {
    if (one.text === "") continue;
    const last = out.at(-1);
    if (last !== undefined && last.style === one.style) out[out.length - 1] = span(last.text + one.text, one.style);
    else out.push(one);
  }
  return out;
}
