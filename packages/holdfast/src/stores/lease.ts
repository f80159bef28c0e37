import { hostname } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import type { Disk, DiskLock, DiskStat } from "../disk/disk.ts";
import { diskFailure, isForbidden } from "../disk/failure.ts";
import { errnoOf, HoldfastError } from "../errors.ts";
import type { Holder } from "../journal/contract.ts";
import { sessionBusy } from "../journal/refusals.ts";

/** A probe of somebody else's can hold the lock for an instant, so a taker tries again for this long (S14). */
const TAKE_MS = 250;
const RETRY_MS = 5;

/** What opening a file says that went away meanwhile: the system, and SQLite. */
const LOST = new Set(["ENOENT", "ERR_SQLITE_ERROR"]);

export interface Lease {
  /** Throws LEASE_LOST if the lease file is no longer the one that was locked. */
  assertHeld(): void;
  release(): void;
}

interface Held {
  readonly lock: DiskLock;
  readonly holder: Holder;
}

/**
 * Every lease that this process holds, by the identity of its file: per Disk, since each has a kernel of its own. A lock goes with any
 * descriptor of its file that this process closes, so nothing may open a file that stands here (S13); and the map keeps the lock
 * from the garbage collector.
 */
const heldBy = new WeakMap<Disk, Map<string, Held>>();

/**
 * The right to write, as a lock of the operating system on an empty file. It ends with its holder, by the kernel's hand (P6). This
 * module alone names lease files.
 */
export class Leases {
  readonly #disk: Disk;
  readonly #folder: string;
  readonly #held: Map<string, Held>;
  #isMissing = false;

  /** `folder` is used for nothing else, and exists. */
  constructor(disk: Disk, folder: string) {
    this.#disk = disk;
    this.#folder = folder;
    this.#held = heldBy.get(disk) ?? new Map();
    heldBy.set(disk, this.#held);
  }

  /** The leases of a folder store. */
  static inRoot(disk: Disk, root: string): Leases {
    return Leases.#in(disk, join(root, "leases"));
  }

  /** The leases of a store that is one file. */
  static besideFile(disk: Disk, file: string): Leases {
    return Leases.#in(disk, `${file}-leases`);
  }

  static #in(disk: Disk, folder: string): Leases {
    const leases = new Leases(disk, folder);
    try {
      leases.#makeFolder();
    } catch (error) {
      // A backup on a read-only medium: nobody can hold a lease there, and whoever only reads needs none. Whoever wants one is told.
      if (!(error instanceof HoldfastError && isForbidden(error.cause))) throw error;
      leases.#isMissing = true;
    }
    return leases;
  }

  #makeFolder(): void {
    try {
      this.#disk.makeFolder(this.#folder);
    } catch (error) {
      throw diskFailure(error, "make the folder of leases", this.#folder, "Nothing was written.");
    }
    this.#isMissing = false;
  }

  /** Throws SESSION_BUSY, with who has it. */
  async take(id: string, app: string): Promise<Lease> {
    const until = performance.now() + TAKE_MS;
    for (;;) {
      const lease = this.#try(id, app);
      if (lease) return lease;
      const holder = this.#own(id);
      if (holder || performance.now() > until) throw sessionBusy(id, holder ?? this.#words(id), holder !== null);
      await sleep(RETRY_MS);
    }
  }

  /** Who holds the lease now, or null. */
  holder(id: string): Holder | null {
    const path = this.#path(id);
    try {
      const own = this.#own(id);
      if (own || this.#disk.stat(path)?.kind !== "file") return own;
      return this.#disk.isLocked(path) ? this.#words(id) : null;
    } catch (error) {
      // A lease file with content, or one that went away: nobody can hold that.
      if (errnoOf(error) === "EBADF" || this.#isGone(path)) return null;
      throw diskFailure(error, "look at a lease", path, "Nothing was written.");
    }
  }

  /** Runs something under the lease, if it is free. */
  whileFree(id: string, run: () => void): void {
    const lease = this.#try(id, "gc");
    try {
      if (lease) run();
    } finally {
      lease?.release();
    }
  }

  /** Removes the lease files of a session that is gone. Only under its lease. */
  forget(id: string): void {
    for (const path of [this.#wordsPath(id), this.#path(id)]) if (this.#disk.stat(path)) this.#disk.remove(path);
  }

  /** The ids that have a lease file. */
  ids(): string[] {
    if (this.#isMissing) return [];
    return this.#disk.list(this.#folder).filter((name) => !name.includes("."));
  }

  #try(id: string, app: string): Lease | null {
    if (this.#isMissing) this.#makeFolder();
    const path = this.#path(id);
    try {
      const before = this.#prepare(path);
      const key = identity(before);
      if (this.#held.has(key)) return null;
      const lock = this.#disk.lock(path);
      return lock && this.#hold(id, app, path, key, lock);
    } catch (error) {
      // Removed by somebody who tidies up, between our look and our lock: it is made anew.
      if (LOST.has(errnoOf(error) ?? "") && this.#isGone(path)) return null;
      throw diskFailure(error, "take the lease of a session", path, "Nothing was written.");
    }
  }

  /** The lock is ours; it becomes a lease if the file is still the one that was looked at. */
  #hold(id: string, app: string, path: string, key: string, lock: DiskLock): Lease | null {
    const holder: Holder = { pid: process.pid, host: hostname(), app, since: new Date().toISOString() };
    try {
      const after = this.#disk.stat(path);
      if (!after || identity(after) !== key) {
        // Somebody removed the file between our look and our lock: what we hold is nobody's lease.
        lock.release();
        return null;
      }
      this.#held.set(key, { lock, holder });
      this.#announce(id, holder);
    } catch (error) {
      this.#held.delete(key);
      lock.release();
      throw error;
    }
    let released = false;
    return {
      assertHeld: () => {
        const now = this.#disk.stat(path);
        if (!now || identity(now) !== key) throw lost(id, path);
      },
      release: () => {
        if (released) return;
        released = true;
        this.#held.delete(key);
        lock.release();
      },
    };
  }

  /** The file is there, regular and empty, before SQLite sees it. */
  #prepare(path: string): DiskStat {
    let stat = this.#disk.stat(path);
    if (!stat) {
      try {
        this.#disk.open(path, "create").close();
      } catch (error) {
        if (errnoOf(error) !== "EEXIST") throw error;
      }
      stat = this.#disk.stat(path);
    }
    if (stat?.kind !== "file") {
      const message = `The lease ${path} is not a regular file. Nothing was touched. Look at who put it there, and remove it.`;
      throw new HoldfastError("PATH_UNSAFE", message, { path });
    }
    if (stat.size > 0 && !this.#held.has(identity(stat))) {
      const file = this.#disk.open(path, "update");
      try {
        file.truncate(0);
      } finally {
        file.close();
      }
    }
    return stat;
  }

  /** For the words of an error only, so a full disk may keep it from being written. */
  #announce(id: string, holder: Holder): void {
    const path = this.#wordsPath(id);
    const temporary = `${path}.tmp`;
    try {
      if (this.#disk.stat(temporary)) this.#disk.remove(temporary);
      const file = this.#disk.open(temporary, "create");
      try {
        file.write(Buffer.from(`${JSON.stringify(holder)}\n`));
      } finally {
        file.close();
      }
      this.#disk.rename(temporary, path);
    } catch (error) {
      if (errnoOf(error) === undefined) throw error;
    }
  }

  /** Asked after a failure, which is what the caller must hear of if this fails too. */
  #isGone(path: string): boolean {
    try {
      return this.#disk.stat(path) === null;
    } catch (error) {
      if (errnoOf(error) === undefined) throw error;
      return false;
    }
  }

  #own(id: string): Holder | null {
    const stat = this.#disk.stat(this.#path(id));
    return (stat && this.#held.get(identity(stat))?.holder) ?? null;
  }

  #words(id: string): Holder {
    const unknown: Holder = { pid: 0, host: "unknown", app: "unknown", since: "unknown" };
    try {
      const file = this.#disk.open(this.#wordsPath(id), "read");
      try {
        const bytes = Buffer.alloc(4096);
        const length = file.read(bytes, 0, bytes.length, 0);
        return { ...unknown, ...(JSON.parse(bytes.toString("utf8", 0, length)) as Partial<Holder>) };
      } finally {
        file.close();
      }
    } catch (error) {
      if (errnoOf(error) !== undefined || error instanceof SyntaxError) return unknown;
      throw error;
    }
  }

  #path(id: string): string {
    return join(this.#folder, id);
  }
  #wordsPath(id: string): string {
    return join(this.#folder, `${id}.json`);
  }
}

function identity(stat: DiskStat): string {
  return `${stat.dev}:${stat.ino}`;
}

function lost(id: string, path: string): HoldfastError {
  const message =
    `The lease of session ${id} is gone: its file was removed or replaced, and another process may be writing. ` +
    "What was acknowledged is safe; what waited is in doubt. Close this journal, and open the session again.";
  return new HoldfastError("LEASE_LOST", message, { session: id, path });
}
