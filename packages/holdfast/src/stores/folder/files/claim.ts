import { join } from "node:path";
import type { Disk } from "../../../disk/disk.ts";
import { diskFailure, tolerate } from "../../../disk/failure.ts";
import { errnoOf, HoldfastError } from "../../../errors.ts";
import { claimedNumber, claimName, SEGMENT_NUMBER_MAX, segmentNumber } from "./segment.ts";

/**
 * An empty file, which only one of all contenders can create, claims the right to write a segment. A writer that takes
 * over a session claims the number after the newest, then reads the journal; the writer of the previous segment checks
 * for the claim after it has written and before it acknowledges. So the new writer reads everything acknowledged before
 * the claim, and nothing is acknowledged after it, whatever happened to the locks (stores/lease.ts). The numbers put
 * writers in order: a replaced writer that does not know it yet can only create a segment from which the newer one does
 * not continue.
 */

/** A taken claim means that another writer came first; more than a few of these are no coincidence. */
const TRIES_MAX = 1000;

/** Claims the number after all segments and claims. Throws the disk's errors. */
export function claimNext(disk: Disk, folder: string): number {
  for (let tries = 0; tries < TRIES_MAX; tries++) {
    const number = 1 + highest(disk, folder, claimedNumber);
    if (!create(disk, folder, number)) continue;
    // Between our check and our claim, an active writer may have started a segment with this number and removed its own
    // claim.
    if (highest(disk, folder) < number) return number;
  }
  throw Object.assign(new Error("too many writers claim the session at once"), { code: "EBUSY" });
}

/** Claims exactly this number. Throws LEASE_LOST if it is taken. */
export function claim(disk: Disk, folder: string, number: number): void {
  try {
    if (!create(disk, folder, number)) throw replaced(folder);
  } catch (error) {
    throw diskFailure(error, "start a new segment", folder, "Existing data is not affected.");
  }
}

/**
 * Removes the claim of a writer that has moved on to that segment from the previous one: nobody checks for it any more.
 * (All other claims stay: a number without a claim tells the previous writer that it was not replaced.)
 */
export function unclaim(disk: Disk, folder: string, number: number): void {
  tolerate(() => disk.remove(claimPath(folder, number)), undefined);
}

export function isClaimed(disk: Disk, folder: string, number: number): boolean {
  return disk.stat(claimPath(folder, number)) !== null;
}

function claimPath(folder: string, number: number): string {
  return join(folder, claimName(number));
}

export function replaced(folder: string, cause?: unknown): HoldfastError {
  const message =
    `Another writer has taken over the session in ${folder}. Acknowledged records are safe; pending ones are in doubt. ` +
    "Close this journal, and reopen the session.";
  return new HoldfastError("LEASE_LOST", message, { path: folder }, cause);
}

function create(disk: Disk, folder: string, number: number): boolean {
  if (number > SEGMENT_NUMBER_MAX) throw noNumbersLeft(folder);
  try {
    disk.open(claimPath(folder, number), "create").close();
    return true;
  } catch (error) {
    if (errnoOf(error) === "EEXIST") return false;
    throw error;
  }
}

/** The highest number among the segments and other names. */
function highest(disk: Disk, folder: string, other?: (name: string) => number | null): number {
  return disk.list(folder).reduce((max, name) => Math.max(max, segmentNumber(name) ?? 0, other?.(name) ?? 0), 0);
}

/** Someone planted it: no writer gets that far. */
function noNumbersLeft(folder: string): HoldfastError {
  const message =
    `Could not start a new segment in ${folder}: no segment number is left. Nothing was written. ` +
    "Find out who put the segment or the claim with the highest number there, and remove it.";
  return new HoldfastError("STORE_FULL", message, { path: folder, limit: SEGMENT_NUMBER_MAX });
}
