/** A sync that takes less is fast. */
const FAST_MS = 1;
/** The number of fast syncs in a row that moves the next one to the calling thread. */
const FAST_MIN = 4;
/**
 * Of this many syncs, one may be slow: now and then, a busy event loop hears late of one that ran in the thread pool.
 */
const RECENT = 8;
/** About what a fast sync saves on the calling thread. */
const SAVED_MS = 0.1;
/** The most that one stall can cost in saved time: the next thousand fast syncs run in the thread pool. */
const OWED_MAX_MS = 100;
/** How long a caller may keep the event loop from turning with one sync after another. */
const HELD_MS = 10;

/**
 * How syncs on the calling thread have held up its event loop. All files share it: hundreds of sessions may be open,
 * and a disk that stalls for one stalls for all.
 */
export class HeldLoop {
  #owedMs = 0;
  /** Whose syncs have blocked the event loop since it last turned, and since when. */
  #by: SyncPace | null = null;
  #since = 0;

  /** Several files that sync in one turn would wait for each other; in the thread pool they need not. */
  mayBlock(by: SyncPace, nowMs: number): boolean {
    if (this.#owedMs > 0) return false;
    if (this.#by === null) {
      this.#by = by;
      this.#since = nowMs;
      setImmediate(() => {
        this.#by = null;
      });
    }
    return this.#by === by && nowMs - this.#since < HELD_MS;
  }

  lost(ms: number): void {
    this.#owedMs = Math.min(OWED_MAX_MS, this.#owedMs + ms);
  }

  saved(): void {
    this.#owedMs = Math.max(0, this.#owedMs - SAVED_MS);
  }
}

const thisLoop = new HeldLoop();

/**
 * Where the next sync of a file runs. On the calling thread it takes about a quarter less time, because no other thread
 * has to wake up, but it blocks the event loop. So it runs there after a few fast ones in a row, or if all of the
 * recent ones but one were fast, and in the thread pool otherwise. A slow one that blocked its caller runs up a debt,
 * and fast ones pay it off: over time, slow syncs block the event loop for no longer than fast ones save.
 */
export class SyncPace {
  readonly #loop: HeldLoop;
  /** The fast syncs since the last slow one, and between that one and the slow one before it. */
  #fast = 0;
  #fastBefore = 0;

  constructor(loop: HeldLoop = thisLoop) {
    this.#loop = loop;
  }

  /** Whether the next sync may block its caller. */
  mayBlock(nowMs: number): boolean {
    return this.#isFast() && this.#loop.mayBlock(this, nowMs);
  }

  took(ms: number, didBlock: boolean): void {
    if (ms < FAST_MS) {
      this.#fast += 1;
      this.#loop.saved();
    } else {
      this.#fastBefore = this.#fast;
      this.#fast = 0;
      if (didBlock) this.#loop.lost(ms - FAST_MS);
    }
  }

  #isFast(): boolean {
    return this.#fast >= FAST_MIN || this.#fastBefore + 1 + this.#fast >= RECENT;
  }
}
