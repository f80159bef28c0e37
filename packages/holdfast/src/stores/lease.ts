import { hostname } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import type { Disk, DiskLock, DiskStat } from "../disk/disk.ts";
import { diskFailure, isForbidden } from "../disk/failure.ts";
import { hasOtherNames } from "../disk/file-rules.ts";
import { errnoOf, HoldfastError } from "../errors.ts";
import type { Holder } from "../journal/contract.ts";
import { newId } from "../journal/id.ts";
import { sessionBusy } from "../journal/refusals.ts";

/** A probe of somebody else's can hold the lock for an instant, so a taker tries again for this long (S14). */
const TAKE_MS = 250;
const RETRY_MS = 5;

/** What opening a file says that went away meanwhile: the system, and SQLite. */
const LOST = new Set(["ENOENT", "ERR_SQLITE_ERROR"]);

/** The hard lock costs a child process, so a session that is opened and closed at once does without. */
const HARDEN_AFTER_MS = 100;
/**
 * Looks from other processes take the hard lock for an instant, so one refusal does not settle it. Each try waits twice
 * as long as the one before.
 */
const HARDEN_TRIES = 6;
const NOTE_BYTES_MAX = 4096;
const TEMPORARY = ".tmp";
const DAY_MS = 24 * 3600 * 1000;

export interface Lease {
  /**
   * Nothing that other code of this process does can end the lease. Where it can, a store looks for another writer
   * before each acknowledgement.
   */
  readonly isSure: boolean;
  /** Where the last writer closed the session, if it said so and nobody has written since; else null. */
  readonly lastClose: ClosedAt | null;
  /** Takes `lastClose` away, for good. Of all who try, one gets true. */
  takeClose(): boolean;
  /** Throws LEASE_LOST if the lease file is no longer the one that was locked. */
  assertHeld(): void;
  /** `closedAt` tells the next writer that the session was closed there, and that all of it is durable. */
  release(closedAt?: ClosedAt): void;
}

/** Where a session ended when its writer closed it. */
export interface ClosedAt {
  readonly segment: string;
  readonly bytes: number;
}

interface Held {
  readonly lock: DiskLock;
  readonly holder: Holder;
  hardLock: DiskLock | null;
  hardening?: NodeJS.Timeout;
  /** Where the word of the last writer was moved to. */
  takenClose?: string;
}

/**
 * Every lease that this process holds, by the identity of its file: per Disk, since each has a kernel of its own. The
 * map keeps the lock from the garbage collector.
 */
const heldBy = new WeakMap<Disk, Map<string, Held>>();

/**
 * The right to write to a session: locks of the operating system, which end with their holder, by the kernel's hand
 * (P6). This module alone names their files:
 *
 * - `<id>`: an empty file with a POSIX lock (by SQLite), taken in half a millisecond. Any code of the holder's process
 *   that opens and closes this file, a backup or a grep, gives the lock away in silence (S13).
 * - `<id>.lock`: a hard lock, taken a moment later, which no `close` gives away. Not every system has one.
 * - `<id>.json`: who holds it, for the words of an error. It never decides.
 * - `<id>.closed`: left by a writer that has closed the session in order; taken away by the next one that writes.
 *
 * A lock can be lost all the same (somebody removes the files). So a store does not rest on it: two writers of one
 * session must do no harm.
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
      // A backup on a read-only medium: nobody can hold a lease there, and whoever only reads needs none. Whoever wants
      // one is told.
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
      return this.#disk.isLocked(path) || this.#isHeldWithoutLock(id) ? this.#words(id) : null;
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
    const paths = [this.#wordsPath(id), this.#closedPath(id), this.#hardLockPath(id), this.#path(id)];
    for (const path of paths) if (this.#disk.stat(path)) this.#disk.remove(path);
  }

  /** Removes what somebody was writing here when he was killed, long ago. */
  tidy(nowMs: number): void {
    if (this.#isMissing) return;
    for (const name of this.#disk.list(this.#folder)) {
      if (!name.endsWith(TEMPORARY)) continue;
      const path = join(this.#folder, name);
      const madeMs = timeIn(name) ?? this.#disk.stat(path)?.mtimeMs ?? nowMs;
      // Somebody else may be tidying up too.
      if (nowMs - madeMs > DAY_MS) this.#removeIfPossible(path);
    }
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
      return lock && this.#hold(id, app, key, lock);
    } catch (error) {
      // Removed by somebody who tidies up, between our look and our lock: it is made anew.
      if (LOST.has(errnoOf(error) ?? "") && this.#isGone(path)) {
        // So is the folder, if it was that.
        this.#isMissing = this.#isGone(this.#folder);
        return null;
      }
      throw diskFailure(error, "take the lease of a session", path, "Nothing was written.");
    }
  }

  /**
   * The lock is ours; it becomes a lease if the file is still the one that was looked at, and nobody holds the session
   * without its lock.
   */
  #hold(id: string, app: string, key: string, lock: DiskLock): Lease | null {
    const path = this.#path(id);
    const holder: Holder = { pid: process.pid, host: hostname(), app, since: new Date().toISOString() };
    const held: Held = { lock, holder, hardLock: null };
    let lastClose: ClosedAt | null;
    try {
      const after = this.#disk.stat(path);
      if (!after || identity(after) !== key || this.#isHeldWithoutLock(id)) {
        // Somebody removed the file between our look and our lock, or has lost the lock and not the session.
        lock.release();
        return null;
      }
      this.#held.set(key, held);
      this.#announce(id, holder);
      lastClose = closedAtOf(this.#read(this.#closedPath(id)));
    } catch (error) {
      this.#held.delete(key);
      lock.release();
      throw error;
    }
    const released = new AbortController();
    this.#hardenLater(id, held, released.signal);
    return {
      get isSure() {
        return held.hardLock !== null;
      },
      lastClose,
      takeClose: () => this.#takeClose(id, lastClose, held),
      assertHeld: () => {
        const now = this.#disk.stat(path);
        if (!now || identity(now) !== key) throw lost(id, path);
      },
      release: (closedAt) => {
        if (released.signal.aborted) return;
        clearTimeout(held.hardening);
        if (closedAt) this.#write(this.#closedPath(id), closedAt);
        this.#held.delete(key);
        // One that is just being asked for, too: it would tell others of a writer that is no longer there.
        released.abort();
        held.hardLock?.release();
        lock.release();
      },
    };
  }

  #hardenLater(id: string, held: Held, released: AbortSignal, tried = 0): void {
    held.hardening = setTimeout(() => this.#harden(id, held, released, tried + 1), HARDEN_AFTER_MS * 2 ** tried);
    held.hardening.unref();
  }

  async #harden(id: string, held: Held, released: AbortSignal, tried: number): Promise<void> {
    try {
      const hardLock = await this.#disk.hardLock(this.#hardLockPath(id), released);
      if (released.aborted) hardLock?.release();
      else if (hardLock) held.hardLock = hardLock;
      else if (tried < HARDEN_TRIES) this.#hardenLater(id, held, released, tried);
    } catch (error) {
      // The lease is held all the same, and is not sure.
      if (errnoOf(error) === undefined) throw error;
    }
  }

  /**
   * The POSIX lock of a living holder can have been given away inside its own process, and that lock cannot tell. Where
   * the last holder may be alive, the hard lock is asked too, which costs a child process.
   */
  #isHeldWithoutLock(id: string): boolean {
    const { pid, host } = this.#words(id);
    if (!Number.isSafeInteger(pid) || pid < 1) return false;
    if (host === hostname() && (pid === process.pid || !isAlive(pid))) return false;
    // Its last writer closed it, and nobody has written since.
    if (this.#disk.stat(this.#closedPath(id))) return false;
    return this.#disk.isHardLocked(this.#hardLockPath(id));
  }

  /**
   * By a rename, which one of all who try can do; and then it is looked at, since it may have been taken and left again
   * meanwhile. If that look fails, the next try looks again: what was taken is ours.
   */
  #takeClose(id: string, expected: ClosedAt | null, held: Held): boolean {
    const path = this.#closedPath(id);
    try {
      if (held.takenClose === undefined) {
        const taken = temporaryName(path);
        this.#disk.rename(path, taken);
        held.takenClose = taken;
      }
      const found = closedAtOf(this.#parse(held.takenClose));
      this.#removeIfPossible(held.takenClose);
      return found !== null && found.segment === expected?.segment && found.bytes === expected.bytes;
    } catch (error) {
      if (errnoOf(error) === "ENOENT") return false;
      throw diskFailure(error, "take the lease of a session", path, "Nothing was written.");
    }
  }

  /** A leftover does no harm, and is tidied away one day. */
  #removeIfPossible(path: string): void {
    try {
      this.#disk.remove(path);
    } catch (error) {
      if (errnoOf(error) === undefined) throw error;
    }
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
      if (hasOtherNames(stat)) throw sharedContent(path);
      const file = this.#disk.open(path, "update");
      try {
        file.truncate(0);
      } finally {
        file.close();
      }
    }
    return stat;
  }

  #announce(id: string, holder: Holder): void {
    this.#write(this.#wordsPath(id), holder);
  }

  /**
   * Whole or not at all. Everybody can do without what stands in these files, so a full disk may keep them from being
   * written.
   */
  #write(path: string, content: Holder | ClosedAt): void {
    const temporary = temporaryName(path);
    try {
      const file = this.#disk.open(temporary, "create");
      try {
        file.write(Buffer.from(`${JSON.stringify(content)}\n`));
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
    const found = this.#read(this.#wordsPath(id)) as Partial<Holder>;
    return { pid: 0, host: "unknown", app: "unknown", since: "unknown", ...found };
  }

  /** Empty if there is no such file, or nothing that can be read. */
  #read(path: string): object {
    try {
      return this.#parse(path);
    } catch (error) {
      if (errnoOf(error) !== undefined) return {};
      throw error;
    }
  }

  /** Empty if it holds no object. Throws what the system throws. */
  #parse(path: string): object {
    const file = this.#disk.open(path, "read");
    try {
      const bytes = Buffer.alloc(NOTE_BYTES_MAX);
      const length = file.read(bytes, 0, bytes.length, 0);
      const found: unknown = JSON.parse(bytes.toString("utf8", 0, length));
      return typeof found === "object" && found !== null ? found : {};
    } catch (error) {
      if (error instanceof SyntaxError) return {};
      throw error;
    } finally {
      file.close();
    }
  }

  #path(id: string): string {
    return join(this.#folder, id);
  }
  #hardLockPath(id: string): string {
    return join(this.#folder, `${id}.lock`);
  }
  #wordsPath(id: string): string {
    return join(this.#folder, `${id}.json`);
  }
  #closedPath(id: string): string {
    return join(this.#folder, `${id}.closed`);
  }
}

/** With the time in it: a file that is moved here keeps the time of its content. */
function temporaryName(path: string): string {
  return `${path}.${newId().replaceAll("-", "")}${TEMPORARY}`;
}

/** Null if the name has none: older versions gave it only random digits. */
function timeIn(name: string): number | null {
  const time = /\.([0-9a-f]{12})7[0-9a-f]{19}\.tmp$/.exec(name)?.[1];
  return time === undefined ? null : Number.parseInt(time, 16);
}

function closedAtOf(value: object): ClosedAt | null {
  const { segment, bytes } = value as Partial<ClosedAt>;
  return typeof segment === "string" && typeof bytes === "number" ? { segment, bytes } : null;
}

/** Is there a process of this number on this machine, as far as can be seen from here? */
function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    // EPERM: it is there, and somebody else's.
    return errnoOf(error) === "EPERM";
  }
}

function identity(stat: DiskStat): string {
  return `${stat.dev}:${stat.ino}`;
}

/** To empty it would empty a file that is somewhere else too. */
function sharedContent(path: string): HoldfastError {
  const message = `The lease ${path} is a hard link to a file with content. Nothing was touched. Look at who put it there, and remove it.`;
  return new HoldfastError("PATH_UNSAFE", message, { path });
}

function lost(id: string, path: string): HoldfastError {
  const message =
    `The lease of session ${id} is gone: its file was removed or replaced, and another process may be writing. ` +
    "What was acknowledged is safe; what waited is in doubt. Close this journal, and open the session again.";
  return new HoldfastError("LEASE_LOST", message, { session: id, path });
}
