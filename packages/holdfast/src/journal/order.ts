import type { JournalRecord } from "./record.ts";

/** A larger deviation means that the wall clock was set, not just slewed. */
const STEP_MS = 100;
/** The latest time a Date can hold: no time sorts after it, and using it never throws. */
export const LATEST_MS = 8.64e15;

/**
 * The time of a store's records, and the order of its sessions. Records carry the wall clock's time, right or wrong.
 * The order of lists does not rely on that clock alone: `ahead` is how far the clock lags behind the order, and `at`
 * plus `ahead`, a record's stamp, never goes back. It is 0 while the clock moves forward.
 *
 * Two things can make a stamp earlier than a previous one. The clock is set back while this process runs, which the
 * monotonic clock reveals; or it was set back earlier, and another process or machine has issued later stamps, which
 * `follow` takes in.
 */
export class OrderClock {
  readonly #wall: () => number;
  readonly #monotonic: (() => number) | undefined;
  #wallMs = Number.NaN;
  #monotonicMs = 0;
  #ahead = 0;
  /** The latest stamp issued here. */
  #newestMs = Number.NEGATIVE_INFINITY;
  /** The latest stamp issued elsewhere, until the clock is next read. */
  #othersMs = Number.NaN;

  /**
   * `monotonic`: milliseconds that never decrease, at the pace of `wall`. Without it, idle time is not counted when the
   * clock is set back.
   */
  constructor(wall: () => number, monotonic?: () => number) {
    this.#wall = wall;
    this.#monotonic = monotonic;
  }

  /** This machine's clock, or the one given instead. */
  static of(clock: (() => number) | undefined): OrderClock {
    return clock ? new OrderClock(clock) : new OrderClock(Date.now, () => performance.now());
  }

  /** How many milliseconds the stamp of the last `now` is ahead of it. */
  get ahead(): number {
    return this.#ahead;
  }

  /** The wall clock's time, in milliseconds since 1970. */
  now(): number {
    const wallMs = this.#wall();
    // Within one millisecond there is nothing to compare yet: the next one is compared with the first of this one.
    if (this.#monotonic && wallMs !== this.#wallMs) this.#compare(wallMs, this.#monotonic());
    const othersMs = this.#othersMs;
    this.#othersMs = Number.NaN;
    // No further ahead than necessary. Within one millisecond, the clock cannot tell which came later.
    if (othersMs <= wallMs && this.#newestMs <= wallMs) this.#ahead = 0;
    if (othersMs > wallMs && wallMs + this.#ahead <= othersMs) this.#pass(wallMs, othersMs);
    if (wallMs + this.#ahead < this.#newestMs) this.#pass(wallMs, this.#newestMs);
    this.#newestMs = wallMs + this.#ahead;
    return wallMs;
  }

  /** Everything from now on sorts after this stamp of another session. */
  follow(stamp: string | undefined): void {
    const ms = stamp === undefined ? Number.NaN : stampMs(stamp);
    if (!Number.isNaN(ms) && !(ms <= this.#othersMs)) this.#othersMs = ms;
  }

  #pass(wallMs: number, stampMs: number): void {
    this.#ahead = Math.ceil(Math.min(stampMs + 1, LATEST_MS) - wallMs);
  }

  /** Compensates for a step back; a step forward cancels earlier compensation. */
  #compare(wallMs: number, monotonicMs: number): void {
    const stepMs = Math.round(wallMs - this.#wallMs - (monotonicMs - this.#monotonicMs));
    this.#wallMs = wallMs;
    this.#monotonicMs = monotonicMs;
    if (stepMs < -STEP_MS) this.#ahead -= stepMs;
    else if (stepMs > STEP_MS) this.#ahead = Math.max(0, this.#ahead - stepMs);
  }
}

/** The format of times in records; sorts as text. */
const TIME = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/;

/** The sort key of lists: text, so that stamps and record times compare. An invalid time sorts first. */
export function stampOf(at: string, ahead: number): string {
  const ms = Date.parse(at) + ahead;
  if (ahead === 0 && !Number.isNaN(ms) && TIME.test(at)) return at;
  // Years with more digits start with a sign that sorts after all digits.
  return new Date(Number.isNaN(ms) ? 0 : Math.max(0, Math.min(ms, LATEST_MS))).toISOString().replace("+", "~");
}

/** How far the newest record's stamp is ahead of its time, after this record. */
export function aheadAfter(ahead: number, { ahead: said, summary }: JournalRecord): number {
  return said ?? (summary === undefined ? ahead : 0);
}

/** The same, computed from the result of `stampOf`. */
export function aheadOf(stamp: string, at: string): number {
  const ms = stampMs(stamp) - Date.parse(at);
  return Number.isSafeInteger(ms) && ms > 0 ? ms : 0;
}

function stampMs(stamp: string): number {
  return Date.parse(stamp.replace("~", "+"));
}
