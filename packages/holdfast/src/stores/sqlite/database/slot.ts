import { randomUUID } from "node:crypto";
import { hostname } from "node:os";
import { join } from "node:path";
import type { Disk, DiskFile, DiskLock } from "../../../disk/disk.ts";
import { errnoOf, HoldfastError } from "../../../errors.ts";

/**
 * The slots of the users of a database: who has which, and whether that user is alive. FlagLock describes what they are
 * for.
 */

/** A flag, a use counter, and the slot's owner as JSON padded with NULs. */
export const SLOT_BYTES = 256;
export const OWNER_AT = 2;
const SLOTS_MAX = 1024;
const HOST_CHARS = 80;

export interface Owner {
  readonly id: string;
  readonly pid: number;
  /** When the process started, and in which boot of the machine, if the system reveals that. */
  readonly start: string | null;
  readonly boot: string | null;
  readonly host: string;
}

export interface Claim {
  readonly slot: number;
  readonly lock: DiskLock;
  readonly owner: Buffer;
}

/** Takes the first slot that nobody has. Throws STORE_IO if there is none, and the system's errors. */
export function claimSlot(disk: Disk, folder: string, file: DiskFile): Claim {
  const owner = ownerRecord(disk);
  for (let slot = 0; slot < SLOTS_MAX; slot++) {
    const found = ownerIn(file, slot);
    if (found && !isAbandoned(disk, folder, slot, found)) continue;
    const lock = lockSlot(disk, folder, slot);
    if (!lock) continue;
    let isTaken = false;
    try {
      isTaken = takeAlone(disk, folder, slot, () => {
        // Check again: a new owner may have arrived in the meantime and lost this lock.
        const now = ownerIn(file, slot);
        if (now && (isRunning(disk, folder, slot, now) || disk.isHardLocked(hardPath(folder, slot)))) return false;
        const bytes = Buffer.alloc(SLOT_BYTES);
        owner.copy(bytes, OWNER_AT);
        file.writeAt(bytes, slot * SLOT_BYTES);
        return true;
      });
      if (isTaken) return { slot, lock, owner };
    } finally {
      if (!isTaken) lock.release();
    }
  }
  const message = `More than ${SLOTS_MAX} processes have the store open (${file.path}). Nothing was touched. Close some of them.`;
  throw new HoldfastError("STORE_IO", message, { path: file.path, limit: SLOTS_MAX });
}

/**
 * Of two processes that find a slot free at the same time, one takes it: the other one's file cannot be made. The
 * slot's lock is not enough, because any code that closes its file drops it. If a process dies in here, the slot is not
 * used again.
 */
function takeAlone(disk: Disk, folder: string, slot: number, take: () => boolean): boolean {
  const path = join(folder, `${slot}.claim`);
  try {
    disk.open(path, "create").close();
  } catch (error) {
    if (errnoOf(error) === "EEXIST") return false;
    throw error;
  }
  try {
    return take();
  } finally {
    removeIfPossible(disk, path);
  }
}

function removeIfPossible(disk: Disk, path: string): void {
  try {
    disk.remove(path);
  } catch (error) {
    // The slot is not used again, which does no harm.
    if (errnoOf(error) === undefined) throw error;
  }
}

function ownerIn(file: DiskFile, slot: number): Owner | null {
  const bytes = Buffer.alloc(SLOT_BYTES);
  file.read(bytes, 0, SLOT_BYTES, slot * SLOT_BYTES);
  return ownerOf(bytes, 0);
}

export function lockSlot(disk: Disk, folder: string, slot: number): DiskLock | null {
  const path = slotPath(folder, slot);
  if (!disk.stat(path)) makeFile(disk, path);
  return disk.lock(path);
}

function slotPath(folder: string, slot: number): string {
  return join(folder, String(slot));
}

export function hardPath(folder: string, slot: number): string {
  return join(folder, `${slot}.lock`);
}

export function makeFile(disk: Disk, path: string): void {
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

/** Null if the slot has no owner, or none that can be read. */
export function ownerOf(slots: Buffer, slot: number): Owner | null {
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

/** A process that is not visible may be in another container: there the locks decide. */
export function isAbandoned(disk: Disk, folder: string, slot: number, owner: Owner): boolean {
  return !isRunning(disk, folder, slot, owner) && !isLocked(disk, folder, slot);
}

/** The hard lock last: checking it costs a child process. */
export function isLocked(disk: Disk, folder: string, slot: number): boolean {
  const path = slotPath(folder, slot);
  if (disk.stat(path) !== null && disk.isLocked(path)) return true;
  return disk.isHardLocked(hardPath(folder, slot));
}

/** False if unknown. */
function isRunning(disk: Disk, folder: string, slot: number, { pid, start, boot, host }: Owner): boolean {
  // A thread of this process that may have ended: its lock shows that. (SQLite tracks the locks of one process itself,
  // so closing files does not release this one.)
  if (pid === process.pid && disk.stat(slotPath(folder, slot))) return false;
  if (host !== ownHost() || boot !== bootOf(disk)) return false;
  try {
    process.kill(pid, 0);
  } catch (error) {
    // EPERM: it runs as another user. Anything else: it does not run, or this is not a process id.
    if (errnoOf(error) !== "EPERM") return false;
  }
  return start === startOf(disk, pid);
}

function ownHost(): string {
  return hostname().slice(0, HOST_CHARS);
}

/**
 * Distinguishes a process from a later one with the same id. Null where the system does not reveal it, and for a dead
 * process that its parent has not collected yet.
 */
function startOf(disk: Disk, pid: number): string | null {
  const stat = textOf(disk, `/proc/${pid}/stat`);
  const fields = stat?.slice(stat.lastIndexOf(")") + 2).split(" ");
  return fields?.[0] === "Z" ? null : (fields?.[19] ?? null);
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
