/** The moment to kill at. */
export type KillMoment =
  /** While the model's words stream in. */
  | { readonly at: "text" }
  /** While a command runs. */
  | { readonly at: "tools" }
  /** In the compaction: while the model sums up, or as the file of the new epoch appears. */
  | { readonly at: "compaction"; readonly part: "summary" | "switch"; readonly thenDeltas: number }
  /** While two sub-agents work. */
  | { readonly at: "sub-agents"; readonly thenDeltas: number }
  /** After so many events, and a while. */
  | { readonly at: "random"; readonly events: number; readonly thenDeltas: number };

/**
 * The named moments first, in the order in which the task comes to them; the other kills at random instants between and
 * behind them. The same for the same seed. Pure.
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
    // Not before the command has run: the named moments must not be missed.
    plan.splice(2 + below(plan.length - 1), 0, aim);
  }
  return plan;
}

/** A source of chance that a seed repeats (mulberry32): a whole number below the one that is given. */
export function chance(seed: number): (below: number) => number {
  let state = seed >>> 0;
  return (below) => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) % below;
  };
}
