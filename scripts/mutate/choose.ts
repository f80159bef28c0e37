import { createHash } from "node:crypto";
import type { Mutant } from "./mutant.ts";
import { OPERATORS, type Operator } from "./operators.ts";

/** Numbers from 0 to below 1 that depend on the seed and the purpose only (mulberry32). */
export function randomOf(seed: number, purpose: string): () => number {
  let state = createHash("sha256").update(`${seed} ${purpose}`).digest().readUInt32LE();
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
}

/** Draws mutants without putting them back: first an operator by its weight, then one of its mutants. */
export function choose(mutants: readonly Mutant[], count: number, random: () => number): Mutant[] {
  const byOperator = Map.groupBy(mutants, ({ operator }) => operator);
  const chosen: Mutant[] = [];
  while (chosen.length < count && byOperator.size > 0) {
    const operator = drawOperator([...byOperator.keys()], random);
    const left = byOperator.get(operator)!;
    chosen.push(...left.splice(Math.floor(random() * left.length), 1));
    if (left.length === 0) byOperator.delete(operator);
  }
  return chosen;
}

/** Draws from the lowest rank first, and from the next one when that is used up. */
export function chooseByRank(
  mutants: readonly Mutant[],
  rankOf: (mutant: Mutant) => number,
  count: number,
  random: () => number,
): Mutant[] {
  const byRank = [...Map.groupBy(mutants, rankOf)].sort(([a], [b]) => a - b);
  const chosen: Mutant[] = [];
  for (const [, group] of byRank) chosen.push(...choose(group, count - chosen.length, random));
  return chosen;
}

function drawOperator(operators: readonly Operator[], random: () => number): Operator {
  const total = operators.reduce((sum, operator) => sum + OPERATORS[operator].weight, 0);
  let point = random() * total;
  for (const operator of operators) {
    point -= OPERATORS[operator].weight;
    if (point < 0) return operator;
  }
  return operators.at(-1)!;
}
