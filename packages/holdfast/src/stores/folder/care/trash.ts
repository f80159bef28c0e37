import { join } from "node:path";
import type { Disk, DiskStat } from "../../../disk/disk.ts";
import { diskFailure, isGeneral } from "../../../disk/failure.ts";
import { notAFolder } from "../../../disk/file-rules.ts";
import { errnoOf, type HoldfastError } from "../../../errors.ts";
import { isId } from "../../../journal/id.ts";
import type { Leases } from "../../lease.ts";
import { listSegments, segmentNumber } from "../files/segment.ts";

const WEEK_MS = 7 * 24 * 3600 * 1000;
const DAY_MS = 24 * 3600 * 1000;
/** What the system says to the removal of a folder that is not empty, and to a rename that would replace one. */
export const NOT_EMPTY: ReadonlySet<string> = new Set(["ENOTEMPTY", "EEXIST"]);
const TRASHED = /^([0-9a-f-]{36})-(\d+)$/;

/** Under the lease. The session is whole in one place or the other. */
export function moveToTrash(disk: Disk, sessions: string, trash: string, id: string, nowMs: number): void {
  let time = Math.floor(nowMs);
  while (disk.stat(join(trash, `${id}-${time}`))) time++;
  const name = `${id}-${time}`;
  disk.rename(join(sessions, id), join(trash, name));
  // The new place before the old one: after a power cut between the two it may be in both, never in neither.
  disk.syncFolder(trash);
  disk.syncFolder(sessions);
}

/**
 * Empties the trash of what is older than the grace time, removes what never became a session, and leases that nobody
 * needs.
 */
export function collectGarbage(
  places: {
    readonly disk: Disk;
    readonly leases: Leases;
    readonly sessions: string;
    readonly trash: string;
    readonly incoming: string;
  },
  nowMs: number,
  graceMs = WEEK_MS,
): { readonly removed: readonly string[] } {
  const { disk, leases, sessions, trash, incoming } = places;
  const removed: string[] = [];
  let failure: HoldfastError | null = null;
  // One that cannot be removed, or looked at, does not keep the others: it is told of at the end.
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
      removeTree(disk, join(trash, name));
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

/** None if it is not there. What is in a folder that a link leads to is not for us to remove. */
function namesIn(disk: Disk, folder: string): string[] {
  const stat = disk.stat(folder);
  if (stat && stat.kind !== "folder") throw notAFolder(folder, stat.kind);
  return stat ? disk.list(folder) : [];
}

/**
 * A power cut in the middle of a delete can leave one folder under both names: what is in the trash is then the session
 * itself.
 */
function isSame(a: DiskStat | null, b: DiskStat | null): boolean {
  return a !== null && b !== null && a.dev === b.dev && a.ino === b.ino;
}

/**
 * Removes a folder that never became a session: one without a segment. False if it is a session, or becomes one
 * meanwhile. Locks get lost (decision 6), so it does not look first and then remove everything: it never removes a
 * segment, and the system removes no folder that has one.
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

/** What somebody else has removed meanwhile is as good as removed by us. */
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
