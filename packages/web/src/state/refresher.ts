/** What was slow to read is read again less often: it takes this share of the time at most, if `mostMs` allows. */
const SHARE = 0.1;
/** Changes that come one by one are read together. */
const SOON_MS = 150;

export interface Pace {
  /** How long changes are gathered at least. */
  readonly leastMs: number;
  /** How long a change waits at most, however slow reading is. */
  readonly mostMs: number;
}

/** Reads something again after it has changed, one request at a time, so that answers cannot overtake each other. */
export class Refresher {
  readonly #read: () => Promise<void>;
  readonly #pace: Pace;
  #timer: ReturnType<typeof setTimeout> | undefined;
  #dueMs = Number.POSITIVE_INFINITY;
  #tookMs = 0;
  #isReading = false;
  /** What changed while it was being read. */
  #next: "later" | "soon" | null = null;
  #isStopped = false;

  constructor(read: () => Promise<void>, pace: Pace) {
    this.#read = read;
    this.#pace = pace;
  }

  /** Something changed. */
  later(): void {
    this.#schedule("later");
  }

  /** Something changed that people wait for. */
  soon(): void {
    this.#schedule("soon");
  }

  /** Reads it at once, or, if it is being read, once more afterwards. */
  async now(): Promise<void> {
    if (this.#isReading) this.soon();
    else await this.#run();
  }

  stop(): void {
    this.#isStopped = true;
    clearTimeout(this.#timer);
  }

  #schedule(when: "later" | "soon"): void {
    if (this.#isStopped) return;
    if (this.#isReading) {
      if (this.#next !== "soon") this.#next = when;
      return;
    }
    const { leastMs, mostMs } = this.#pace;
    const waitMs = when === "soon" ? SOON_MS : Math.min(mostMs, Math.max(leastMs, this.#tookMs / SHARE));
    const dueMs = performance.now() + waitMs;
    if (dueMs >= this.#dueMs) return;
    clearTimeout(this.#timer);
    this.#dueMs = dueMs;
    this.#timer = setTimeout(() => void this.#run(), waitMs);
  }

  async #run(): Promise<void> {
    if (this.#isStopped) return;
    clearTimeout(this.#timer);
    this.#dueMs = Number.POSITIVE_INFINITY;
    this.#isReading = true;
    const startedMs = performance.now();
    try {
      await this.#read();
    } finally {
      this.#tookMs = performance.now() - startedMs;
      this.#isReading = false;
      const next = this.#next;
      this.#next = null;
      if (next !== null) this.#schedule(next);
    }
  }
}
