import { hostname } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import type { Disk, DiskLock, DiskStat } from "../disk/disk.ts";
import { diskFailure, isForbidden, tolerate } from "../disk/failure.ts";
import { hasOtherNames } from "../disk/file-rules.ts";
import { errnoOf, HoldfastError } from "../errors.ts";
import type { Holder } from "../journal/contract.ts";
import { sessionBusy } from "../journal/refusals.ts";
import { findNote, identity, readNote, temporaryName, timeIn, writeNote } from "./lease-note.ts";

/** Another process's probe can hold the lock for an instant, so taking it is retried for this long (S14). */
const TAKE_MS = 250;
const RETRY_MS = 5;

/** Errors for opening a file that has disappeared: the system's and SQLite's. */
const LOST = new Set(["ENOENT", "ERR_SQLITE_ERROR"]);

/** The hard lock costs a child process, so a session that is closed right after it was opened does without one. */
const HARDEN_AFTER_MS = 100;
/**
 * Probes from other processes take the hard lock for an instant, so one refusal is not final. Each attempt waits twice
 * as long as the one before.
 */
const HARDEN_TRIES = 6;
/**
 * A child blocks this process while it is started. So the next one waits for this many times as long: a process that
 * opens a thousand sessions at once can keep working.
 */
const HARDEN_REST = 9;
const DAY_MS = 24 * 3600 * 1000;

export interface Lease {
  /**
   * No other code in this process can end the lease. If it could, a store checks for another writer before each
   * acknowledgement.
   */
  readonly isSure: boolean;
  /** Where the last writer closed the session, if it said so and nobody has written since; otherwise null. */
  readonly lastClose: ClosedAt | null;
  /** Removes `lastClose` for good. Of all callers, one gets true. */
  takeClose(): boolean;
  /** Throws LEASE_LOST if the lease file is no longer the one that was locked. */
  assertHeld(): void;
  /** `closedAt` tells the next writer that the session was closed there and is entirely durable. */
  release(closedAt?: ClosedAt): void;
}

/** Where a session ended when its writer closed it. */
export interface ClosedAt {
  readonly segment: string;
  readonly bytes: number;
}

interface ActiveLease {
  readonly lock: DiskLock;
  readonly holder: Holder;
  hardLock: DiskLock | null;
  hardening?: NodeJS.Timeout;
  /** Where the last writer's closing note was moved to. */
  takenClose?: string;
}

/**
 * Every lease this process holds, by the identity of its file: per Disk, because each simulates its own kernel. The map
 * keeps the locks from being garbage-collected.
 */
const heldBy = new WeakMap<Disk, Map<string, ActiveLease>>();

/**
 * The right to write to a session: operating system locks, which the kernel releases when their holder ends (P6). Only
 * this module names their files:
 *
 * - `<id>`: an empty file with a POSIX lock (taken by SQLite), which costs half a millisecond. Any code in the holder's
 *   process that opens and closes this file, such as a backup or a grep, silently releases the lock (S13).
 * - `<id>.lock`: a hard lock, taken a moment later, which no `close` releases. Not every system has one.
 * - `<id>.json`: the details of the last holder, for error messages.
 * - `<id>.closed`: the closing note of a writer that has closed the session; the next writer removes it.
 *
 * A lock can still be lost (someone removes the files). So a store does not depend on it: two writers of one session
 * must do no harm.
 */
export class Leases {
  readonly #disk: Disk;
  readonly #folder: string;
  readonly #held: Map<string, ActiveLease>;
  readonly #now: () => number;
  #isMissing = false;
  #restUntilMs = 0;

  /** `folder` exists, and is used for nothing else. `now`: the clock of the store's records. */
  constructor(disk: Disk, folder: string, now: () => number = Date.now) {
    this.#disk = disk;
    this.#folder = folder;
    this.#now = now;
    this.#held = heldBy.get(disk) ?? new Map();
    heldBy.set(disk, this.#held);
  }

  /** The leases of a folder store. */
  static inRoot(disk: Disk, root: string, now?: () => number): Leases {
    const leases = new Leases(disk, join(root, "leases"), now);
    try {
      leases.#makeFolder();
    } catch (error) {
      // A backup on a read-only medium: nobody can hold a lease there, and readers need none. Writers get an error.
      if (!(error instanceof HoldfastError && isForbidden(error.cause))) throw error;
      leases.#isMissing = true;
    }
    return leases;
  }

  #makeFolder(): void {
    try {
      this.#disk.makeFolder(this.#folder);
    } catch (error) {
      throw diskFailure(error, "create the folder for leases", this.#folder, "Nothing was written.");
    }
    this.#isMissing = false;
  }

  /** Throws SESSION_BUSY with the holder. */
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

  /** The current lease holder, or null. */
  holder(id: string): Holder | null {
    const path = this.#path(id);
    try {
      const own = this.#own(id);
      if (own || this.#disk.stat(path)?.kind !== "file") return own;
      return this.#disk.isLocked(path) || this.#isHeldWithoutLock(id) ? this.#words(id) : null;
    } catch (error) {
      // A lease file that has content or has disappeared cannot be held.
      if (errnoOf(error) === "EBADF" || this.#isGone(path)) return null;
      throw diskFailure(error, "check a lease", path, "Nothing was written.");
    }
  }

  /** Runs a function under the lease, if it is free. */
  whileFree(id: string, run: () => void): void {
    const lease = this.#try(id, "gc");
    try {
      if (lease) run();
    } finally {
      lease?.release();
    }
  }

  /** Removes the lease files of a deleted session. Only under its lease. */
  forget(id: string): void {
    const paths = [this.#wordsPath(id), this.#closedPath(id), this.#hardLockPath(id), this.#path(id)];
    for (const path of paths) if (this.#disk.stat(path)) this.#disk.remove(path);
  }

  /** Removes old files whose writer was killed while writing them. */
  tidy(nowMs: number): void {
    if (this.#isMissing) return;
    for (const name of this.#disk.list(this.#folder)) {
      // Another process may be tidying up too.
      if (nowMs - timeIn(name) > DAY_MS) this.#removeIfPossible(join(this.#folder, name));
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
      // Another process that tidies up removed it between our check and our lock: create it again.
      if (LOST.has(errnoOf(error) ?? "") && this.#isGone(path)) {
        // Likewise the folder, if that was removed.
        this.#isMissing = this.#isGone(this.#folder);
        return null;
      }
      throw diskFailure(error, "take the lease of a session", path, "Nothing was written.");
    }
  }

  /**
   * We have the lock; it becomes a lease if the file is still the one that was checked, and nobody holds the session
   * without its lock.
   */
  #hold(id: string, app: string, key: string, lock: DiskLock): Lease | null {
    const path = this.#path(id);
    const holder: Holder = { pid: process.pid, host: hostname(), app, since: new Date(this.#now()).toISOString() };
    const held: ActiveLease = { lock, holder, hardLock: null };
    let lastClose: ClosedAt | null;
    try {
      const after = this.#disk.stat(path);
      if (!after || identity(after) !== key || this.#isHeldWithoutLock(id)) {
        // The file was removed between our check and our lock, or a holder has lost its lock but not the session.
        lock.release();
        return null;
      }
      this.#held.set(key, held);
      writeNote(this.#disk, this.#wordsPath(id), holder);
      lastClose = closedAtOf(findNote(this.#disk, this.#closedPath(id)));
    } catch (error) {
      this.#held.delete(key);
      lock.release();
      throw error;
    }
    let isReleased = false;
    this.#hardenLater(id, held);
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
        if (isReleased) return;
        isReleased = true;
        clearTimeout(held.hardening);
        if (closedAt) writeNote(this.#disk, this.#closedPath(id), closedAt);
        this.#held.delete(key);
        held.hardLock?.release();
        lock.release();
      },
    };
  }

  #hardenLater(id: string, held: ActiveLease, tries = 0): void {
    held.hardening = setTimeout(() => this.#harden(id, held, tries), HARDEN_AFTER_MS * 2 ** tries);
    held.hardening.unref();
  }

  #harden(id: string, held: ActiveLease, tries: number): void {
    const startMs = performance.now();
    if (startMs < this.#restUntilMs) {
      this.#hardenLater(id, held, tries);
      return;
    }
    try {
      const lock = this.#disk.hardLock(this.#hardLockPath(id));
      if (lock === "taken") {
        if (tries + 1 < HARDEN_TRIES) this.#hardenLater(id, held, tries + 1);
      } else if (lock !== "none") held.hardLock = lock;
    } catch (error) {
      // The lease is still held, but is not sure.
      if (errnoOf(error) === undefined) throw error;
    }
    const endMs = performance.now();
    this.#restUntilMs = endMs + (endMs - startMs) * HARDEN_REST;
  }

  /**
   * A living holder's POSIX lock may have been released inside its own process, and that lock cannot show it. If the
   * last holder may be alive, also ask for the hard lock, which costs a child process.
   */
  #isHeldWithoutLock(id: string): boolean {
    const { pid, host } = this.#words(id);
    if (!Number.isSafeInteger(pid) || pid < 1) return false;
    if (host === hostname() && (pid === process.pid || !isAlive(pid))) return false;
    // Its last writer closed it, and nobody has written since.
    if (this.#disk.stat(this.#closedPath(id))) return false;
    const path = this.#hardLockPath(id);
    if (this.#disk.stat(path)?.kind !== "file") return false;
    const lock = this.#disk.hardLock(path, "shared");
    if (typeof lock !== "string") lock.release();
    return lock === "taken";
  }

  /**
   * By a rename, which only one of all contenders can do. Its content is checked afterwards, because it may have been
   * taken and left again in the meantime. If the check fails, the next attempt checks again: what was taken is ours.
   */
  #takeClose(id: string, expected: ClosedAt | null, held: ActiveLease): boolean {
    const path = this.#closedPath(id);
    try {
      if (held.takenClose === undefined) {
        const taken = temporaryName(path);
        this.#disk.rename(path, taken);
        held.takenClose = taken;
      }
      const found = closedAtOf(readNote(this.#disk, held.takenClose));
      this.#removeIfPossible(held.takenClose);
      return found !== null && found.segment === expected?.segment && found.bytes === expected.bytes;
    } catch (error) {
      if (errnoOf(error) === "ENOENT") return false;
      throw diskFailure(error, "take the lease of a session", path, "Nothing was written.");
    }
  }

  /** A leftover does no harm, and is tidied up later. */
  #removeIfPossible(path: string): void {
    tolerate(() => this.#disk.remove(path), undefined);
  }

  /** The file exists, regular and empty, before SQLite sees it. */
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
      const message = `The lease ${path} is not a regular file. Nothing was touched. Find out who put it there, and remove it.`;
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

  /** Called after a failure, which is what the caller must see if this fails too. */
  #isGone(path: string): boolean {
    return tolerate(() => this.#disk.stat(path) === null, false);
  }

  #own(id: string): Holder | null {
    const stat = this.#disk.stat(this.#path(id));
    return (stat && this.#held.get(identity(stat))?.holder) ?? null;
  }

  #words(id: string): Holder {
    const found = findNote(this.#disk, this.#wordsPath(id)) as Partial<Holder>;
    return { pid: 0, host: "unknown", app: "unknown", since: "unknown", ...found };
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

function closedAtOf(value: object): ClosedAt | null {
  const { segment, bytes } = value as Partial<ClosedAt>;
  return typeof segment === "string" && typeof bytes === "number" ? { segment, bytes } : null;
}

/** Does a process with this number exist on this machine, as far as this process can see? */
function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    // EPERM: it exists, but belongs to another user.
    return errnoOf(error) === "EPERM";
  }
}

/** Emptying it would also empty the file's other names. */
function sharedContent(path: string): HoldfastError {
  const message = `The lease ${path} is a hard link to a file with content. Nothing was touched. Find out who put it there, and remove it.`;
  return new HoldfastError("PATH_UNSAFE", message, { path });
}

function lost(id: string, path: string): HoldfastError {
  const message =
    `The lease of session ${id} is gone: its file was removed or replaced, and another process may be writing. ` +
    "Acknowledged records are safe; pending ones are in doubt. Close this journal, and reopen the session.";
  return new HoldfastError("LEASE_LOST", message, { session: id, path });
}
