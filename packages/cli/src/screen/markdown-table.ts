import type { Tokens } from "marked";
import { widthOf } from "../terminal/index.ts";
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
    Math.max(1, lineWidth(title), ...body.map((row) => lineWidth(row[i] ?? BLANK))),
  );
  shrink(widths, columns - GAP * (widths.length - 1));
  const aligned = (cells: readonly Line[]): Line[] => rowsOf(cells, widths, table.align);
  const rule: Line = [span(widths.map((width) => "─".repeat(width)).join("─┼─"), { dim: true })];
  return [...aligned(head), rule, ...body.flatMap(aligned)];
}

function shrink(widths: number[], room: number): void {
  const sum = (): number => widths.reduce((total, width) => total + width, 0);
  while (sum() > room) {
    const widest = widths.indexOf(Math.max(...widths));
    if (widths[widest]! <= NARROWEST) return;
    widths[widest]!--;
  }
}

function rowsOf(cells: readonly Line[], widths: readonly number[], align: Tokens.Table["align"]): Line[] {
  const wrapped = widths.map((width, i) => wrap(cells[i] ?? BLANK, width));
  const height = Math.max(...wrapped.map((rows) => rows.length));
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
