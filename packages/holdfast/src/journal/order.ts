import type { JournalRecord } from "./record.ts";

/** The wall clock was moved, and not just slowed down or hurried, if it is off by more than this. */
const STEP_MS = 100;
/** The latest time that a Date can hold: nothing comes behind it, and nothing fails there. */
const LATEST_MS = 8.64e15;

/**
 * The time of a store's records, and the order of its sessions. Records carry what the wall clock says, right or wrong. The order of lists does not come from that clock alone: `ahead` is by how much the clock is behind the
 * order, and `at` plus `ahead`, the stamp of a record, never goes back. It is 0 as long as the clock goes forward.
 *
 * Two things can put a stamp before one that was given out earlier: the clock is set back while this process runs, which the monotonic clock shows; or it was set back before, and another process or machine has given
 * out later stamps, which `follow` is told of.
 */
export class OrderClock {
  readonly #wall: () => number;
  readonly #monotonic: (() => number) | undefined;
  #wallMs = Number.NaN;
  #monotonicMs = 0;
  #ahead = 0;
  /** The latest stamp that was given out here. */
  #newestMs = Number.NEGATIVE_INFINITY;
  /** The latest one that was given out elsewhere, until the next look at the clock. */
  #othersMs = Number.NaN;

  /** `monotonic`: milliseconds that only ever grow, at the pace of `wall`. Without it, the time in which nothing was written is not counted when the clock is set back. */
  constructor(wall: () => number, monotonic?: () => number) {
    this.#wall = wall;
    this.#monotonic = monotonic;
  }

  /** The clock of this machine, or one that is given in its place. */
  static of(clock: (() => number) | undefined): OrderClock {
    return clock ? new OrderClock(clock) : new OrderClock(Date.now, () => performance.now());
  }

  /** By how many milliseconds the stamp of the last `now` is ahead of it. */
  get ahead(): number {
    return this.#ahead;
  }

  /** The wall clock's time, in milliseconds since 1970. */
  now(): number {
    const wallMs = this.#wall();
    if (this.#monotonic) this.#compare(wallMs, this.#monotonic());
    const othersMs = this.#othersMs;
    this.#othersMs = Number.NaN;
    // No further ahead than it must be. By the clock, neither of the same millisecond is the later one.
    if (othersMs <= wallMs && this.#newestMs <= wallMs) this.#ahead = 0;
    if (othersMs > wallMs && wallMs + this.#ahead <= othersMs) this.#pass(wallMs, othersMs);
    if (wallMs + this.#ahead < this.#newestMs) this.#pass(wallMs, this.#newestMs);
    this.#newestMs = wallMs + this.#ahead;
    return wallMs;
  }

  /** What comes from now on is later than this stamp of another session. */
  follow(stamp: string | undefined): void {
    const ms = stamp === undefined ? Number.NaN : stampMs(stamp);
    if (!Number.isNaN(ms) && !(ms <= this.#othersMs)) this.#othersMs = ms;
  }

  #pass(wallMs: number, stampMs: number): void {
    this.#ahead = Math.ceil(Math.min(stampMs + 1, LATEST_MS) - wallMs);
  }

  /** A step back is made up for; a step forward makes up for earlier ones. */
  #compare(wallMs: number, monotonicMs: number): void {
    const stepMs = Math.round(wallMs - this.#wallMs - (monotonicMs - this.#monotonicMs));
    this.#wallMs = wallMs;
    this.#monotonicMs = monotonicMs;
    if (stepMs < -STEP_MS) this.#ahead -= stepMs;
    else if (stepMs > STEP_MS) this.#ahead = Math.max(0, this.#ahead - stepMs);
  }
}

/** The form that records have, and that sorts as text. */
const TIME = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/;

/** What lists are ordered by: as text, so that stamps and times of records compare. A time that is none comes before all others. */
export function stampOf(at: string, ahead: number): string {
  const ms = Date.parse(at) + ahead;
  if (ahead === 0 && !Number.isNaN(ms) && TIME.test(at)) return at;
  // Years of more digits begin with a sign that sorts behind all digits.
  return new Date(Number.isNaN(ms) ? 0 : Math.max(0, Math.min(ms, LATEST_MS))).toISOString().replace("+", "~");
}

/** How the stamp of the newest record stands to its time, after this record. */
export function aheadAfter(ahead: number, { ahead: said, summary }: JournalRecord): number {
  return said ?? (summary === undefined ? ahead : 0);
}

/** The same, from what `stampOf` made of it. */
export function aheadOf(stamp: string, at: string): number {
  const ms = stampMs(stamp) - Date.parse(at);
  return Number.isSafeInteger(ms) && ms > 0 ? ms : 0;
}

function stampMs(stamp: string): number {
  return Date.parse(stamp.replace("~", "+"));
}
