import type { Tokens } from "marked";
import { widthOf } from "../../terminal/index.ts";
import { inlineLines } from "./inline.ts";
import { BLANK, type Line, lineWidth, type Style, span, wrap } from "./line.ts";

const GAP = 3;
const NARROWEST = 4;

/** A table whose columns give way to each other until it fits; cells wrap. */
export function tableRows(table: Tokens.Table, columns: number, style: Style): Line[] {
  const cell = (one: Tokens.TableCell, of: Style): Line =>
    inlineLines(one.tokens, of).flatMap((row, i) => (i > 0 ? [span(" "), ...row] : row));
  const head = table.header.map((one) => cell(one, { ...style, bold: true }));
  const body = table.rows.map((row) => row.map((one) => cell(one, style)));
  const widths = head.map((title, i) =>
    body.reduce((most, row) => Math.max(most, lineWidth(row[i] ?? BLANK)), Math.max(1, lineWidth(title))),
  );
  shrink(widths, columns - GAP * (widths.length - 1));
  const aligned = (cells: readonly Line[]): Line[] => rowsOf(cells, widths, table.align);
  const rule: Line = [span(widths.map((width) => "─".repeat(width)).join("─┼─"), { dim: true })];
  return [...aligned(head), rule, ...body.flatMap(aligned)];
}

function shrink(widths: number[], room: number): void {
  const sum = (): number => widths.reduce((total, width) => total + width, 0);
  // The widest give way first, one column at a time and all at once: only how wide the widest may be is looked for.
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

function rowsOf(cells: readonly Line[], widths: readonly number[], align: Tokens.Table["align"]): Line[] {
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
