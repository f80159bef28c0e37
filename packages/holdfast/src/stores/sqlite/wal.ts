import { dirname } from "node:path";
import type { Disk, DiskFile, DiskStat } from "../../disk/disk.ts";
import { diskFailure } from "../../disk/failure.ts";
import { errnoOf, HoldfastError } from "../../errors.ts";
import { assertSame, type Database } from "./database.ts";

const CHUNK_BYTES = 1024 * 1024;

/**
 * The write-ahead log of a database, synced from outside. SQLite commits with `synchronous=NORMAL`: the frames of a commit are in the kernel when it
 * returns, which is what SIGKILL cannot take, and they are not on the platter. A commit with `synchronous=FULL` differs by one fsync of this file
 * after its last frame. That fsync is made here, on descriptors of our own: so it blocks nobody, and commits that wait together share
 * one (S10). If the log was checkpointed and begun anew between a commit and its sync, then the checkpoint has synced the commit.
 *
 * SQLite's locks are on the database file and on `-shm`, none on this file: closing these descriptors gives no lock away (S13). Nothing here opens
 * the other two while SQLite has them, and no program should that has a store open in the same process.
 */
export class Wal {
  readonly #disk: Disk;
  readonly #database: Database;
  readonly #file: DiskFile;
  /** A sync that runs beside another one must not take the news of a failure away from it: a descriptor of its own hears it too. */
  readonly #second: DiskFile;
  readonly #identity: DiskStat;
  readonly #onDoubt: (error: unknown) => void;
  readonly #issuing: (() => void)[] = [];
  #running: Promise<void> | null = null;
  #next: Promise<void> | null = null;
  /** A sync of this file may have failed, here or in a process that is dead. */
  #doubtful = true;
  #healing: Promise<void> | null = null;
  #closed = false;

  /** The database has been read from, so that the log exists. `onDoubt` hears of each failure before those who wait do. */
  constructor(disk: Disk, database: Database, onDoubt: (error: unknown) => void) {
    this.#disk = disk;
    this.#database = database;
    this.#onDoubt = onDoubt;
    const path = `${database.file}-wal`;
    this.#file = disk.open(path, "update");
    try {
      this.#identity = this.#file.stat();
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
   * Everything that was committed before `onIssue` was called is durable when this resolves. One is under way at a time; those who wait
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
      // Those who waited for that one have been told. This one is refused below, by the doubt that it has left.
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

  /** A sync of the log has failed, SQLite's own or ours: a hole in it would take every later commit, whoever made it. */
  doubt(error: unknown): void {
    this.#doubtful = true;
    this.#onDoubt(error);
  }

  /** Throws FILE_REPLACED if the database, or its log, is no longer the file that was opened (S12). */
  assertMine(): void {
    this.#database.assertMine();
    assertSame(this.#disk, this.path, this.#identity);
  }

  /**
   * Everything that anybody has committed so far is durable when this resolves, whatever happened before. Throws SYNC_FAILED, FILE_REPLACED.
   */
  async settle(): Promise<void> {
    await this.trust();
    await this.confirm();
  }

  /** A sync that succeeds from now on is to be believed. Throws SYNC_FAILED, FILE_REPLACED. */
  async trust(): Promise<void> {
    this.assertMine();
    while (this.#doubtful) {
      this.#healing ??= this.#heal().finally(() => {
        this.#healing = null;
      });
      await this.#healing;
    }
  }

  /** `sync`, with its failure in words. */
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
    await Promise.allSettled([this.#next, this.#running]);
    this.#file.close();
    this.#second.close();
  }

  #assertTrusted(): void {
    if (!this.#doubtful && !this.#closed) return;
    throw Object.assign(new Error(`an earlier sync of ${this.path} failed`), { code: "EIO" });
  }

  /**
   * After a failed fsync the kernel takes the lost pages for clean, and the next fsync succeeds (S9); and a hole in the log would take every commit
   * after it. Whether that has happened to a writer that is dead now, nobody knows. So the bytes of the log are written once more, in place.
   */
  async #heal(): Promise<void> {
    await Promise.allSettled([this.#running, this.#next]);
    try {
      // The log's own name: SQLite makes the file, and does not sync the folder before it syncs the file itself.
      this.#disk.syncFolder(dirname(this.path));
      for (const file of [this.#file, this.#second]) this.#hearOldNews(file);
      // Under the lock that writers need, also those who begin the log anew: no byte changes between its reading and its writing.
      await this.#database.retry("write the log once more", () => this.#database.transaction(() => this.#rewrite()));
      await this.#file.sync();
      this.#second.syncNow();
    } catch (error) {
      throw this.#unconfirmed(error);
    }
    this.#doubtful = false;
  }

  /** A failure from before is told to each descriptor once; what is told after this is about what is written after this. */
  #hearOldNews(file: DiskFile): void {
    try {
      file.syncNow();
    } catch (error) {
      if (errnoOf(error) === undefined) throw error;
    }
  }

  #unconfirmed(error: unknown): HoldfastError {
    if (error instanceof HoldfastError) return error;
    const message =
      `The disk did not confirm the log ${this.path}. What was acknowledged before is safe; what was just written is in doubt. ` +
      "Check the disk, and open the session again.";
    return new HoldfastError("SYNC_FAILED", message, { path: this.path, errno: errnoOf(error) ?? null }, error);
  }

  #rewrite(): void {
    const { size } = this.#file.stat();
    const bytes = Buffer.allocUnsafe(Math.min(size, CHUNK_BYTES));
    try {
      for (let at = 0; at < size; ) {
        const length = this.#file.read(bytes, 0, Math.min(bytes.length, size - at), at);
        if (length === 0) break;
        for (let done = 0; done < length; ) done += this.#file.writeAt(bytes.subarray(done, length), at + done);
        at += length;
      }
    } catch (error) {
      throw diskFailure(error, "write the log once more", this.path, "Nothing new was written.");
    }
  }
}
