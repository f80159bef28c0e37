/** A sync that takes less is fast. */
const FAST_MS = 1;
/** So many fast syncs in a row move the next one to the calling thread … */
const FAST_MIN = 4;
/** … and each one that then turns out slow makes it four times as many, up to here. */
const FAST_MAX = 1024;
/** How long a caller may keep the event loop from turning with one sync after another. */
const HELD_MS = 10;

/**
 * Where the next sync of a file runs. On the calling thread it takes half the time, because no other thread has to wake
 * up, but it blocks the event loop. So it runs there while the disk is fast, and in the thread pool otherwise; the
 * first ones always do. A disk that stalls blocks the event loop for one sync, and is then given more time to prove
 * itself.
 */
export class SyncPace {
  #fast = 0;
  #needed = FAST_MIN;
  /** When the event loop was last seen turning; null if it has turned since the last sync on the calling thread. */
  #heldSince: number | null = null;

  /** Whether the next sync may block its caller. */
  mayBlock(nowMs: number): boolean {
    if (this.#fast < this.#needed) return false;
    if (this.#heldSince === null) {
      this.#heldSince = nowMs;
      setImmediate(() => {
        this.#heldSince = null;
      });
    }
    return nowMs - this.#heldSince < HELD_MS;
  }

  took(ms: number, didBlock: boolean): void {
    if (ms >= FAST_MS) {
      if (didBlock) this.#needed = Math.min(FAST_MAX, this.#needed * 4);
      this.#fast = 0;
    } else {
      this.#fast += 1;
      if (this.#fast >= FAST_MAX) this.#needed = FAST_MIN;
    }
  }
}
