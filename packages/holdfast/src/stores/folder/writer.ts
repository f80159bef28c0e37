import { join } from "node:path";
import type { Disk, DiskFile, DiskStat } from "../../disk/disk.ts";
import { diskFailure } from "../../disk/failure.ts";
import { putAll } from "../../disk/put-all.ts";
import { errnoOf, HoldfastError } from "../../errors.ts";
import type { Ledger, Prepared } from "../../journal/ledger.ts";
import { type SegmentPlace, segmentRecord } from "../../journal/lifecycle.ts";
import { type NewRecord, SEGMENT_BYTES_MAX } from "../../journal/record.ts";
import type { Lease } from "../lease.ts";
import { setTailsAside } from "./care/heal.ts";
import { claim, isClaimed, replaced, unclaim } from "./files/claim.ts";
import { createAtomically } from "./files/create-atomically.ts";
import { segmentName } from "./files/segment.ts";

/** Where a writer continues. */
export interface SegmentEnd {
  readonly folder: string;
  readonly session: string;
  /** The newest segment. */
  readonly segment: number;
  /** The segment that starts the epoch. */
  readonly epoch: number;
  readonly size: number;
  /** The newest segment belongs to another writer: this one continues in a segment it has claimed. */
  readonly claim?: { readonly number: number; readonly after: SegmentPlace };
}

/**
 * The newest segment, open for appending: writes bytes at its end, takes back what did not fit, syncs, and notices if
 * the file is no longer the one it opened. The journal, not this class, knows which callers wait for what.
 */
export class SegmentWriter {
  readonly #disk: Disk;
  readonly #ledger: Ledger;
  readonly #lease: Lease;
  readonly #folder: string;
  readonly #session: string;
  #segment: number;
  #epoch: number;
  #size: number;
  /** Null until there is a segment to append to. */
  #file: DiskFile | null = null;
  /**
   * A second descriptor also receives every write-back error, whichever sync the kernel reports it to first; and
   * Windows truncates only through this one (S11).
   */
  #second: DiskFile | null = null;
  #identity: DiskStat | null = null;
  /** Where the next segment continues from, if the last writer did not close the segment before it. */
  #after: SegmentPlace | undefined;
  /** The number this writer has claimed for its next segment. */
  #claimed: number | null = null;

  constructor(disk: Disk, ledger: Ledger, lease: Lease, place: SegmentEnd) {
    this.#disk = disk;
    this.#ledger = ledger;
    this.#lease = lease;
    this.#folder = place.folder;
    this.#session = place.session;
    this.#segment = place.segment;
    this.#epoch = place.epoch;
    this.#size = place.size;
    if (place.claim) {
      this.#claimed = place.claim.number;
      this.#after = place.claim.after;
    } else this.#open(segmentName(place.segment));
  }

  get size(): number {
    return this.#size;
  }
  get segment(): number {
    return this.#segment;
  }
  /** Stored when the file is opened: every sync uses it, and building it costs more than the check. */
  get path(): string {
    return this.#file!.path;
  }
  /**
   * Writes one unit at the end, in one write if the disk takes it all. Throws STORE_FULL or STORE_IO with nothing
   * written, or FILE_REPLACED (in doubt).
   */
  put(prepared: Prepared): void {
    const { bytes } = prepared;
    if (this.#size + bytes.length > SEGMENT_BYTES_MAX) throw segmentFull(this.path);
    let written = 0;
    try {
      putAll(bytes, (rest) => {
        const count = this.#file!.write(rest);
        written += count;
        return count;
      });
    } catch (error) {
      this.#cutBack(written);
      throw diskFailure(
        error,
        "append to the journal",
        this.path,
        "Nothing of this append was written, and nothing before it is affected.",
      );
    }
    this.#size += written;
    this.#ledger.commit(prepared);
  }

  /** Resolves when everything written before the call is on stable storage. */
  sync(): Promise<void> {
    return this.#file!.sync();
  }

  /**
   * `DiskFile.syncIfFast`, and what `assertMine` checks. That comes first here: it must follow the write, not the sync,
   * and takes a third of the time while the processor's caches are warm. Who takes the session over after the check
   * reads what was written before it.
   */
  syncIfFast(): boolean {
    const file = this.#file!;
    if (!file.syncIfFast) return false;
    this.assertMine();
    return file.syncIfFast();
  }

  syncNow(): void {
    this.#second!.syncNow();
  }

  /**
   * Do the file and the session still belong to this writer (S12)? A sync proves nothing about a file that nobody will
   * find again, or read to its end.
   */
  assertMine(): void {
    let found: DiskStat | null;
    try {
      found = this.#disk.stat(this.path);
      const next = (this.#claimed ?? this.#segment) + 1;
      if (found && isClaimed(this.#disk, this.#folder, next)) throw replaced(this.#folder);
      if (found) this.#lease.assertHeld();
    } catch (error) {
      throw error instanceof HoldfastError ? error : cannotLook(this.path, error);
    }
    const { dev, ino } = this.#identity!;
    if (found && found.dev === dev && found.ino === ino && found.size === this.#size) return;
    const facts = { path: this.path, expectedBytes: this.#size, foundBytes: found?.size ?? null };
    const what = !found
      ? "is gone"
      : found.ino !== ino || found.dev !== dev
        ? "was replaced by another file"
        : "was changed by another program";
    const message = `The journal file ${this.path} ${what}. This process did not affect acknowledged records; pending ones are in doubt. Close this journal, and reopen the session.`;
    throw new HoldfastError("FILE_REPLACED", message, facts);
  }

  /**
   * Continues in a new segment, which starts with `records` if it starts an epoch. The old one is already synced.
   * Throws STORE_FULL or STORE_IO with the old one still in use, or SYNC_FAILED, FILE_REPLACED or LEASE_LOST (in
   * doubt).
   */
  next(records: readonly NewRecord[] | null, key?: string): Prepared {
    // If nothing waited for a sync, nothing has been checked since the last append: someone may have replaced the
    // folder with a backup.
    if (this.#file) this.assertMine();
    // Claimed once: if there is no space for the segment now, the number stays this writer's.
    if (this.#claimed === null) {
      claim(this.#disk, this.#folder, this.#segment + 1);
      this.#claimed = this.#segment + 1;
    }
    const number = this.#claimed;
    const epoch = records ? number : this.#epoch;
    const header = segmentRecord({
      session: this.#session,
      segment: number,
      epoch,
      ...(this.#after ? { after: this.#after } : {}),
      ...(records ? { keys: this.#ledger.keysToCarry(key, records.length) } : {}),
    });
    const prepared = this.#ledger.prepareSegment([header, ...(records ?? [])]);
    setTailsAside(this.#disk, this.#folder, number);
    createAtomically(this.#disk, this.#folder, segmentName(number), (put) => put(prepared.bytes), {
      unlessThere: true,
    });
    if (!this.#after) unclaim(this.#disk, this.#folder, number);
    this.#ledger.commit(prepared);
    this.#ledger.setDurable(prepared.last);
    if (records) this.#ledger.forgetOldKeys(key, { seq: prepared.seq + 1, last: prepared.last });
    this.#moveTo(number, prepared.bytes.length);
    this.#epoch = epoch;
    this.#after = undefined;
    this.#claimed = null;
    // A writer that took over the session in the meantime may not have seen the new segment.
    this.assertMine();
    return prepared;
  }

  /** Descriptors are closed only while no sync is running. */
  close(): void {
    this.#file?.close();
    this.#second?.close();
  }

  #open(name: string): void {
    [this.#file, this.#second, this.#identity] = openTwice(this.#disk, join(this.#folder, name));
  }

  /** The old descriptors are closed once the new ones are open, so that there is always one pair to close. */
  #moveTo(number: number, size: number): void {
    const path = join(this.#folder, segmentName(number));
    const [oldFile, oldSecond] = [this.#file, this.#second];
    try {
      this.#open(segmentName(number));
    } catch (error) {
      const message = `The new segment ${path} exists, but could not be opened. Acknowledged records are safe. Close this journal, and reopen the session.`;
      throw new HoldfastError("SYNC_FAILED", message, { path, errno: errnoOf(error) ?? "unknown" }, error);
    }
    this.#segment = number;
    this.#size = size;
    oldFile?.close();
    oldSecond?.close();
  }

  /** Takes back what a failed write left, so that its place and seq can be reused (S11). */
  #cutBack(written: number): void {
    let found: number | undefined;
    try {
      found = this.#file!.stat().size;
      if (found === this.#size) return;
      if (found === this.#size + written) {
        this.#second!.truncate(this.#size);
        return;
      }
    } catch (error) {
      throw this.#stuck(found, error);
    }
    throw this.#stuck(found, undefined);
  }

  #stuck(found: number | undefined, cause: unknown): HoldfastError {
    const facts = { path: this.path, expectedBytes: this.#size, foundBytes: found ?? null };
    const message =
      `A write to ${this.path} failed halfway and could not be undone. Acknowledged records are safe; this append is in doubt. ` +
      "Close this journal, and reopen the session: that heals it.";
    return new HoldfastError("FILE_REPLACED", message, facts, cause);
  }
}

function cannotLook(path: string, cause: unknown): HoldfastError {
  const message =
    `${path} cannot be checked, so it may no longer belong to this writer. Acknowledged records are safe; pending ones are in doubt. ` +
    "Close this journal, and reopen the session.";
  return new HoldfastError("SYNC_FAILED", message, { path, errno: errnoOf(cause) ?? "unknown" }, cause);
}

/** There was no space for a new segment for a very long time, and readers stop at this size. */
function segmentFull(path: string): HoldfastError {
  const message =
    `Could not append to the journal: the segment ${path} has reached the maximum readable size, and no new one could be started. ` +
    "Nothing of this append was written, and nothing before it is affected. Free some space, and try again.";
  return new HoldfastError("STORE_FULL", message, { path, limit: SEGMENT_BYTES_MAX });
}

function openTwice(disk: Disk, path: string): [DiskFile, DiskFile, DiskStat] {
  const opened: DiskFile[] = [];
  try {
    const file = disk.open(path, "append");
    opened.push(file);
    const second = disk.open(path, "update");
    opened.push(second);
    return [file, second, file.stat()];
  } catch (error) {
    for (const file of opened) file.close();
    throw error;
  }
}
