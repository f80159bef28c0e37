import { setTimeout as sleep } from "node:timers/promises";
import { BUSY_MS, busyPauseMs, type Database, retryBlocking } from "./database/database.ts";
import { isBusy, sqliteFailure } from "./database/failure.ts";

interface QueuedWrite {
  readonly work: () => unknown;
  readonly until: number;
  readonly resolve: (value: never) => void;
  readonly reject: (error: unknown) => void;
}

/**
 * The writes of one journal, in order. A database has one writer at a time. Almost always a write completes inside the
 * call, as the contract says; while another process is writing, it waits here for its turn, and later writes queue
 * behind it.
 */
export class WriteQueue {
  readonly #database: Database;
  readonly #waiting: QueuedWrite[] = [];
  #draining: Promise<void> | null = null;

  constructor(database: Database) {
    this.#database = database;
  }

  /**
   * Runs `work` now or later. If later, `onLater` is called inside the call, before anyone can change what `work`
   * needs. If `work` throws because the database is busy, it must have had no effect.
   */
  run<T>(work: () => T, onLater?: () => void): T | Promise<T> {
    if (this.#waiting.length === 0) {
      try {
        return this.#database.spin(work);
      } catch (error) {
        if (!isBusy(error)) throw error;
      }
    }
    onLater?.();
    return new Promise((resolve, reject) => {
      this.#waiting.push({ work, until: performance.now() + BUSY_MS, resolve, reject });
      this.#draining ??= this.#drain();
    });
  }

  /** Runs `work` inside the call, after everything that waits; blocks until then. */
  runNow<T>(work: () => T): T {
    while (this.#waiting[0]) this.#take(this.#waiting[0], ({ work, until }) => retryBlocking(work, until));
    try {
      return retryBlocking(work);
    } catch (error) {
      throw this.#inWords(error);
    }
  }

  /** Resolves when nothing is waiting. */
  async idle(): Promise<void> {
    await this.#draining;
  }

  async #drain(): Promise<void> {
    while (this.#waiting[0]) {
      await sleep(busyPauseMs());
      while (this.#waiting[0] && this.#take(this.#waiting[0], (queued) => this.#database.spin(queued.work)));
    }
    this.#draining = null;
  }

  /** Returns false if it has to keep waiting. */
  #take(queued: QueuedWrite, run: (queued: QueuedWrite) => unknown): boolean {
    try {
      queued.resolve(run(queued) as never);
    } catch (error) {
      if (isBusy(error) && performance.now() < queued.until) return false;
      queued.reject(this.#inWords(error));
    }
    this.#waiting.shift();
    return true;
  }

  #inWords(error: unknown): unknown {
    if (!isBusy(error)) return error;
    return sqliteFailure(error, "write to the store", this.#database.file, "Nothing of it was written.");
  }
}
