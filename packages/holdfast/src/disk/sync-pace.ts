/** A sync that takes less is fast. */
const FAST_MS = 1;
/** The number of fast syncs in a row that moves the next one to the calling thread. */
const FAST_MIN = 4;
/** About what a fast sync saves on the calling thread. */
const SAVED_MS = 0.1;
/** The most that one stall can cost in saved time: the next thousand fast syncs run in the thread pool. */
const OWED_MAX_MS = 100;
/** How long a caller may keep the event loop from turning with one sync after another. */
const HELD_MS = 10;

/**
 * Where the next sync runs. On the calling thread it takes about a quarter less time, because no other thread has to
 * wake up, but it blocks the event loop. So it runs there after a few fast ones in a row, and in the thread pool
 * otherwise. A slow one that blocked its caller runs up a debt, and fast ones pay it off: over time, slow syncs block
 * the event loop for no longer than fast ones save.
 *
 * All files share it: hundreds of sessions may be open, and a disk that stalls for one stalls for all.
 */
export class SyncPace {
  /** Fast syncs in a row, less those that still have to pay for a slow one. */
  #fast = 0;
  /** Whose syncs have blocked the event loop since it last turned, and since when. */
  #by: object | null = null;
  #since = 0;

  /**
   * Whether the next sync of a file may block its caller. Several files that sync in one turn would wait for each
   * other; in the thread pool they need not.
   */
  mayBlock(by: object, nowMs: number): boolean {
    if (this.#fast < FAST_MIN) return false;
    if (this.#by === null) {
      this.#by = by;
      this.#since = nowMs;
      setImmediate(() => {
        this.#by = null;
      });
    }
    return this.#by === by && nowMs - this.#since < HELD_MS;
  }

  took(ms: number, didBlock: boolean): void {
    if (ms < FAST_MS) this.#fast++;
    else if (didBlock) this.#fast = FAST_MIN - Math.min(OWED_MAX_MS, ms - FAST_MS) / SAVED_MS;
    else this.#fast = Math.min(0, this.#fast);
  }
}
