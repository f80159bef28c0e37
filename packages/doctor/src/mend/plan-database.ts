import type { Change } from "../contract/plan.ts";
import { DatabaseCopy } from "../files/database.ts";
import type { Door } from "../files/door.ts";

/** In the place of a database, one in which these statements were carried out, each with the same parameters. */
export function replaceDatabase(
  path: string,
  door: Door,
  statements: readonly string[],
  why: string,
  parameters: readonly string[],
): readonly Change[] {
  const from = DatabaseCopy.changed(path, door, statements, ...parameters);
  const log = door.facts(`${path}-wal`)?.size ?? 0;
  const edit = { offset: 0, length: log, bytes: new Uint8Array(0), grade: "rebuilt", why } as const;
  return [
    // The log belongs to the old file; what is in it is in the new one.
    ...(log > 0 ? [{ type: "edit", path: `${path}-wal`, size: log, edits: [edit] } as const] : []),
    { type: "replace", path, size: door.facts(path)!.size, from, grade: "rebuilt", why },
  ];
}
