import { setImmediate as pause } from "node:timers/promises";

/** What is to be done when: each thing once, the earliest first, a few at a time. */
export class Schedule<T> {
  readonly #due = new Map<T, number>();
  readonly #running = new Set<T>();
  readonly #lanes: Record<"fast" | "slow", T | null> = { fast: null, slow: null };
  readonly #work: (item: T) => Promise<void>;
  readonly #laneOf: (item: T) => "fast" | "slow";
  #timer: NodeJS.Timeout | null = null;
  #idle = Promise.withResolvers<void>();
  #isStopped = false;

  /** `laneOf`: what takes long must not hold up what does not. `work` throws nothing. */
  constructor(work: (item: T) => Promise<void>, laneOf: (item: T) => "fast" | "slow") {
    this.#work = work;
    this.#laneOf = laneOf;
  }

  /** No later than this; what is under way is done again. */
  add(item: T, at: number): void {
    if (this.#isStopped) return;
    this.#due.set(item, Math.min(at, this.#due.get(item) ?? Number.POSITIVE_INFINITY));
    // A lane that is busy looks again by itself.
    if (this.#lanes[this.#laneOf(item)] === null) this.#arm();
  }

  remove(item: T): void {
    this.#due.delete(item);
  }

  /** Resolves when nothing of these is left to be done by now. */
  async settled(items: Iterable<T>): Promise<void> {
    const left = new Set(items);
    for (;;) {
      const now = Date.now();
      for (const item of left)
        if (!this.#running.has(item) && (this.#due.get(item) ?? Number.POSITIVE_INFINITY) > now) left.delete(item);
      if (left.size === 0 || this.#isStopped) return;
      await this.#idle.promise;
    }
  }

  /** Begins nothing more; resolves when what is under way has ended. */
  async stop(): Promise<void> {
    this.#isStopped = true;
    this.#due.clear();
    clearTimeout(this.#timer ?? undefined);
    while (this.#running.size > 0) await this.#idle.promise;
    this.#idle.resolve();
  }

  #arm(): void {
    clearTimeout(this.#timer ?? undefined);
    if (this.#isStopped) return;
    const now = Date.now();
    let next = Number.POSITIVE_INFINITY;
    for (const lane of ["fast", "slow"] as const) {
      if (this.#lanes[lane] !== null) continue;
      const [item, at] = this.#earliest(lane);
      if (item === null) continue;
      if (at <= now) void this.#run(item, lane);
      else next = Math.min(next, at);
    }
    if (next < Number.POSITIVE_INFINITY)
      // A pending change keeps no process alive; the caller that waits for it does.
      this.#timer = setTimeout(() => this.#arm(), Math.min(next - now, 2 ** 30)).unref();
  }

  #earliest(lane: "fast" | "slow"): [item: T | null, at: number] {
    let best: T | null = null;
    let earliest = Number.POSITIVE_INFINITY;
    for (const [item, at] of this.#due) {
      if (at >= earliest || this.#running.has(item) || this.#laneOf(item) !== lane) continue;
      best = item;
      earliest = at;
    }
    return [best, earliest];
  }

  async #run(item: T, lane: "fast" | "slow"): Promise<void> {
    this.#due.delete(item);
    this.#running.add(item);
    this.#lanes[lane] = item;
    try {
      await pause();
      await this.#work(item);
    } finally {
      this.#running.delete(item);
      this.#lanes[lane] = null;
      const { resolve } = this.#idle;
      this.#idle = Promise.withResolvers<void>();
      resolve();
      this.#arm();
    }
  }
}
