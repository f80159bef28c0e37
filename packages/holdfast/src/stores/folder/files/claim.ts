import { join } from "node:path";
import type { Disk } from "../../../disk/disk.ts";
import { diskFailure } from "../../../disk/failure.ts";
import { errnoOf, HoldfastError } from "../../../errors.ts";
import { claimedNumber, claimName, SEGMENT_NUMBER_MAX, segmentNumber } from "./segment.ts";

/**
 * The right to write a segment is claimed by an empty file, which only one of all who try can make. A writer that takes
 * over a session claims the number after the newest, and reads the journal after that; the writer of the segment before
 * looks for the claim after it has written and before it acknowledges. So what was acknowledged before the claim is in
 * what the new writer reads, and nothing is acknowledged after it, whatever happened to the locks (stores/lease.ts).
 * The numbers give writers an order: one that was replaced, and does not know it yet, can only make a segment that the
 * newer one does not go on from.
 */

/** A claim that is taken means that another writer came first; more than a few of these are no accident. */
const TRIES_MAX = 1000;

/** Claims the number behind all segments and claims. Throws what the disk throws. */
export function claimNext(disk: Disk, folder: string): number {
  for (let tries = 0; tries < TRIES_MAX; tries++) {
    const number = 1 + highest(disk, folder, claimedNumber);
    if (!create(disk, folder, number)) continue;
    // Whoever lives there may have begun a segment of this number between our look and our claim, and be done with its
    // own claim.
    if (highest(disk, folder) < number) return number;
  }
  throw Object.assign(new Error("too many others claim the session"), { code: "EBUSY" });
}

/** Claims just this number. Throws LEASE_LOST if somebody else has. */
export function claim(disk: Disk, folder: string, number: number): void {
  try {
    if (!create(disk, folder, number)) throw replaced(folder);
  } catch (error) {
    throw diskFailure(error, "begin a new segment", folder, "Nothing that was there is affected.");
  }
}

/**
 * Removes the claim of a writer that has gone on to that segment from the one before: nobody looks for it any more.
 * (All other claims stay: a number that nobody has claimed tells the writer before it that it was not replaced.)
 */
export function unclaim(disk: Disk, folder: string, number: number): void {
  try {
    disk.remove(join(folder, claimName(number)));
  } catch (error) {
    if (errnoOf(error) === undefined) throw error;
  }
}

export function isClaimed(disk: Disk, folder: string, number: number): boolean {
  return disk.stat(join(folder, claimName(number))) !== null;
}

export function replaced(folder: string): HoldfastError {
  const message =
    `Another writer has taken over the session in ${folder}. What was acknowledged is safe; what waited is in doubt. ` +
    "Close this journal, and open the session again.";
  return new HoldfastError("LEASE_LOST", message, { path: folder });
}

function create(disk: Disk, folder: string, number: number): boolean {
  if (number > SEGMENT_NUMBER_MAX) throw noNumbersLeft(folder);
  try {
    disk.open(join(folder, claimName(number)), "create").close();
    return true;
  } catch (error) {
    if (errnoOf(error) === "EEXIST") return false;
    throw error;
  }
}

/** The highest number of a segment, and of other names. */
function highest(disk: Disk, folder: string, other?: (name: string) => number | null): number {
  return disk.list(folder).reduce((max, name) => Math.max(max, segmentNumber(name) ?? 0, other?.(name) ?? 0), 0);
}

/** Somebody has put it there: a writer does not get that far. */
function noNumbersLeft(folder: string): HoldfastError {
  const message =
    `Could not begin a new segment in ${folder}: there are no numbers left. Nothing was written. ` +
    "Look at who put the segment or the claim with the highest number there, and remove it.";
  return new HoldfastError("STORE_FULL", message, { path: folder, limit: SEGMENT_NUMBER_MAX });
}
