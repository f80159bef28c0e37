import type { TrashedSession } from "holdfast";
import { shortIds } from "../short-id.ts";
import { paintFor } from "../terminal/colour.ts";
import { plainLine } from "../terminal/plain.ts";
import { tableLines } from "../terminal/table.ts";
import { ago } from "../terminal/time.ts";

/** Deleted sessions as a table. */
export function trashLines(
  sessions: readonly TrashedSession[],
  now: number,
  columns: number | undefined,
): readonly string[] {
  const short = shortIds(sessions.map(({ id }) => id));
  const paint = paintFor(process.stdout);
  const rows = sessions.map(({ id, trashedAt, title, parent, cwd }) => [
    short.get(id)!,
    ago(trashedAt, now),
    `${parent ? "sub-agent: " : ""}${plainLine(title) || "(no prompt yet)"}`,
    plainLine(cwd ?? ""),
  ]);
  return tableLines(
    [
      { title: "session" },
      { title: "deleted" },
      { title: "title", shrinksTo: 12 },
      { title: "folder", shrinksTo: 8, isExtra: true },
    ],
    rows,
    columns,
    (text, row, column) =>
      row === "title" ? paint("heading", text) : column === 1 || column === 3 ? paint("faint", text) : text,
  );
}
