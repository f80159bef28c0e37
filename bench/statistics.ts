/** The value below which the share `q` of the values lies (nearest rank). */
export function quantile(values: ArrayLike<number>, q: number): number {
  if (values.length === 0) throw new Error("no values: nothing was measured");
  const sorted = Float64Array.from(values).sort();
  return sorted[Math.min(sorted.length - 1, Math.floor(q * sorted.length))]!;
}

/** The middle value; of an even number, the mean of the middle two. */
export function median(values: readonly number[]): number {
  if (values.length === 0) throw new Error("no values: nothing was measured");
  const sorted = [...values].sort((a, b) => a - b);
  const middle = sorted.length >> 1;
  return sorted.length % 2 === 1 ? sorted[middle]! : (sorted[middle - 1]! + sorted[middle]!) / 2;
}

/** Small, fast and the same everywhere: what is measured must not depend on the day (mulberry32). */
export function randomFrom(seed: number): () => number {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4294967296;
  };
}
