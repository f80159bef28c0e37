import { join } from "node:path";
import type { Disk, DiskFile, DiskLock, DiskStat } from "../../../disk/disk.ts";
import { diskFailure } from "../../../disk/failure.ts";
import { errnoOf, HoldfastError } from "../../../errors.ts";
import { assertSame } from "./connection.ts";
import { busy } from "./failure.ts";
import {
  type Claim,
  claimSlot,
  hardPath,
  isAbandoned,
  isLocked,
  lockSlot,
  makeFile,
  OWNER_AT,
  ownerOf,
  SLOT_BYTES,
} from "./slot.ts";

/** `read` is compatible with everything but `alone`, `write` only with `read`, and `alone` with nothing. */
export type Use = "read" | "write" | "alone";

const RANK: Record<Use, number> = { read: 1, write: 2, alone: 3 };
/** Two uses conflict if their ranks add up to this or more. */
const CONFLICT = 4;

/**
 * A use takes microseconds, or a sync at most. If one takes longer than this, its owner may be dead. Checking that is
 * expensive, so it is repeated no more often than this.
 */
const DEAD_MS = 50;
/**
 * How long to wait for an owner that is alive but does not hold its lock: it lost the lock, or its thread ended during
 * a use.
 */
const STALLED_MS = 3000;
/** How often `alone` looks, once a millisecond, whether those who were there before it have ended their uses. */
const LOOKS = 20;
/** A hard lock costs a child process, so a store that is closed right after it was opened does without one. */
const HARDEN_AFTER_MS = 100;

/** A raised flag. `head` is the flag and the use counter: if they change, its owner lives. */
interface Obstacle {
  readonly head: number;
  readonly since: number;
  looked: number;
}

/**
 * Coordinates the processes that use one database where SQLite's own locks do not. Those are POSIX locks: any code in a
 * process that opens, reads and closes the database or its `-shm` (a search tool, a backup) silently releases every
 * lock the process has on it, even in the middle of a transaction. Two writers in one log, or a log deleted while in
 * use, destroy the database.
 *
 * This class locks nothing: each user has a slot in a file, raises the flag in it, and then checks the flags of all
 * others. Of two that raise their flags at the same time, at least one sees the other's and backs down. Closing files
 * does not lower a flag. A user that dies with its flag up is detected by its process and by the locks of its slot,
 * which the kernel releases: a POSIX lock and, a moment later, a hard lock, for users in other containers, whose
 * processes are not visible.
 *
 * SQLite's locks still work beneath it. They alone keep out programs other than Holdfast.
 */
export class FlagLock {
  readonly #disk: Disk;
  readonly #folder: string;
  readonly #file: DiskFile;
  readonly #identity: DiskStat;
  readonly #slot: number;
  readonly #lock: DiskLock;
  readonly #owner: Buffer;
  /** The first two bytes of the slot. */
  readonly #head = Buffer.alloc(OWNER_AT);
  #slots = Buffer.alloc(8 * SLOT_BYTES);
  #inside = 0;
  #raisedAt = 0;
  #hasLeft = false;
  readonly #hardening: NodeJS.Timeout;
  /** Set if the flag could not be lowered. */
  #lowering: NodeJS.Timeout | undefined;
  #hardLock: DiskLock | null = null;
  /** Aborts on close: a pending hard lock would create its file in a folder that may be gone by then. */
  readonly #closing = new AbortController();
  /** The flags that were in the way of a use and have not moved since, by slot. Usually none. */
  readonly #inTheWay = new Map<number, Obstacle>();

  private constructor(disk: Disk, folder: string, file: DiskFile, claim: Claim) {
    this.#disk = disk;
    this.#folder = folder;
    this.#file = file;
    this.#identity = file.stat();
    this.#slot = claim.slot;
    this.#lock = claim.lock;
    this.#owner = claim.owner;
    this.#hardening = setTimeout(() => void this.#harden(), HARDEN_AFTER_MS);
    this.#hardening.unref();
  }

  /** `folder` exists. Throws STORE_FORBIDDEN, STORE_FULL, STORE_IO. */
  static open(disk: Disk, folder: string): FlagLock {
    const path = join(folder, "flags");
    try {
      if (!disk.stat(path)) makeFile(disk, path);
      const file = disk.open(path, "update");
      try {
        return new FlagLock(disk, folder, file, claimSlot(disk, folder, file));
      } catch (error) {
        file.close();
        throw error;
      }
    } catch (error) {
      throw diskFailure(error, "register as a user of the store", path, "Nothing was written to it.");
    }
  }

  /**
   * Runs `work` while nobody does anything that conflicts with it. Inside a use, a lesser or equal one is part of it.
   * Throws an error that `isBusy` recognises if another user is in the way.
   */
  use<T>(use: Use, work: () => T): T {
    const rank = RANK[use];
    if (this.#inside >= rank) return work();
    if (this.#inside > 0) throw new Error(`"${use}" was requested inside a lesser use`);
    this.#raise(rank);
    this.#inside = rank;
    try {
      return work();
    } finally {
      this.#inside = 0;
      this.#lower();
    }
  }

  /** Does anyone else have the database open? Call only inside `alone`. */
  isShared(): boolean {
    const count = this.#look();
    for (let slot = 0; slot < count; slot++) {
      if (slot === this.#slot) continue;
      const owner = ownerOf(this.#slots, slot);
      if (!owner) continue;
      if (!isAbandoned(this.#disk, this.#folder, slot, owner)) return true;
      // Checking it can cost a child process, each time.
      this.#freeIfPossible(slot);
    }
    return false;
  }

  /**
   * Ends this use and gives the slot back in one step: of several users that close at the same time, the last one finds
   * that it is. Call only inside `alone`, after the database was closed. Throws LEASE_LOST and the system's errors.
   */
  leave(): void {
    this.#look();
    this.#assertOwned();
    this.#file.writeAt(Buffer.alloc(SLOT_BYTES), this.#slot * SLOT_BYTES);
    this.#hasLeft = true;
  }

  /** Throws FILE_REPLACED if others would see another file, or none. */
  assertInPlace(): void {
    assertSame(this.#disk, this.#file.path, this.#identity);
  }

  close(): void {
    if (this.#closing.signal.aborted) return;
    this.#closing.abort();
    try {
      this.#look();
      if (this.#isOwned()) this.#file.writeAt(Buffer.alloc(SLOT_BYTES), this.#slot * SLOT_BYTES);
    } catch (error) {
      // The slot's lock goes with it: the next user that needs the slot finds it abandoned.
      if (errnoOf(error) === undefined) throw error;
    } finally {
      clearTimeout(this.#hardening);
      clearTimeout(this.#lowering);
      this.#file.close();
      this.#hardLock?.release();
      this.#lock.release();
    }
  }

  async #harden(): Promise<void> {
    try {
      const { signal } = this.#closing;
      const lock = await this.#disk.hardLock(hardPath(this.#folder, this.#slot), signal);
      if (signal.aborted) lock?.release();
      else this.#hardLock = lock;
    } catch (error) {
      // Then only the other lock is left.
      if (errnoOf(error) === undefined) throw error;
    }
  }

  #raise(rank: number): void {
    try {
      // A new owner of the slot may be using the database: its flag must not be overwritten.
      this.#look();
      this.#assertOwned();
      this.#head[0] = rank;
      this.#head[1] = (this.#head[1]! + 1) & 0xff;
      this.#file.writeAt(this.#head, this.#slot * SLOT_BYTES);
      this.#raisedAt = performance.now();
      // After our flag is up, not before: this guarantees that one of two users sees the other.
      let inTheWay = this.#findConflicts(rank);
      if (inTheWay.length > 0 && rank === RANK.alone) inTheWay = this.#outlast(inTheWay);
      if (inTheWay.length > 0) {
        this.#lower();
        this.#wait(inTheWay);
        throw busy("another process is using the database");
      }
      this.#assertOwned();
    } catch (error) {
      if (errnoOf(error) === undefined || error instanceof HoldfastError) throw error;
      this.#lower();
      throw diskFailure(error, "use the store", this.#file.path, "Nothing was written.");
    }
  }

  /** The slots whose flags are in the way of ours. */
  #findConflicts(rank: number): number[] {
    const count = this.#look();
    this.#forgetMoved();
    const found: number[] = [];
    for (let slot = 0; slot < count; slot++) {
      const flag = this.#slots[slot * SLOT_BYTES]!;
      if (flag === 0 || slot === this.#slot || flag + rank < CONFLICT) continue;
      found.push(slot);
    }
    return found;
  }

  /**
   * Where several processes read all the time, there may be no instant at which none of them does. So our flag stays up
   * for a moment: the others end their uses, and start none. Of two that wait like this, the one in the lower slot goes
   * on. This blocks all of them, so it is not done for a use that was in the way before: that one takes long. Returns
   * who is still in the way.
   */
  #outlast(inTheWay: number[]): number[] {
    if (inTheWay.some((slot) => this.#inTheWay.has(slot))) return inTheWay;
    let left = inTheWay;
    for (let looks = 0; looks < LOOKS && left.length > 0; looks++) {
      if (left.some((slot) => slot < this.#slot && this.#slots[slot * SLOT_BYTES] === RANK.alone)) break;
      blockFor(1);
      left = this.#findConflicts(RANK.alone);
    }
    return left;
  }

  #lower(): void {
    if (this.#hasLeft) return;
    const lasted = performance.now() - this.#raisedAt;
    if (lasted > STALLED_MS) {
      this.#look();
      this.#assertOwned();
    }
    this.#head[0] = 0;
    try {
      this.#file.writeAt(this.#head, this.#slot * SLOT_BYTES);
    } catch (error) {
      // The work is done, and must not be reported as failed.
      if (errnoOf(error) === undefined) throw error;
      this.#lowerLater();
    }
  }

  /** Others wait for this flag, and the next use may be far off. */
  #lowerLater(): void {
    clearTimeout(this.#lowering);
    this.#lowering = setTimeout(() => {
      try {
        this.#look();
        if (this.#isOwned()) this.#file.writeAt(this.#head, this.#slot * SLOT_BYTES);
      } catch (error) {
        if (errnoOf(error) === undefined) throw error;
        this.#lowerLater();
      }
    }, DEAD_MS);
    this.#lowering.unref();
  }

  /** Reads all slots; returns their number. */
  #look(): number {
    for (;;) {
      const length = this.#file.read(this.#slots, 0, this.#slots.length, 0);
      if (length < this.#slots.length) return Math.ceil(length / SLOT_BYTES);
      this.#slots = Buffer.alloc(this.#slots.length * 2);
    }
  }

  #isOwned(): boolean {
    const at = this.#slot * SLOT_BYTES + OWNER_AT;
    return this.#slots.compare(this.#owner, 0, this.#owner.length, at, at + this.#owner.length) === 0;
  }

  #assertOwned(): void {
    if (this.#isOwned()) return;
    const message =
      `Another process has taken the place of this one among the users of the store (${this.#file.path}): this one was stalled for too long, ` +
      "or someone removed the file. Acknowledged records are safe; what was just written is in doubt. Reopen the store.";
    throw new HoldfastError("LEASE_LOST", message, { path: this.#file.path });
  }

  /** This use may not meet the flags that another one waits for, so they are forgotten only when they move. */
  #forgetMoved(): void {
    for (const [slot, { head }] of this.#inTheWay) if (this.#headOf(slot) !== head) this.#inTheWay.delete(slot);
  }

  /**
   * Other flags are in the way. If one stays, its owner may be dead. They are timed together, but at most one is
   * lowered per call, because that can cost a child process.
   */
  #wait(slots: readonly number[]): void {
    const now = performance.now();
    const due: (readonly [number, Obstacle])[] = [];
    for (const slot of slots) {
      const obstacle = this.#inTheWay.get(slot);
      if (!obstacle) this.#inTheWay.set(slot, { head: this.#headOf(slot), since: now, looked: now });
      else if (now - obstacle.looked >= DEAD_MS) due.push([slot, obstacle]);
    }
    for (const [slot, obstacle] of due) {
      obstacle.looked = now;
      if (!this.#isUnused(slot, now - obstacle.since)) continue;
      this.#free(slot);
      return;
    }
  }

  /** Can the owner of this flag no longer lower it? */
  #isUnused(slot: number, waitedMs: number): boolean {
    const owner = ownerOf(this.#slots, slot);
    if (owner === null || isAbandoned(this.#disk, this.#folder, slot, owner)) return true;
    return waitedMs > STALLED_MS && !isLocked(this.#disk, this.#folder, slot);
  }

  #headOf(slot: number): number {
    return this.#slots.readUInt16LE(slot * SLOT_BYTES);
  }

  #bytesOf(slot: number): Buffer {
    return this.#slots.subarray(slot * SLOT_BYTES, (slot + 1) * SLOT_BYTES);
  }

  /**
   * Empties the slot of an owner that no longer can. Only one process can hold the slot's lock, so only one does this.
   */
  #free(slot: number): void {
    const found = Buffer.from(this.#bytesOf(slot));
    const lock = lockSlot(this.#disk, this.#folder, slot);
    if (!lock) return;
    try {
      this.#look();
      if (!found.equals(this.#bytesOf(slot))) return;
      this.#file.writeAt(Buffer.alloc(SLOT_BYTES), slot * SLOT_BYTES);
    } finally {
      lock.release();
    }
  }

  #freeIfPossible(slot: number): void {
    try {
      this.#free(slot);
    } catch (error) {
      // It stays, and does no harm.
      if (errnoOf(error) === undefined) throw error;
    }
  }
}

const NEVER = new Int32Array(new SharedArrayBuffer(4));

export function blockFor(ms: number): void {
  Atomics.wait(NEVER, 0, 0, ms);
}
