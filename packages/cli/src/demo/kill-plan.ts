/** When to kill the agent. */
export type KillMoment =
  /** While the answer streams. */
  | { readonly at: "text" }
  /** While a command runs. */
  | { readonly at: "tools" }
  /** During a compaction: while the model writes the summary, or as the new epoch's file appears. */
  | { readonly at: "compaction"; readonly part: "summary" | "switch"; readonly thenDeltas: number }
  /** While two sub-agents work. */
  | { readonly at: "sub-agents"; readonly thenDeltas: number }
  /** After this many events, and a delay. */
  | { readonly at: "random"; readonly events: number; readonly thenDeltas: number };

/**
 * The named moments first, in the order in which the task reaches them; the other kills at random moments between and
 * after them. The same seed gives the same plan. Pure.
 */
export function planKills(kills: number, seed: number): KillMoment[] {
  const below = chance(seed);
  const named: KillMoment[] = [
    { at: "text" },
    { at: "tools" },
    { at: "compaction", part: below(2) === 0 ? "summary" : "switch", thenDeltas: 2 + below(20) },
    { at: "sub-agents", thenDeltas: 4 + below(16) },
  ];
  const plan = named.slice(0, kills);
  for (let left = kills - plan.length; left > 0; left--) {
    const aim: KillMoment = { at: "random", events: 2 + below(34), thenDeltas: below(3) };
    // Never before the first two named moments, which must not be missed.
    plan.splice(2 + below(plan.length - 1), 0, aim);
  }
  return plan;
}

/** A seeded random generator (mulberry32): returns a whole number below its argument. */
export function chance(seed: number): (below: number) => number {
  let state = seed >>> 0;
  return (below) => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) % below;
  };
}
