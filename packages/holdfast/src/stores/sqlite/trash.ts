import { setImmediate as breathe } from "node:timers/promises";
import type { Database } from "./database/database.ts";
import type { Wal } from "./database/wal.ts";
import { findSession, ownerOf } from "./rows/catalogue.ts";
import type { Rows } from "./rows/rows.ts";

const WHAT = "collect garbage";
const WEEK_MS = 7 * 24 * 3600 * 1000;
/** Lines are removed in transactions of this many, so that nobody waits long. */
const REMOVE_ROWS = 256;
/** A rough estimate: one page per line. */
const PAGE_BYTES = 4096;

/** Removes trash older than the grace period. The file keeps its size: the space is reused. */
export async function collectGarbage(
  database: Database,
  wal: Wal,
  nowMs: number,
  graceMs = WEEK_MS,
): Promise<{ readonly removed: readonly string[] }> {
  const { rows } = database;
  const removed: string[] = [];
  for (const { key, id } of database.attempt(WHAT, () => rows.trashed(nowMs - graceMs))) {
    if (id === null || !database.attempt(WHAT, () => isTrash(rows, key, id))) continue;
    // Nobody may restore a session that is half removed.
    if (!database.attempt(WHAT, () => rows.claimTrashed(key))) continue;
    // The lines first: if the session's row went first, they would stay forever.
    while (database.attempt(WHAT, () => rows.removeLines(key, REMOVE_ROWS)) > 0) {
      wal.grew(REMOVE_ROWS * PAGE_BYTES);
      await breathe();
    }
    database.attempt(WHAT, () => database.transaction(() => rows.removeSession(key)));
    removed.push(id);
  }
  return { removed };
}

/**
 * Not if only the row says so, or if the row does not belong to this journal: what is removed here is gone for good.
 */
function isTrash(rows: Rows, key: number, id: string): boolean {
  return key > 0 && findSession(rows, id)?.key !== key && (ownerOf(rows, key) ?? id) === id;
}
