import { setImmediate as breathe } from "node:timers/promises";
import { GRACE_MS } from "../store-base.ts";
import { corrupt } from "./database/failure.ts";
import type { Opener } from "./database/open-database.ts";
import type { OpenFile } from "./open-file.ts";
import { ownerOf } from "./rows/catalogue.ts";

const WHAT = "collect garbage";
/** Lines are removed in transactions of this many, so that nobody waits long. */
const REMOVE_ROWS = 256;
/** A rough estimate: one page per line. */
const PAGE_BYTES = 4096;

/** Removes trash older than the grace period. The file keeps its size: the space is reused. */
export async function collectGarbage(
  file: OpenFile,
  opener: Opener,
  nowMs: number,
  graceMs = GRACE_MS,
): Promise<{ readonly removed: readonly string[] }> {
  const { database, wal } = file;
  const { rows } = database;
  const removed: string[] = [];
  const trashed = database.attempt(WHAT, () => {
    // What is removed here is gone for good, so a row is not enough to say that a session was deleted.
    if (!rows.isSound) throw corrupt("the table of sessions and its indexes disagree");
    return rows.trashed(nowMs - graceMs);
  });
  for (const { key, id } of trashed) {
    if (key === 0 || id === null || (database.attempt(WHAT, () => ownerOf(rows, key)) ?? id) !== id) continue;
    // Somebody copies it in, or restores it.
    if (file.holder(id)) continue;
    const release = file.lease(id, opener);
    try {
      // Nobody may restore a session that is half removed.
      if (!database.attempt(WHAT, () => rows.claimTrashed(key))) continue;
      // The lines first: if the session's row went first, they would stay forever.
      while (database.attempt(WHAT, () => rows.removeLines(key, REMOVE_ROWS)) > 0) {
        wal.grew(REMOVE_ROWS * PAGE_BYTES);
        await breathe();
      }
      database.attempt(WHAT, () => database.transaction(() => rows.removeSession(key)));
    } finally {
      release();
    }
    removed.push(id);
  }
  return { removed };
}
