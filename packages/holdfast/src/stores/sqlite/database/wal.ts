import { dirname } from "node:path";
import type { Disk, DiskFile } from "../../../disk/disk.ts";
import { errnoOf, HoldfastError, isHoldfastError } from "../../../errors.ts";
import { storeClosed } from "../../../journal/refusals.ts";
import { emptyLog, rewriteLog } from "../heal.ts";
import type { Database } from "./database.ts";
import { isBusy, isIoError, isSqliteError, sqliteFailure } from "./failure.ts";

/** The log is moved to the database file when it has grown by about this much. */
const CHECKPOINT_BYTES = 4 * 1024 * 1024;
/** What a commit adds to the log beside its lines, about: the pages that they lie on are written as a whole. */
const COMMIT_BYTES = 6 * 1024;

/**
 * The write-ahead log of a database, synced from outside. SQLite commits with `synchronous=NORMAL`: the frames of a
 * commit are in the kernel when it returns, which is what SIGKILL cannot take, and they are not on the platter. A
 * commit with `synchronous=FULL` differs by one fsync of this file after its last frame. That fsync is made here, on
 * descriptors of our own: so it blocks nobody, and commits that wait together share one (S10). If the log was
 * checkpointed and begun anew between a commit and its sync, then the checkpoint has synced the commit.
 *
 * SQLite's locks are on the database file and on `-shm`, none on this file: closing these descriptors gives no lock
 * away (S13). Nothing here opens the other two while SQLite has them; what happens when other code of the process does,
 * FlagLock says.
 */
export class Wal {
  readonly #disk: Disk;
  readonly #database: Database;
  readonly #file: DiskFile;
  /**
   * A sync that runs beside another one must not take the news of a failure away from it: a descriptor of its own hears
   * it too.
   */
  readonly #second: DiskFile;
  readonly #onDoubt: (error: unknown) => void;
  readonly #issuing: (() => void)[] = [];
  #running: Promise<void> | null = null;
  #next: Promise<void> | null = null;
  /** `unknown`: a sync of this file may have failed in a process that is dead. `failed`: it has, here. */
  #state: "unknown" | "failed" | "good" = "unknown";
  #grownBytes = 0;
  #healing: Promise<void> | null = null;
  #closed = false;

  /**
   * The database has been read from, so that the log exists. `onDoubt` hears of each failure before those who wait do.
   */
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
   * Everything that was committed before `onIssue` was called is durable when this resolves. One is under way at a
   * time; those who wait share the next.
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
      this.#assertShared();
    } catch (error) {
      this.doubt(error);
      throw error;
    }
  }

  syncNow(): void {
    try {
      this.#assertTrusted();
      this.#second.syncNow();
      this.#assertShared();
    } catch (error) {
      this.doubt(error);
      throw error;
    }
  }

  /**
   * A sync of the log has failed, SQLite's own or ours: a hole in it would take every later commit, whoever made it.
   */
  doubt(error: unknown): void {
    if (isHoldfastError(error, "STORE_CLOSED")) return;
    this.#state = "failed";
    this.#onDoubt(error);
  }

  /** A commit of so many bytes has been made. Now and then this is the time for a checkpoint. */
  grew(bytes: number): void {
    this.#grownBytes += bytes + COMMIT_BYTES;
    if (this.#grownBytes < CHECKPOINT_BYTES) return;
    try {
      this.#database.checkpoint("PASSIVE");
      this.#grownBytes = 0;
    } catch (error) {
      // Whatever else it is (a full disk, somebody who is closing), the log keeps what it has, and the next time is
      // soon.
      if (isIoError(error)) this.doubt(error);
      if (!isBusy(error)) this.#grownBytes = 0;
    }
  }

  /** Throws FILE_REPLACED if what was committed is in a file that others do not see (S12). */
  assertMine(): void {
    this.#database.assertMine();
  }

  #assertShared(): void {
    this.assertMine();
    this.#database.assertShared();
  }

  /**
   * Everything that anybody has committed so far is durable when this resolves, whatever happened before. Throws
   * SYNC_FAILED, FILE_REPLACED.
   */
  async settle(): Promise<void> {
    await this.trust();
    await this.confirm();
  }

  /** A sync that succeeds from now on is to be believed. Throws SYNC_FAILED, FILE_REPLACED. */
  async trust(): Promise<void> {
    this.assertMine();
    while (this.#state !== "good") {
      this.#healing ??= this.#heal().finally(() => {
        this.#healing = null;
      });
      await this.#healing;
    }
    await this.#database.recordUse();
  }

  /** `sync`, with its failure in words. */
  async confirm(): Promise<void> {
    try {
      await this.sync();
    } catch (error) {
      throw this.#unconfirmed(error);
    }
  }

  /** Returns whether the log is in order, as far as it is known here. */
  async close(): Promise<boolean> {
    this.#closed = true;
    // A descriptor is closed only after its syncs have ended (S10).
    await Promise.allSettled([this.#healing, this.#next, this.#running]);
    this.#file.close();
    this.#second.close();
    return this.#state !== "failed";
  }

  #assertTrusted(): void {
    if (this.#closed) throw storeClosed(this.#database.file);
    if (this.#state === "good") return;
    throw Object.assign(new Error(`an earlier sync of ${this.path} failed`), { code: "EIO" });
  }

  async #heal(): Promise<void> {
    await Promise.allSettled([this.#running, this.#next]);
    try {
      // The log's own name: SQLite makes the file, and does not sync the folder before it syncs the file itself.
      this.#disk.syncFolder(dirname(this.path));
      for (const file of [this.#file, this.#second]) this.#hearOldNews(file);
      if (this.#file.stat().size > 0 && !(await emptyLog(this.#disk, this.#database, this.#file))) {
        if (this.#state === "failed") throw this.#blocked();
        await rewriteLog(this.#database, this.#file);
      }
      await this.#file.sync();
      this.#second.syncNow();
    } catch (error) {
      throw this.#unconfirmed(error);
    }
    this.#state = "good";
  }

  /**
   * A failure from before is told to each descriptor once; what is told after this is about what is written after this.
   */
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
      return sqliteFailure(error, "make the log durable", this.path, "What was acknowledged before is safe.");
    const message =
      `The disk did not confirm the log ${this.path}. What was acknowledged before is safe; what was just written is in doubt. ` +
      "Check the disk, close this journal, and open the session again.";
    return new HoldfastError("SYNC_FAILED", message, { path: this.path, errno: errnoOf(error) ?? null }, error);
  }

  #blocked(): HoldfastError {
    const message =
      `The disk has failed to confirm the log ${this.path}, and what is in it could not be moved to a safer place: somebody is reading it, or ` +
      "there is no space. What was acknowledged before is safe. Try again when the readers have ended and there is space.";
    return new HoldfastError("SYNC_FAILED", message, { path: this.path });
  }
}
