import { join } from "node:path";
import type { Disk, DiskStat } from "../../../disk/disk.ts";
import { diskFailure, isGeneral } from "../../../disk/failure.ts";
import { notAFolder } from "../../../disk/file-rules.ts";
import { errnoOf, type HoldfastError } from "../../../errors.ts";
import { isId } from "../../../journal/id.ts";
import { LATEST_MS } from "../../../journal/order.ts";
import { notInTrash, sessionExists } from "../../../journal/refusals.ts";
import type { Leases } from "../../lease.ts";
import { GRACE_MS } from "../../store-base.ts";
import { listSegments, segmentNumber } from "../files/segment.ts";

const DAY_MS = 24 * 3600 * 1000;
/** System errors for removing a folder that is not empty, and for a rename that would replace one. */
const NOT_EMPTY: ReadonlySet<string> = new Set(["ENOTEMPTY", "EEXIST"]);
/** The last part marks a session that is being removed: it can no longer be restored. */
const TRASHED = /^([0-9a-f-]{36})-(\d+)(\.gone)?$/;

/** Runs under the lease. The session is complete in one place or the other. */
export function moveToTrash(disk: Disk, sessions: string, trash: string, id: string, nowMs: number): void {
  let time = Math.floor(nowMs);
  while (disk.stat(join(trash, `${id}-${time}`))) time++;
  const name = `${id}-${time}`;
  disk.rename(join(sessions, id), join(trash, name));
  // The new folder before the old one: after a power cut between the two syncs, the session may be in both, never in
  // neither.
  disk.syncFolder(trash);
  disk.syncFolder(sessions);
}

/** A session in the trash folder. */
export interface InTrash {
  readonly id: string;
  readonly folder: string;
  readonly trashedMs: number;
}

/** Everything in the trash that can be restored, the last one deleted first. */
export function listTrash(disk: Disk, sessions: string, trash: string): InTrash[] {
  const found: InTrash[] = [];
  for (const name of namesIn(disk, trash)) {
    const [, id, time, isGoing] = TRASHED.exec(name) ?? [];
    if (id === undefined || !isId(id) || isGoing !== undefined || Number(time) > LATEST_MS) continue;
    const folder = join(trash, name);
    const stat = disk.stat(folder);
    if (stat?.kind !== "folder" || isSame(stat, disk.stat(join(sessions, id)))) continue;
    if (listSegments(disk, folder).length === 0) continue;
    found.push({ id, folder, trashedMs: Number(time) });
  }
  return found.sort((one, other) => other.trashedMs - one.trashedMs || (one.folder < other.folder ? 1 : -1));
}

/** Runs under the lease. The session is complete in one place or the other. */
export function takeFromTrash(disk: Disk, sessions: string, trash: string, id: string): void {
  const found = listTrash(disk, sessions, trash).find((one) => one.id === id);
  if (!found) throw notInTrash(id);
  try {
    moveIntoPlace(disk, found.folder, sessions, id);
  } catch (error) {
    // Garbage collection has just taken it.
    if (errnoOf(error) === "ENOENT") throw notInTrash(id);
    throw error;
  }
  // The new folder before the old one, as in `moveToTrash`.
  disk.syncFolder(sessions);
  disk.syncFolder(trash);
}

/** Gives a complete session its name. Its caller makes that durable. */
export function moveIntoPlace(disk: Disk, folder: string, sessions: string, id: string): void {
  const target = join(sessions, id);
  // A folder without a segment is not a session: its creator was killed.
  if (disk.stat(target) && !removeUnborn(disk, target)) throw sessionExists(id);
  try {
    disk.rename(folder, target);
  } catch (error) {
    // A rename does not replace a folder that has content, so a session created in the meantime is kept.
    if (NOT_EMPTY.has(errnoOf(error) ?? "")) throw sessionExists(id);
    throw error;
  }
}

/** Removes trash older than the grace period, folders that never became a session, and unused leases. */
export function collectGarbage(
  places: {
    readonly disk: Disk;
    readonly leases: Leases;
    readonly sessions: string;
    readonly trash: string;
    readonly incoming: string;
  },
  nowMs: number,
  graceMs = GRACE_MS,
): { readonly removed: readonly string[] } {
  const { disk, leases, sessions, trash, incoming } = places;
  const removed: string[] = [];
  let failure: HoldfastError | null = null;
  // An item that cannot be removed or read does not stop the others: it is reported at the end.
  const each = (folder: string, names: readonly string[], collect: (name: string) => void): void => {
    for (const name of names) {
      try {
        collect(name);
      } catch (error) {
        if (isGeneral(error)) throw error;
        const safety = "No session is affected, and everything else was collected.";
        failure ??= diskFailure(error, "collect garbage", join(folder, name), safety);
      }
    }
  };
  try {
    each(trash, namesIn(disk, trash), (name) => {
      const match = TRASHED.exec(name);
      if (!match || nowMs - Number(match[2]) < graceMs) return;
      if (isSame(disk.stat(join(trash, name)), disk.stat(join(sessions, match[1]!)))) return;
      const claimed = claimForRemoval(disk, join(trash, name), match[3] !== undefined);
      if (claimed === null) return;
      removeTree(disk, claimed);
      removed.push(match[1]!);
    });
    each(sessions, disk.list(sessions), (id) => {
      const folder = join(sessions, id);
      const stat = disk.stat(folder);
      if (!isId(id) || stat?.kind !== "folder" || nowMs - stat.mtimeMs < DAY_MS) return;
      if (listSegments(disk, folder).length > 0) return;
      leases.whileFree(id, () => {
        if (removeUnborn(disk, folder)) removed.push(id);
      });
    });
    each(incoming, namesIn(disk, incoming), (id) => {
      const folder = join(incoming, id);
      const stat = disk.stat(folder);
      if (!isId(id) || stat?.kind !== "folder" || nowMs - stat.mtimeMs < DAY_MS) return;
      leases.whileFree(id, () => removeTree(disk, folder));
    });
    leases.tidy(nowMs);
    each(sessions, leases.ids(), (id) => {
      const isGone = () => disk.stat(join(sessions, id)) === null;
      if (isGone()) leases.whileFree(id, () => isGone() && leases.forget(id));
    });
  } catch (error) {
    throw diskFailure(error, "collect garbage", trash, "No session is affected.");
  }
  if (failure) throw failure;
  return { removed };
}

/**
 * Renames it first, so that nobody restores a session that is half removed: either this rename succeeds or that of
 * `takeFromTrash`. Null if it is no longer there.
 */
function claimForRemoval(disk: Disk, path: string, isClaimed: boolean): string | null {
  if (isClaimed || disk.stat(path)?.kind !== "folder") return path;
  const gone = `${path}.gone`;
  try {
    // One that cannot even be read stays as it is.
    disk.list(path);
    disk.rename(path, gone);
    return gone;
  } catch (error) {
    if (errnoOf(error) === "ENOENT") return null;
    throw error;
  }
}

/** Empty if the folder does not exist. If it is a link, its target is not ours to clean. */
function namesIn(disk: Disk, folder: string): string[] {
  const stat = disk.stat(folder);
  if (stat && stat.kind !== "folder") throw notAFolder(folder, stat.kind);
  return stat ? disk.list(folder) : [];
}

/**
 * A power cut during a delete can leave one folder under both names: what is in the trash is then the session itself.
 */
function isSame(a: DiskStat | null, b: DiskStat | null): boolean {
  return a !== null && b !== null && a.dev === b.dev && a.ino === b.ino;
}

/**
 * Removes a folder that never became a session: one without a segment. Returns false if it is a session, or becomes one
 * in the meantime. Locks can be lost (decision 6), so it does not check first and then remove everything: it never
 * removes a segment, and the system removes no folder that contains one.
 */
export function removeUnborn(disk: Disk, folder: string): boolean {
  try {
    const names = disk.list(folder);
    if (names.some((name) => segmentNumber(name) !== null)) return false;
    for (const name of names) removeTree(disk, join(folder, name));
    disk.removeFolder(folder);
    return true;
  } catch (error) {
    const errno = errnoOf(error) ?? "";
    if (NOT_EMPTY.has(errno)) return false;
    if (errno === "ENOENT") return true;
    throw error;
  }
}

/** If someone else has removed it in the meantime, that is fine too. */
export function removeTree(disk: Disk, path: string): void {
  try {
    if (disk.stat(path)?.kind === "folder") {
      for (const name of disk.list(path)) removeTree(disk, join(path, name));
      disk.removeFolder(path);
    } else disk.remove(path);
  } catch (error) {
    if (errnoOf(error) !== "ENOENT") throw error;
  }
}
