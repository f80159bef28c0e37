import type { Change, Grade } from "../contract/plan.ts";
import { type Copied, DatabaseCopy } from "../files/database.ts";
import type { Door } from "../files/door.ts";

/**
 * Puts a database in the place of another. What the old one's log holds is in it already, unless the agent has written
 * since it was copied: then nothing is done.
 */
export function replaceDatabase(
  path: string,
  { copy, state }: Copied,
  grade: Grade,
  why: string,
  door: Door,
): Change[] {
  const log = door.facts(`${path}-wal`)?.size ?? 0;
  const edit = { offset: 0, length: log, bytes: new Uint8Array(0), grade, why } as const;
  return [
    // SQLite would carry the old log over into the new file.
    ...(log > 0 ? [{ type: "edit", path: `${path}-wal`, size: log, edits: [edit] } as const] : []),
    { type: "replace", path, size: door.facts(path)?.size ?? 0, from: copy, state, grade, why },
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
