import type { TimeScale, Viewport } from "./time-scale.ts";

export interface Tick {
  readonly at: number;
  readonly label: string;
}

const STEPS_MS = [
  ...[100, 200, 500, 1000, 2000, 5000, 10_000, 15_000, 30_000],
  ...[1, 2, 5, 10, 15, 30].map((minutes) => minutes * 60_000),
  ...[1, 2, 3, 6, 12].map((hours) => hours * 3_600_000),
  ...[1, 2, 7, 14, 28].map((days) => days * 86_400_000),
];

/** Times at round numbers, at most about `count` of them, none inside a fold. `offsetMs`: of local time from UTC. */
export function ticksFor(scale: TimeScale, view: Viewport, count: number, offsetMs: number): Tick[] {
  const wanted = (view.to - view.from) / Math.max(1, count);
  const step = STEPS_MS.find((one) => one >= wanted) ?? STEPS_MS.at(-1)!;
  const ticks: Tick[] = [];
  let before = Number.NEGATIVE_INFINITY;
  const edges = [view.from, ...scale.folds.flatMap(({ from, to }) => [from, to]), view.to];
  for (let at = 0; at < edges.length; at += 2) {
    const [from, to] = [Math.max(view.from, edges[at]!), Math.min(view.to, edges[at + 1]!)];
    const [fromMs, toMs] = [scale.timeAt(from) + offsetMs, scale.timeAt(to) + offsetMs];
    for (let ms = Math.ceil(fromMs / step) * step; ms <= toMs; ms += step) {
      const place = scale.at(ms - offsetMs);
      if (place - before < wanted * 0.6) continue;
      ticks.push({ at: place, label: clock(ms, step) });
      before = place;
    }
  }
  return ticks;
}

/** `localMs` is already moved to local time. */
function clock(localMs: number, step: number): string {
  const iso = new Date(localMs).toISOString();
  if (step >= 86_400_000) return iso.slice(5, 10);
  if (step >= 60_000) return iso.slice(11, 16);
  return step >= 1000 ? iso.slice(11, 19) : iso.slice(11, 21);
}
