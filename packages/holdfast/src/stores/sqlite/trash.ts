import { setImmediate as breathe } from "node:timers/promises";
import { diskFailure } from "../../disk/failure.ts";
import type { HoldfastError } from "../../errors.ts";
import type { Leases } from "../lease.ts";
import type { Database } from "./database/database.ts";
import type { Wal } from "./database/wal.ts";
import { findSession, ownerOf } from "./rows/catalogue.ts";
import type { Rows } from "./rows/rows.ts";

const WHAT = "collect garbage";
const WEEK_MS = 7 * 24 * 3600 * 1000;
/** Lines are removed in transactions of this many, so that no writer waits long. */
const REMOVE_ROWS = 256;
/** A rough estimate: one page per line. */
const PAGE_BYTES = 4096;

/** Removes trash older than the grace period, and unused leases. The file keeps its size: the space is reused. */
export async function collectGarbage(
  database: Database,
  wal: Wal,
  leases: Leases,
  nowMs: number,
  graceMs = WEEK_MS,
): Promise<{ readonly removed: readonly string[] }> {
  const { rows } = database;
  const removed: string[] = [];
  for (const { key, id } of await database.read(WHAT, () => rows.trashed(nowMs - graceMs))) {
    if (id === null || !(await database.read(WHAT, () => isTrash(rows, key, id)))) continue;
    // Nobody may restore a session that is half removed.
    if (!(await database.retry(WHAT, () => database.write(() => rows.claimTrashed(key))))) continue;
    // The lines first: if the session's row went first, they would stay forever.
    const removeSome = (): number => database.write(() => rows.removeLines(key, REMOVE_ROWS));
    while ((await database.retry(WHAT, removeSome)) > 0) {
      wal.grew(REMOVE_ROWS * PAGE_BYTES);
      await breathe();
    }
    await database.retry(WHAT, () => database.transaction(() => rows.removeSession(key)));
    removed.push(id);
  }
  await removeLeases(database, leases, nowMs);
  return { removed };
}

/** Leases of deleted sessions. One that cannot be removed does not stop the others: it is reported at the end. */
async function removeLeases(database: Database, leases: Leases, nowMs: number): Promise<void> {
  const { rows, file } = database;
  let failure: HoldfastError | null = null;
  const inWords = (error: unknown): HoldfastError =>
    diskFailure(error, WHAT, file, "No session is affected, and everything else was collected.");
  let ids: readonly string[] = [];
  try {
    leases.tidy(nowMs);
    ids = leases.ids();
  } catch (error) {
    failure = inWords(error);
  }
  for (const id of ids) {
    const isGone = (): boolean => findSession(rows, id) === null;
    // Checked again under the lease: the creator of a session has the lease before it has the row.
    const tidy = (): void => leases.whileFree(id, () => isGone() && leases.forget(id));
    try {
      if (await database.read(WHAT, isGone)) await database.read(WHAT, tidy);
    } catch (error) {
      failure ??= inWords(error);
    }
  }
  if (failure) throw failure;
}

/**
 * Not if only the row says so, or if the row does not belong to this journal: what is removed here is gone for good.
 */
function isTrash(rows: Rows, key: number, id: string): boolean {
  return key > 0 && findSession(rows, id)?.key !== key && (ownerOf(rows, key) ?? id) === id;
}
