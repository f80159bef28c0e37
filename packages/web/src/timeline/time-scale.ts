/** A stretch of time, in milliseconds. */
export interface Stretch {
  readonly startMs: number;
  readonly endMs: number;
}

/** A stretch in which nothing happened, drawn shorter than it was. */
export interface Fold extends Stretch {
  /** Where it begins and ends on the folded axis. */
  readonly from: number;
  readonly to: number;
}

/**
 * Time on an axis from which long idle stretches are folded out. A position on the axis is in milliseconds too, so
 * that lengths within a stretch of work stay true to scale.
 */
export interface TimeScale {
  readonly startMs: number;
  readonly endMs: number;
  /** The length of the axis. */
  readonly length: number;
  readonly folds: readonly Fold[];
  /** The position of an instant. */
  at(ms: number): number;
  /** The instant at a position. */
  timeAt(position: number): number;
}

/** An idle stretch shorter than this is drawn as it is. */
const IDLE_MS = 20_000;
/** How much of the axis the folds may take together, and one of them at most. */
const FOLDS_SHARE = 0.25;
const FOLD_SHARE = 0.035;

/** `spans`: when something happened, in any order. */
export function makeTimeScale(spans: readonly Stretch[], startMs: number, endMs: number): TimeScale {
  const gaps = idleStretches(spans, startMs, endMs);
  const work = endMs - startMs - gaps.reduce((sum, gap) => sum + (gap.endMs - gap.startMs), 0);
  const long = gaps.filter((gap) => gap.endMs - gap.startMs > Math.max(IDLE_MS, work * FOLD_SHARE));
  const kept = endMs - startMs - long.reduce((sum, gap) => sum + (gap.endMs - gap.startMs), 0);
  const width = Math.max(kept, 1000) * Math.min(FOLD_SHARE, FOLDS_SHARE / long.length);
  const folds: Fold[] = [];
  let folded = 0;
  for (const gap of long) {
    const from = gap.startMs - startMs - folded;
    folds.push({ ...gap, from, to: from + width });
    folded += gap.endMs - gap.startMs - width;
  }
  const length = Math.max(1, endMs - startMs - folded);
  const at = (ms: number): number => {
    const fold = folds[lastIndex(folds, (one) => one.startMs <= ms)];
    if (!fold) return ms - startMs;
    if (ms >= fold.endMs) return fold.to + (ms - fold.endMs);
    return fold.from + ((ms - fold.startMs) / (fold.endMs - fold.startMs)) * (fold.to - fold.from);
  };
  const timeAt = (position: number): number => {
    const fold = folds[lastIndex(folds, (one) => one.from <= position)];
    if (!fold) return startMs + position;
    if (position >= fold.to) return fold.endMs + (position - fold.to);
    return fold.startMs + ((position - fold.from) / (fold.to - fold.from)) * (fold.endMs - fold.startMs);
  };
  return { startMs, endMs, length, folds, at, timeAt };
}

/** What no span covers, between the first instant and the last. */
function idleStretches(spans: readonly Stretch[], startMs: number, endMs: number): Stretch[] {
  const sorted = spans.toSorted((a, b) => a.startMs - b.startMs);
  const gaps: Stretch[] = [];
  let busyUntil = startMs;
  for (const span of sorted) {
    if (span.startMs > busyUntil) gaps.push({ startMs: busyUntil, endMs: Math.min(span.startMs, endMs) });
    busyUntil = Math.max(busyUntil, span.endMs);
  }
  if (busyUntil < endMs) gaps.push({ startMs: busyUntil, endMs });
  return gaps;
}

/** The last index whose element passes; -1 if none does. All that pass come before those that do not. */
export function lastIndex<T>(sorted: readonly T[], passes: (one: T) => boolean): number {
  let [low, high] = [0, sorted.length];
  while (low < high) {
    const middle = (low + high) >> 1;
    if (passes(sorted[middle]!)) low = middle + 1;
    else high = middle;
  }
  return low - 1;
}

/** What part of the axis is visible. */
export interface Viewport {
  readonly from: number;
  readonly to: number;
}

/** The least that can be zoomed to: a hundredth of a second over the whole width. */
const VISIBLE_MIN = 10;

/** Zooms by a factor (below 1: closer) around a position, without leaving the axis. */
export function zoom({ from, to }: Viewport, factor: number, around: number, length: number): Viewport {
  const width = Math.min(length, Math.max(Math.min(VISIBLE_MIN, length), (to - from) * factor));
  const share = to > from ? (around - from) / (to - from) : 0.5;
  return clamp({ from: around - share * width, to: around - share * width + width }, length);
}

export function pan({ from, to }: Viewport, by: number, length: number): Viewport {
  return clamp({ from: from + by, to: to + by }, length);
}

/** Moves the viewport, as little as possible, so that it shows a stretch of the axis. */
export function reveal(view: Viewport, from: number, to: number, length: number): Viewport {
  const width = view.to - view.from;
  if (from >= view.from && to <= view.to) return view;
  if (to - from >= width) return clamp({ from, to: from + width }, length);
  const middle = (from + to) / 2;
  return clamp({ from: middle - width / 2, to: middle + width / 2 }, length);
}

function clamp({ from, to }: Viewport, length: number): Viewport {
  const width = Math.min(to - from, length);
  const start = Math.min(Math.max(0, from), length - width);
  return { from: start, to: start + width };
}
