import { fit, pad, widthOf } from "./width.ts";

export interface Column {
  readonly title: string;
  readonly align?: "left" | "right";
  /** How far the column may shrink when the lines do not fit. Without it, the column keeps its width. */
  readonly shrinksTo?: number;
  /** Left out if the lines do not fit even then. */
  readonly isExtra?: true;
}

const GAP = 2;

/**
 * The lines of a table, fitted into `columnsMax` (undefined: no limit). Cells are plain text on one line; `style` gets
 * each cell after fitting.
 */
export function tableLines(
  columns: readonly Column[],
  rows: readonly (readonly string[])[],
  columnsMax: number | undefined,
  style: (text: string, row: number | "title", column: number) => string = (text) => text,
): string[] {
  const widths = columns.map(({ title }, i) =>
    rows.reduce((widest, row) => Math.max(widest, widthOf(row[i] ?? "")), widthOf(title)),
  );
  // A terminal that does not know its size says 0.
  if (columnsMax) {
    const least = widths.map((width, i) => Math.min(width, columns[i]!.shrinksTo ?? width));
    const needed = least.reduce((sum, width) => sum + width, 0) + GAP * (columns.length - 1);
    const extra = needed > columnsMax ? columns.findLastIndex(({ isExtra }) => isExtra) : -1;
    if (extra >= 0) {
      const others = <T>(list: readonly T[]): T[] => list.filter((_, i) => i !== extra);
      const styleOthers: typeof style = (text, row, column) => style(text, row, column < extra ? column : column + 1);
      return tableLines(others(columns), rows.map(others), columnsMax, styleOthers);
    }
    shrink(widths, columns, columnsMax);
  }
  const lineOf = (cells: readonly string[], row: number | "title"): string =>
    columns
      .map(({ align }, i) => {
        const cell = fit(cells[i] ?? "", widths[i]!);
        const styled = style(cell, row, i);
        // Do not pad the last column: trailing spaces are useless.
        if (i === columns.length - 1 && align !== "right") return styled;
        const filled = pad(cell, widths[i]!, align === "right" ? "right" : "left");
        return filled.replace(cell, () => styled);
      })
      .join(" ".repeat(GAP))
      .trimEnd();
  return [
    lineOf(
      columns.map(({ title }) => title),
      "title",
    ),
    ...rows.map((row, i) => lineOf(row, i)),
  ];
}

/** Narrows the widest column that may shrink, until the table fits or none can shrink further. */
function shrink(widths: number[], columns: readonly Column[], columnsMax: number): void {
  let over = widths.reduce((sum, width) => sum + width, 0) + GAP * (widths.length - 1) - columnsMax;
  while (over > 0) {
    let widest = -1;
    for (const [i, { shrinksTo }] of columns.entries()) {
      if (shrinksTo === undefined || widths[i]! <= shrinksTo) continue;
      if (widest < 0 || widths[i]! > widths[widest]!) widest = i;
    }
    if (widest < 0) return;
    widths[widest]!--;
    over--;
  }
}
