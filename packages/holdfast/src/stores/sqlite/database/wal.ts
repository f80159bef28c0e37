import { dirname } from "node:path";
import type { Disk, DiskFile } from "../../../disk/disk.ts";
import { isFull } from "../../../disk/failure.ts";
import { putAll } from "../../../disk/put-all.ts";
import { errnoOf, HoldfastError, isHoldfastError } from "../../../errors.ts";
import { storeClosed } from "../../../journal/refusals.ts";
import type { Database } from "./database.ts";
import { isIoError, isSqliteError, sqliteFailure } from "./failure.ts";

/** The log is moved into the database file when it has grown by about this much. */
const CHECKPOINT_BYTES = 4 * 1024 * 1024;
/** The approximate size a commit adds to the log beyond its lines: whole pages are written. */
const COMMIT_BYTES = 6 * 1024;
const CHUNK_BYTES = 1024 * 1024;

/**
 * The write-ahead log of a database, synced from outside SQLite. SQLite commits with `synchronous=NORMAL`: when a
 * commit returns, its frames are in the kernel, so they survive SIGKILL, but they are not on stable storage. A commit
 * with `synchronous=FULL` adds one fsync of this file after its last frame. This class makes that fsync on its own
 * descriptors, so it blocks nobody, and commits that wait together share one (S10). If the log was checkpointed and
 * restarted between a commit and its sync, the checkpoint has synced the commit.
 *
 * SQLite's lock is on the database file, none on this one: closing these descriptors releases no lock (S13). Nothing
 * here opens the database file.
 */
export class Wal {
  readonly #disk: Disk;
  readonly #database: Database;
  readonly #file: DiskFile;
  /** A concurrent sync must not consume the report of a failure: a separate descriptor receives it too. */
  readonly #second: DiskFile;
  readonly #onDoubt: (error: unknown) => void;
  readonly #issuing: (() => void)[] = [];
  #running: Promise<void> | null = null;
  #next: Promise<void> | null = null;
  /** `unknown`: a sync of this file may have failed in a process that is dead. `failed`: a sync has failed here. */
  #state: "unknown" | "failed" | "good" = "unknown";
  #grownBytes = 0;
  #healing: Promise<void> | null = null;
  #closed = false;

  /** The database has been read, so the log exists. `onDoubt` receives each failure before the waiters do. */
  constructor(disk: Disk, database: Database, onDoubt: (error: unknown) => void) {
    this.#disk = disk;
    this.#database = database;
    this.#onDoubt = onDoubt;
    const path = `${database.file}-wal`;
    this.#file = disk.open(path, "update");
    try {
      this.#second = disk.open(path, "update");
    } catch (error) {
      this.#file.close();
      throw error;
    }
  }

  get path(): string {
    return this.#file.path;
  }

  /**
   * When this resolves, everything committed before `onIssue` was called is durable. One sync runs at a time; waiters
   * share the next.
   */
  sync(onIssue?: () => void): Promise<void> {
    if (onIssue) this.#issuing.push(onIssue);
    this.#next ??= this.#run(this.#running);
    return this.#next;
  }

  async #run(before: Promise<void> | null): Promise<void> {
    try {
      // At least a microtask, so that the commits of one tick share a sync.
      await before;
    } catch {
      // Its waiters have been told. This sync is refused below, because of the doubt left behind.
    }
    this.#running = this.#next;
    this.#next = null;
    try {
      for (const issue of this.#issuing.splice(0)) issue();
      this.#assertTrusted();
      await this.#file.sync();
      this.#assertTrusted();
      this.assertMine();
    } catch (error) {
      this.doubt(error);
      throw error;
    }
  }

  syncNow(): void {
    try {
      this.#assertTrusted();
      this.#second.syncNow();
      this.assertMine();
    } catch (error) {
      this.doubt(error);
      throw error;
    }
  }

  /** A sync of the log has failed, SQLite's or ours: a hole in it would lose every later commit. */
  doubt(error: unknown): void {
    if (isHoldfastError(error, "STORE_CLOSED")) return;
    this.#state = "failed";
    this.#onDoubt(error);
  }

  /** Call after a commit of this many bytes. Checkpoints now and then. */
  grew(bytes: number): void {
    this.#grownBytes += bytes + COMMIT_BYTES;
    if (this.#grownBytes < CHECKPOINT_BYTES) return;
    this.#grownBytes = 0;
    try {
      this.#database.checkpoint("PASSIVE");
    } catch (error) {
      // On any other error (a full disk), the log keeps its content, and the next attempt is soon.
      if (isIoError(error)) this.doubt(error);
    }
  }

  /** Throws FILE_REPLACED if commits went to a file that others do not see (S12). */
  assertMine(): void {
    this.#database.assertMine();
  }

  /** From now on, a successful sync can be trusted. Throws SYNC_FAILED, FILE_REPLACED. */
  async trust(): Promise<void> {
    this.assertMine();
    while (this.#state !== "good") {
      this.#healing ??= this.#heal().finally(() => {
        this.#healing = null;
      });
      await this.#healing;
    }
  }

  /** `sync`, with its failure as a HoldfastError. */
  async confirm(): Promise<void> {
    try {
      await this.sync();
    } catch (error) {
      throw this.#unconfirmed(error);
    }
  }

  async close(): Promise<void> {
    this.#closed = true;
    // A descriptor is closed only after its syncs have ended (S10).
    await Promise.allSettled([this.#healing, this.#next, this.#running]);
    try {
      this.#file.close();
    } finally {
      this.#second.close();
    }
  }

  #assertTrusted(): void {
    if (this.#closed) throw storeClosed(this.#database.file);
    if (this.#state === "good") return;
    throw Object.assign(new Error(`an earlier sync of ${this.path} failed`), { code: "EIO" });
  }

  async #heal(): Promise<void> {
    await Promise.allSettled([this.#running, this.#next]);
    try {
      // The log's own name: SQLite creates the file, and does not sync the folder before it syncs the file itself.
      this.#disk.syncFolder(dirname(this.path));
      for (const file of [this.#file, this.#second]) this.#hearOldNews(file);
      if (this.#file.stat().size > 0 && !emptyLog(this.#disk, this.#database, this.#file)) {
        if (this.#state === "failed") throw this.#blocked();
        rewriteLog(this.#file);
      }
      await this.#file.sync();
      this.#second.syncNow();
    } catch (error) {
      throw this.#unconfirmed(error);
    }
    this.#state = "good";
  }

  /** Each descriptor receives an earlier failure once; anything it reports after this concerns later writes. */
  #hearOldNews(file: DiskFile): void {
    try {
      file.syncNow();
    } catch (error) {
      if (errnoOf(error) === undefined) throw error;
    }
  }

  #unconfirmed(error: unknown): unknown {
    if (error instanceof HoldfastError || errnoOf(error) === undefined) return error;
    if (isSqliteError(error))
      return sqliteFailure(error, "make the log durable", this.path, "Acknowledged records are safe.");
    const message =
      `The disk did not confirm the log ${this.path}. Acknowledged records are safe; what was just written is in doubt. ` +
      "Check the disk, close this journal, and reopen the session.";
    return new HoldfastError("SYNC_FAILED", message, { path: this.path, errno: errnoOf(error) ?? null }, error);
  }

  #blocked(): HoldfastError {
    const message =
      `The disk failed to confirm the log ${this.path}, and there is no space to move its content to a safer place. ` +
      "Acknowledged records are safe. Free some space, and try again.";
    return new HoldfastError("SYNC_FAILED", message, { path: this.path });
  }
}

/**
 * After a failed fsync the kernel treats the lost pages as clean, and the next fsync succeeds (S9); and a hole in the
 * log loses every commit after it. Writing the same bytes to the same place does not help: ext4 has given them blocks
 * that stay marked as unwritten, and after the next mount they are NULs, although the fsync was confirmed (measured on
 * Linux 6.18, with its default options). So the commits are moved into the database file and the log is truncated: what
 * is written to it then gets new blocks.
 *
 * Returns false if there is no space for a trial write.
 */
export function emptyLog(disk: Disk, database: Database, log: DiskFile): boolean {
  for (let failures = 0; ; ) {
    if (!tryDisk(disk, `${database.file}-trial`, log)) return false;
    try {
      database.checkpoint("TRUNCATE");
      return true;
    } catch (error) {
      // SQLite's own descriptor may not have received the old failure yet, and reports it before it writes anything.
      // Once.
      if (!isIoError(error) || ++failures > 1) throw error;
    }
  }
}

/**
 * Rewrites the bytes of the log in place: the remaining option if nothing is known to have failed and there is no
 * space.
 */
export function rewriteLog(log: DiskFile): void {
  copyLog(log, (bytes, at) => log.writeAt(bytes, at));
}

/**
 * Writes as many bytes as the log has to a temporary file: if the disk fails at this, it must not be trusted with the
 * database file, whose blocks cannot be replaced. Returns false if there is no space.
 */
function tryDisk(disk: Disk, path: string, log: DiskFile): boolean {
  if (disk.stat(path)) disk.remove(path);
  const file = disk.open(path, "create");
  try {
    try {
      copyLog(log, (bytes) => file.write(bytes));
    } catch (error) {
      if (isFull(error)) return false;
      throw error;
    }
    try {
      file.syncNow();
    } catch (error) {
      // ENOSPC from here is a failed fsync, not a full disk (S9).
      const message = `The disk of ${log.path} does not confirm writes. Acknowledged records are safe, and nothing was changed. Check the disk, and reopen the session.`;
      throw new HoldfastError("SYNC_FAILED", message, { path, errno: errnoOf(error) ?? null }, error);
    }
    return true;
  } finally {
    file.close();
    disk.remove(path);
  }
}

function copyLog(log: DiskFile, write: (bytes: Uint8Array, at: number) => number): void {
  const { size } = log.stat();
  const bytes = Buffer.allocUnsafe(Math.min(size, CHUNK_BYTES));
  for (let at = 0; at < size; ) {
    const length = log.read(bytes, 0, Math.min(bytes.length, size - at), at);
    if (length === 0) return;
    putAll(bytes.subarray(0, length), (rest) => {
      const written = write(rest, at);
      at += written;
      return written;
    });
  }
}
