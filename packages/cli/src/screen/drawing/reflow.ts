import { stripVTControlCharacters } from "node:util";
import { widthOf } from "../../terminal/index.ts";
import type { Picture } from "./renderer.ts";

/**
 * Whether this terminal rewraps rows when it gets narrower. All common ones do, except these two, which cut them off.
 */
export function doesReflow(env: Readonly<Record<string, string | undefined>>): boolean {
  return env["XTERM_VERSION"] === undefined && env["TERM"] !== "linux";
}

/** How many rows are above the cursor. Where it is not shown, it stands in the row below the live part. */
export function rowsAbove({ live, cursor }: Pick<Picture, "live" | "cursor">): number {
  return cursor?.y ?? live.split("\n").length;
}

/** How many more rows than before are between the top of the live part and its cursor, at this width. */
export function countExtraRows(picture: Pick<Picture, "live" | "cursor">, columns: number): number {
  if (columns < 1) return 0;
  const above = picture.live.split("\n").slice(0, rowsAbove(picture));
  const inRow = Math.floor((picture.cursor?.x ?? 0) / columns);
  return rowsIn(above.join("\n"), columns) - Math.max(1, above.length) + inRow;
}

/** How many rows the text takes at this width. */
export function rowsIn(live: string, columns: number): number {
  const rows = live.split("\n").map((row) => Math.ceil(widthOf(stripVTControlCharacters(row)) / columns));
  return rows.reduce((sum, own) => sum + Math.max(1, own), 0);
}

/**
 * Clears the rows from `above` the cursor to the end of the screen, one by one, and returns: if they were erased at
 * once from the first row on, tmux would keep them in its scrollback.
 */
export function wipeRows(above: number, rows: number): string {
  const up = above > 0 ? `\u001b[${above}A` : "";
  return `\u001b7${up}${"\u001b[2K\u001b[B".repeat(rows)}\u001b8`;
}
