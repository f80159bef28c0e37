import { hostname } from "node:os";
import { setTimeout as sleep } from "node:timers/promises";
import type { Disk, DiskLock } from "../../../disk/disk.ts";
import { errnoOf } from "../../../errors.ts";
import type { Holder } from "../../../journal/contract.ts";
import { storeBusy } from "../../../journal/refusals.ts";
import { findNote, identity, writeNote } from "../../lease-note.ts";

/** Somebody who is just closing the store, or who was killed a moment ago, gets this long. */
const TAKE_MS = 250;
const RETRY_MS = 10;

/**
 * The right of one process to use a database file, for as long as its store is open:
 *
 * - `<file>-lock` has a hard lock. No other code in this process can end it, and it is free at once when the process
 *   dies.
 * - `<file>-holder` says who has it, for error messages.
 *
 * SQLite's own lock on the file keeps out other programs, but it is a POSIX lock: any code in this process that opens
 * and closes the file drops it. Where there is no hard lock, it is all there is.
 */
export class FileLock {
  readonly #disk: Disk;
  readonly #file: string;
  /** Null if the system has none. */
  readonly #lock: DiskLock | null;
  #note: string | null = null;

  private constructor(disk: Disk, file: string, lock: DiskLock | null) {
    this.#disk = disk;
    this.#file = file;
    this.#lock = lock;
  }

  /** Throws STORE_BUSY with the holder, and the system's errors. */
  static async take(disk: Disk, file: string): Promise<FileLock> {
    const until = performance.now() + TAKE_MS;
    for (;;) {
      const lock = disk.hardLock(lockPath(file));
      if (lock !== "taken") return new FileLock(disk, file, lock === "none" ? null : lock);
      if (performance.now() > until) throw inUse(disk, file);
      await sleep(RETRY_MS);
    }
  }

  get warnings(): readonly string[] {
    if (this.#lock) return [];
    return [
      `${this.#file} has no hard lock here (on Linux, it needs the program "flock"): if code in this process opens and closes this file, ` +
        "another process can open the store too, which can destroy it. Install the program, or use a folder store.",
    ];
  }

  /** Call once SQLite has its lock, too. */
  announce(app: string, since: string): void {
    const holder: Holder = { pid: process.pid, host: hostname(), app, since };
    this.#note = writeNote(this.#disk, holderPath(this.#file), holder);
  }

  /** The error for a file that SQLite finds locked. */
  refusal(): Error {
    return this.#lock ? storeBusy(`sqlite:${this.#file}`, null, false) : inUse(this.#disk, this.#file);
  }

  release(): void {
    const path = holderPath(this.#file);
    try {
      const found = this.#note === null ? null : this.#disk.stat(path);
      if (found && identity(found) === this.#note) this.#disk.remove(path);
    } catch (error) {
      // It stays, and the next holder replaces it.
      if (errnoOf(error) === undefined) throw error;
    } finally {
      this.#lock?.release();
    }
  }
}

export function lockPath(file: string): string {
  return `${file}-lock`;
}

function holderPath(file: string): string {
  return `${file}-holder`;
}

/** The error for a file that somebody has open, who may have left a note. */
export function inUse(disk: Disk, file: string): Error {
  const found = findNote(disk, holderPath(file)) as Partial<Holder>;
  const holder = found.pid === undefined ? null : { host: "unknown", app: "unknown", since: "unknown", ...found };
  return storeBusy(`sqlite:${file}`, holder as Holder | null, found.pid === process.pid && found.host === hostname());
}
