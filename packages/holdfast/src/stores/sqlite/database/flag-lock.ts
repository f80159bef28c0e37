import { randomUUID } from "node:crypto";
import { hostname } from "node:os";
import { join } from "node:path";
import type { Disk, DiskFile, DiskLock, DiskStat } from "../../../disk/disk.ts";
import { diskFailure } from "../../../disk/failure.ts";
import { errnoOf, HoldfastError } from "../../../errors.ts";
import { assertSame } from "./connection.ts";
import { busy } from "./failure.ts";

/** `read` goes with everything but `alone`, `write` only with `read`, and `alone` with nothing. */
export type Use = "read" | "write" | "alone";

const RANK: Record<Use, number> = { read: 1, write: 2, alone: 3 };
/** Two uses whose ranks add up to this, or more, keep each other out. */
const CONFLICT = 4;

/** A flag, a counter of uses, and who the slot belongs to, as JSON padded with NULs. */
const SLOT_BYTES = 256;
const OWNER_AT = 2;
const SLOTS_MAX = 1024;
const HOST_CHARS = 80;

/** A use takes microseconds, or a sync at most. If one takes longer than this, its owner may be dead. */
const DEAD_MS = 20;
/**
 * An owner that lives, but not behind its lock, is given this long: it lost the lock, or its thread ended in the middle
 * of a use.
 */
const STALLED_MS = 3000;
const LOOK_AGAIN_MS = 50;
/** A hard lock costs a child process, so a store that is opened and closed at once does without. */
const HARDEN_AFTER_MS = 100;

interface Owner {
  readonly id: string;
  readonly pid: number;
  /** When the process started, and in which boot of the machine, where the system tells. */
  readonly start: string | null;
  readonly boot: string | null;
  readonly host: string;
}

/**
 * Keeps the processes that use one database out of each other's way where SQLite's own locks do not. Those are POSIX
 * locks: any code in a process that opens, reads and closes the database or its `-shm` (a search tool, a backup) gives
 * away every lock that the process has on it, in silence and even in the middle of a transaction. Two writers in one
 * log, or a log that somebody deletes while it is in use, destroy the database.
 *
 * Here nothing is locked: each user has a slot in a file, raises the flag in it, and then looks at the flags of all
 * others. Of two that raise their flags at the same time, at least one sees the other's, and backs down. A flag is not
 * lost by closing files. A user that dies with its flag up is found by its process, and by the locks of its slot, which
 * the kernel frees: a POSIX lock and, a moment later, a hard lock, for those in other containers, whose processes
 * cannot be seen.
 *
 * SQLite's locks work as ever beneath it. They alone keep out programs that are not Holdfast.
 */
export class FlagLock {
  readonly #disk: Disk;
  readonly #folder: string;
  readonly #file: DiskFile;
  readonly #identity: DiskStat;
  readonly #slot: number;
  readonly #lock: DiskLock;
  readonly #owner: Buffer;
  /** The two bytes at the head of the slot. */
  readonly #head = Buffer.alloc(OWNER_AT);
  #slots = Buffer.alloc(8 * SLOT_BYTES);
  #inside = 0;
  #raisedAt = 0;
  readonly #hardening: NodeJS.Timeout;
  #hardLock: DiskLock | null = null;
  /**
   * Fires when it is closed: a hard lock that is just being asked for would make its file in a folder that may be gone
   * by then.
   */
  readonly #closing = new AbortController();
  #blocked: { slot: number; head: number; since: number; looked: number } | null = null;

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
   * Runs `work` while nobody does what conflicts with it. Inside a use, a lesser or equal one is part of it. Throws an
   * error that `isBusy` knows if somebody else is in the way now.
   */
  use<T>(use: Use, work: () => T): T {
    const rank = RANK[use];
    if (this.#inside >= rank) return work();
    if (this.#inside > 0) throw new Error(`"${use}" was asked for inside a lesser use`);
    this.#raise(rank);
    this.#inside = rank;
    try {
      return work();
    } finally {
      this.#inside = 0;
      this.#lower();
    }
  }

  /** Does anybody else have the database open? Only inside `alone`. */
  isShared(): boolean {
    const count = this.#look();
    for (let slot = 0; slot < count; slot++) {
      if (slot === this.#slot) continue;
      const owner = ownerOf(this.#slots, slot);
      if (owner && !isAbandoned(this.#disk, this.#folder, slot, owner)) return true;
    }
    return false;
  }

  /** Throws FILE_REPLACED if others would look at another file, or at none. */
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
      // The lock of the slot goes with it: whoever needs the slot finds it abandoned.
      if (errnoOf(error) === undefined) throw error;
    } finally {
      clearTimeout(this.#hardening);
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
      // Then there is only the other lock.
      if (errnoOf(error) === undefined) throw error;
    }
  }

  #raise(rank: number): void {
    try {
      // Somebody who has the slot by now may be using the database: that one's flag must not be overwritten.
      this.#look();
      this.#assertOwned();
      this.#head[0] = rank;
      this.#head[1] = (this.#head[1]! + 1) & 0xff;
      this.#file.writeAt(this.#head, this.#slot * SLOT_BYTES);
      this.#raisedAt = performance.now();
      // After our flag is up, not before: that is what makes one of two see the other.
      const count = this.#look();
      for (let slot = 0; slot < count; slot++) {
        const flag = this.#slots[slot * SLOT_BYTES]!;
        if (flag === 0 || slot === this.#slot || flag + rank < CONFLICT) continue;
        this.#lower();
        this.#wait(slot);
        throw busy("another process is using the database");
      }
      this.#blocked = null;
      this.#assertOwned();
    } catch (error) {
      if (errnoOf(error) === undefined || error instanceof HoldfastError) throw error;
      this.#lower();
      throw diskFailure(error, "use the store", this.#file.path, "Nothing was written.");
    }
  }

  #lower(): void {
    const lasted = performance.now() - this.#raisedAt;
    if (lasted > STALLED_MS) {
      this.#look();
      this.#assertOwned();
    }
    this.#head[0] = 0;
    try {
      this.#file.writeAt(this.#head, this.#slot * SLOT_BYTES);
    } catch (error) {
      // What was done is done, and must not be reported as failed. The next use writes the flag again, or the end of
      // the process frees it.
      if (errnoOf(error) === undefined) throw error;
    }
  }

  /** Reads all slots; returns how many there are. */
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
      `Another process has taken the place of this one among the users of the store (${this.#file.path}): this one stood still for too long, ` +
      "or somebody removed the file. What was acknowledged is safe; what was just written is in doubt. Open the store again.";
    throw new HoldfastError("LEASE_LOST", message, { path: this.#file.path });
  }

  /** Somebody's flag is in the way. If it stays, its owner may be dead. */
  #wait(slot: number): void {
    const head = this.#slots.readUInt16LE(slot * SLOT_BYTES);
    const now = performance.now();
    if (this.#blocked?.slot !== slot || this.#blocked.head !== head) {
      this.#blocked = { slot, head, since: now, looked: now };
      return;
    }
    const { since, looked } = this.#blocked;
    if (now - since < DEAD_MS || now - looked < LOOK_AGAIN_MS) return;
    this.#blocked.looked = now;
    const owner = ownerOf(this.#slots, slot);
    const isDead = owner === null || isAbandoned(this.#disk, this.#folder, slot, owner);
    const isStalled = now - since > STALLED_MS && !isLocked(this.#disk, this.#folder, slot);
    if (isDead || isStalled) this.#free(slot, head);
  }

  /**
   * Lowers the flag of an owner that cannot do it any more. Only one process can have the lock of the slot, so only one
   * does this.
   */
  #free(slot: number, head: number): void {
    const lock = lockSlot(this.#disk, this.#folder, slot);
    if (!lock) return;
    try {
      this.#look();
      if (this.#slots.readUInt16LE(slot * SLOT_BYTES) !== head) return;
      this.#file.writeAt(Buffer.alloc(SLOT_BYTES), slot * SLOT_BYTES);
    } finally {
      lock.release();
    }
  }
}

interface Claim {
  readonly slot: number;
  readonly lock: DiskLock;
  readonly owner: Buffer;
}

function claimSlot(disk: Disk, folder: string, file: DiskFile): Claim {
  const owner = ownerRecord(disk);
  for (let slot = 0; slot < SLOTS_MAX; slot++) {
    const found = ownerIn(file, slot);
    if (found && !isAbandoned(disk, folder, slot, found)) continue;
    const lock = lockSlot(disk, folder, slot);
    if (!lock) continue;
    try {
      // Looked at again: somebody may have come meanwhile, and have lost this lock.
      const now = ownerIn(file, slot);
      if (!now || !(isRunning(disk, folder, slot, now) || disk.isHardLocked(hardPath(folder, slot)))) {
        const bytes = Buffer.alloc(SLOT_BYTES);
        owner.copy(bytes, OWNER_AT);
        file.writeAt(bytes, slot * SLOT_BYTES);
        return { slot, lock, owner };
      }
    } catch (error) {
      lock.release();
      throw error;
    }
    lock.release();
  }
  const message = `More than ${SLOTS_MAX} processes have the store open (${file.path}). Nothing was touched. Close some of them.`;
  throw new HoldfastError("STORE_IO", message, { path: file.path, limit: SLOTS_MAX });
}

function ownerIn(file: DiskFile, slot: number): Owner | null {
  const bytes = Buffer.alloc(SLOT_BYTES);
  file.read(bytes, 0, SLOT_BYTES, slot * SLOT_BYTES);
  return ownerOf(bytes, 0);
}

function lockSlot(disk: Disk, folder: string, slot: number): DiskLock | null {
  const path = slotPath(folder, slot);
  if (!disk.stat(path)) makeFile(disk, path);
  return disk.lock(path);
}

function slotPath(folder: string, slot: number): string {
  return join(folder, String(slot));
}

function hardPath(folder: string, slot: number): string {
  return join(folder, `${slot}.lock`);
}

function makeFile(disk: Disk, path: string): void {
  try {
    disk.open(path, "create").close();
  } catch (error) {
    if (errnoOf(error) !== "EEXIST") throw error;
  }
}

function ownerRecord(disk: Disk): Buffer {
  const owner: Owner = {
    id: randomUUID(),
    pid: process.pid,
    start: startOf(disk, process.pid),
    boot: bootOf(disk),
    host: ownHost(),
  };
  return Buffer.from(JSON.stringify(owner));
}

/** Null if nobody has the slot, or nobody that can be read. */
function ownerOf(slots: Buffer, slot: number): Owner | null {
  const bytes = slots.subarray(slot * SLOT_BYTES + OWNER_AT, (slot + 1) * SLOT_BYTES);
  const end = bytes.indexOf(0);
  try {
    const owner: unknown = JSON.parse(bytes.toString("utf8", 0, end === -1 ? bytes.length : end));
    return typeof owner === "object" ? (owner as Owner | null) : null;
  } catch (error) {
    if (error instanceof SyntaxError) return null;
    throw error;
  }
}

/** Where the process cannot be seen, it may be in another container: there the locks decide. */
function isAbandoned(disk: Disk, folder: string, slot: number, owner: Owner): boolean {
  return !isRunning(disk, folder, slot, owner) && !isLocked(disk, folder, slot);
}

/** The hard lock last: to look at it costs a child process. */
function isLocked(disk: Disk, folder: string, slot: number): boolean {
  const path = slotPath(folder, slot);
  if (disk.stat(path) !== null && disk.isLocked(path)) return true;
  return disk.isHardLocked(hardPath(folder, slot));
}

/** False if it cannot be told. */
function isRunning(disk: Disk, folder: string, slot: number, { pid, start, boot, host }: Owner): boolean {
  // A thread of this process, which may have been ended: its lock tells. (SQLite counts the locks of one process
  // itself, so that one is not lost by closing files.)
  if (pid === process.pid && disk.stat(slotPath(folder, slot))) return false;
  if (host !== ownHost() || boot !== bootOf(disk)) return false;
  try {
    process.kill(pid, 0);
  } catch (error) {
    // EPERM: it runs, as somebody else. Anything else: it does not, or that is no number of a process.
    if (errnoOf(error) !== "EPERM") return false;
  }
  return start === startOf(disk, pid);
}

function ownHost(): string {
  return hostname().slice(0, HOST_CHARS);
}

/** Tells a process from a later one with the same number. Null where the system does not say. */
function startOf(disk: Disk, pid: number): string | null {
  const stat = textOf(disk, `/proc/${pid}/stat`);
  return stat?.slice(stat.lastIndexOf(")") + 2).split(" ")[19] ?? null;
}

function bootOf(disk: Disk): string | null {
  return textOf(disk, "/proc/sys/kernel/random/boot_id")?.trim() ?? null;
}

function textOf(disk: Disk, path: string): string | null {
  try {
    const file = disk.open(path, "read");
    try {
      const bytes = Buffer.alloc(4096);
      return bytes.toString("latin1", 0, file.read(bytes, 0, bytes.length, 0));
    } finally {
      file.close();
    }
  } catch (error) {
    if (errnoOf(error) === undefined) throw error;
    return null;
  }
}
