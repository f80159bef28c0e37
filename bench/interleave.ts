import type { Entry } from "./messages.ts";
import { quantile } from "./statistics.ts";

/** One of the things compared. A `sync` side is not awaited: an await would be a cost that it does not have. */
export type Side = { readonly sync: (entry: Entry) => void } | { readonly awaited: (entry: Entry) => Promise<unknown> };

/**
 * Runs both sides on every message, one after the other, and times each alone. Which goes first alternates: the second
 * one finds the message in the processor's cache. Returns the microseconds of each side.
 */
export async function interleave(
  sides: readonly [Side, Side],
  entries: readonly Entry[],
  from: number,
  count: number,
): Promise<[Float64Array, Float64Array]> {
  const times: [Float64Array, Float64Array] = [new Float64Array(count), new Float64Array(count)];
  for (let i = 0; i < count; i++) {
    const entry = entries[(from + i) % entries.length]!;
    for (let turn = 0; turn < 2; turn++) {
      const which = ((i + turn) & 1) as 0 | 1;
      const side = sides[which];
      const start = performance.now();
      if ("sync" in side) side.sync(entry);
      else await side.awaited(entry);
      times[which][i] = (performance.now() - start) * 1000;
    }
  }
  return times;
}

/** How the p50 of the first side stands to the p50 of the second, round by round. */
export async function compareP50(
  sides: readonly [Side, Side],
  entries: readonly Entry[],
  plan: { readonly rounds: number; readonly perRound: number; readonly warmUp: number },
): Promise<{ ratios: number[]; p50Us: [number[], number[]] }> {
  await interleave(sides, entries, 0, plan.warmUp);
  const ratios: number[] = [];
  const p50Us: [number[], number[]] = [[], []];
  for (let round = 0; round < plan.rounds; round++) {
    const [ours, theirs] = await interleave(sides, entries, plan.warmUp + round * plan.perRound, plan.perRound);
    p50Us[0].push(quantile(ours, 0.5));
    p50Us[1].push(quantile(theirs, 0.5));
    ratios.push(p50Us[0][round]! / p50Us[1][round]!);
  }
  return { ratios, p50Us };
}
