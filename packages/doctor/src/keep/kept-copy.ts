import { lstatSync } from "node:fs";
import { basename, dirname, join } from "node:path";
import type { SessionPlace } from "../contract/agent.ts";
import type { Door } from "../files/door.ts";
import { namesIn, rowsTargetOf, targetOf, WATCH_STATE } from "./names.ts";

/** The last good state of a session, as `holdfast watch` or `holdfast import` kept it. */
export interface KeptCopy {
  /** The session in its kept files, byte for byte: an agent's `read` takes it. Null if the files were never kept. */
  readonly session: SessionPlace | null;
  /** Contents that the first file had before it was rewritten, the latest first: paths. */
  readonly epochs: readonly string[];
  /** The rows of a session in a database that it shares: a file of JSON lines; the last one of a row counts. */
  readonly rows: string | null;
}

/** Null if nothing of the session was kept, or if it is not known where (`Door.keptFolderOf`). Writes nothing. */
export function keptCopyOf(session: SessionPlace, door: Door): KeptCopy | null {
  const folder = door.run.keptFolderOf?.(session.agent, session.id) ?? null;
  if (folder === null || door.kindOf(folder) !== "folder") return null;
  const rows = rowsTargetOf(folder, session);
  if (session.isShared) return isFile(rows) ? { session: null, epochs: [], rows } : null;
  const path = targetOf(folder, session, session.path);
  const epochs = namesIn(dirname(path))
    .filter((name) => name.startsWith(`${basename(path)}.epoch-`))
    .toSorted((a, b) => numberOf(b) - numberOf(a))
    .map((name) => join(dirname(path), name));
  if (!isFile(path)) return epochs.length > 0 ? { session: null, epochs, rows: null } : null;
  return { session: { ...session, path, parts: partsOf(folder, path) }, epochs, rows: null };
}

const numberOf = (name: string): number => Number(/\d+$/.exec(name)?.[0] ?? 0);

const isFile = (path: string): boolean => lstatSync(path, { throwIfNoEntry: false })?.isFile() === true;

/** Also those that are gone from the agent's own folder. */
function partsOf(folder: string, path: string): string[] {
  return namesIn(folder, true)
    .map((name) => join(folder, name))
    .filter(
      (each) => each !== path && isFile(each) && !/\.epoch-\d+$/.test(each) && !basename(each).startsWith(WATCH_STATE),
    )
    .toSorted();
}
