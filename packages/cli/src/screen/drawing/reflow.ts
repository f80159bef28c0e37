import { stripVTControlCharacters } from "node:util";
import { widthOf } from "../../terminal/index.ts";
import type { Picture } from "./renderer.ts";

/**
 * Does this terminal rewrap rows when it is made narrower? All that are in use do, but for these two, which cut
 * them off.
 */
export function doesReflow(env: Readonly<Record<string, string | undefined>>): boolean {
  return env["XTERM_VERSION"] === undefined && env["TERM"] !== "linux";
}

/**
 * How many rows more than before stand between the top of the live part and its cursor, now that the screen has so many
 * columns.
 */
export function countExtraRows({ live, cursor }: Pick<Picture, "live" | "cursor">, columns: number): number {
  if (cursor === null || columns < 1) return 0;
  const above = live.split("\n").slice(0, cursor.y);
  return rowsIn(above.join("\n"), columns) - Math.max(1, above.length) + Math.floor(cursor.x / columns);
}

/** How many rows it takes on a screen with so many columns. */
export function rowsIn(live: string, columns: number): number {
  const rows = live.split("\n").map((row) => Math.ceil(widthOf(stripVTControlCharacters(row)) / columns));
  return rows.reduce((sum, own) => sum + Math.max(1, own), 0);
}

/**
 * Empties the rows from so many above the cursor to the last of the screen, one by one, and comes back: what is erased
 * at one stroke from the first row on, tmux keeps in its scrollback.
 */
export function wipeRows(above: number, rows: number): string {
  const up = above > 0 ? `\u001b[${above}A` : "";
  return `\u001b7${up}${"\u001b[2K\u001b[B".repeat(rows)}\u001b8`;
}
