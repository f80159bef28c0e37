import { graphemes, widthOf } from "./width.ts";

/**
 * Wraps plain text between words, and a word that is wider than a row within it. A wrapped line keeps its own indent,
 * plus `hang` spaces. Line breaks stay. Without `columns` (not a terminal), or if it is 0 (a terminal that does not
 * know its size), the lines stay as they are.
 */
export function wrapWords(text: string, columns: number | undefined, hang = 0): string[] {
  const lines = text.split("\n");
  if (!columns) return lines;
  return lines.flatMap((line) => (widthOf(line) <= columns ? [line] : wrapLine(line, columns, hang)));
}

function wrapLine(line: string, columns: number, hang: number): string[] {
  const own = /^\s*/.exec(line)![0];
  // A narrow terminal has no room for an indent. A character can be two columns wide.
  const hasRoom = (indent: number): boolean => indent <= columns / 2 && indent + 2 <= columns;
  const rest = hasRoom(own.length + hang) ? own + " ".repeat(hang) : "";
  const rows: string[] = [];
  let row = hasRoom(own.length) ? own : "";
  let used = row.length;
  let isEmpty = true;
  const next = (): void => {
    rows.push(row.trimEnd());
    row = rest;
    used = rest.length;
    isEmpty = true;
  };
  for (const piece of piecesOf(line.slice(own.length), columns - rest.length)) {
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

/**
 * Words and the spaces between them. A command in quotes, or after a colon, stays whole if it fits on a row: people
 * copy it.
 */
function piecesOf(line: string, columns: number): string[] {
  return (line.match(/"holdfast [^"]+"[^\s"]*|(?<=: )holdfast .+$|\s+|\S+/gu) ?? []).flatMap((piece) =>
    /\S\s/u.test(piece) && widthOf(piece) > columns ? (piece.match(/\s+|\S+/gu) ?? []) : [piece],
  );
}
