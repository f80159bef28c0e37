import { graphemes, widthOf } from "./width.ts";

/**
 * Wraps plain text between words, and a word that is wider than a row within it. A wrapped line keeps its own indent,
 * plus `hang` spaces. Line breaks stay. Without `columns` (not a terminal), or if it is 0 (a terminal that does not know
 * its size), the lines stay as they are.
 */
export function wrapWords(text: string, columns: number | undefined, hang = 0): string[] {
  const lines = text.split("\n");
  if (!columns) return lines;
  return lines.flatMap((line) => (widthOf(line) <= columns ? [line] : wrapLine(line, columns, hang)));
}

function wrapLine(line: string, columns: number, hang: number): string[] {
  const own = /^\s*/.exec(line)![0];
  // A narrow terminal has no room for an indent.
  const rest = own.length + hang <= columns / 2 ? own + " ".repeat(hang) : "";
  const rows: string[] = [];
  let row = own.length <= columns / 2 ? own : "";
  let used = row.length;
  let isEmpty = true;
  const next = (): void => {
    rows.push(row.trimEnd());
    row = rest;
    used = rest.length;
    isEmpty = true;
  };
  for (const [piece] of line.slice(own.length).matchAll(/\s+|\S+/gu)) {
    const width = widthOf(piece);
    const isSpace = piece.trim() === "";
    if (used + width > columns && !isEmpty) {
      next();
      if (isSpace) continue;
    }
    if (isSpace && isEmpty && rows.length > 0) continue;
    if (used + width <= columns) {
      row += piece;
      used += width;
      isEmpty = false;
      continue;
    }
    for (const [grapheme, wide] of graphemes(piece)) {
      if (used + wide > columns && !isEmpty) next();
      row += grapheme;
      used += wide;
      isEmpty = false;
    }
  }
  rows.push(row.trimEnd());
  return rows;
}
