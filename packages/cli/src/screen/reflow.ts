import { stripVTControlCharacters } from "node:util";
import { widthOf } from "../terminal/index.ts";
import type { Picture } from "./drawing.ts";

/** Does this terminal break rows anew when it is made narrower? All that are in use do, but for these two, which cut them off. */
export function reflows(env: Readonly<Record<string, string | undefined>>): boolean {
  return env["XTERM_VERSION"] === undefined && env["TERM"] !== "linux";
}

/** How many rows more than before stand between the top of the live part and its cursor, now that the screen has so many columns. */
export function rowsMore({ live, cursor }: Pick<Picture, "live" | "cursor">, columns: number): number {
  if (cursor === null || columns < 1) return 0;
  const above = live.split("\n").slice(0, cursor.y);
  const broken = above.map((row) => Math.max(1, Math.ceil(widthOf(stripVTControlCharacters(row)) / columns)) - 1);
  return broken.reduce((sum, rows) => sum + rows, Math.floor(cursor.x / columns));
}
