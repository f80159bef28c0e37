import type { Stretch } from "./time-scale.ts";

/**
 * Which row each span is drawn in, so that spans that overlap in time are in different rows. Those that do not fit into
 * `lanesMax` rows share the last one. `spans` are sorted by their start.
 */
export function packLanes(spans: readonly Stretch[], lanesMax: number): { lanes: number[]; count: number } {
  const busyUntil: number[] = [];
  const lanes = spans.map(({ startMs, endMs }) => {
    let lane = busyUntil.findIndex((until) => until <= startMs);
    if (lane < 0) lane = Math.min(busyUntil.length, lanesMax - 1);
    busyUntil[lane] = Math.max(busyUntil[lane] ?? 0, endMs);
    return lane;
  });
  return { lanes, count: Math.max(1, busyUntil.length) };
}
