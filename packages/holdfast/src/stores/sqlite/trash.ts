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
/** Lines are removed in transactions of this many, so that no writer has to wait long. */
const REMOVE_ROWS = 256;
/** A line has a page to itself, or more than one, or less: about. */
const PAGE_BYTES = 4096;

/**
 * Empties the trash of what is older than the grace time, and removes leases that nobody needs. The file keeps its
 * size: the space is used again.
 */
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
    // The lines first: a session whose row is gone would leave them behind for ever.
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

/** Of sessions that are gone. One that cannot be removed does not keep the others: it is told of at the end. */
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
    // Under the lease, and looked at again there: whoever creates the session has the lease before it has the row.
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
 * Not if it is only the row that says so, or if the row is not the one of this journal: what is removed here is gone
 * for good.
 */
function isTrash(rows: Rows, key: number, id: string): boolean {
  return key > 0 && findSession(rows, id)?.key !== key && (ownerOf(rows, key) ?? id) === id;
}
