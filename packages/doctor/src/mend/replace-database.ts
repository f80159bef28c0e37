import type { Change, Grade } from "../contract/plan.ts";
import { DatabaseCopy } from "../files/database.ts";
import type { Door } from "../files/door.ts";

/** Puts the database `from` in the place of another. What the old one's log holds is in it already. */
export function replaceDatabase(path: string, from: string, grade: Grade, why: string, door: Door): Change[] {
  const log = door.facts(`${path}-wal`)?.size ?? 0;
  const edit = { offset: 0, length: log, bytes: new Uint8Array(0), grade, why } as const;
  return [
    // SQLite would carry the old log over into the new file.
    ...(log > 0 ? [{ type: "edit", path: `${path}-wal`, size: log, edits: [edit] } as const] : []),
    { type: "replace", path, size: door.facts(path)?.size ?? 0, from, grade, why },
  ];
}

/** In the place of a database, one in which these statements were carried out, each with the same parameters. */
export function changeDatabase(
  path: string,
  door: Door,
  statements: readonly string[],
  why: string,
  parameters: readonly string[],
): readonly Change[] {
  return replaceDatabase(path, DatabaseCopy.changed(path, door, statements, ...parameters), "rebuilt", why, door);
}
