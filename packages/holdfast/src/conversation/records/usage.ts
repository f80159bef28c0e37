export interface Cost {
  readonly amount: number;
  readonly currency: string;
}

export interface Usage {
  readonly inputTokens?: number;
  readonly outputTokens?: number;
  readonly cacheReadTokens?: number;
  readonly cacheWriteTokens?: number;
  readonly reasoningTokens?: number;
  readonly cost?: Cost;
  /** In a total: costs in currencies other than that of `cost`. */
  readonly otherCosts?: readonly Cost[];
}

const COUNTS = ["inputTokens", "outputTokens", "cacheReadTokens", "cacheWriteTokens", "reasoningTokens"] as const;

/** Adds both. Costs add up per currency. */
export function addUsage(a: Usage, b: Usage): Usage {
  const sum: { -readonly [K in keyof Usage]: Usage[K] } = {};
  for (const name of COUNTS) {
    if (a[name] !== undefined || b[name] !== undefined) sum[name] = (a[name] ?? 0) + (b[name] ?? 0);
  }
  const costs = new Map<string, number>();
  for (const { amount, currency } of [...costsOf(a), ...costsOf(b)]) {
    costs.set(currency, (costs.get(currency) ?? 0) + amount);
  }
  const [cost, ...otherCosts] = [...costs].map(([currency, amount]) => ({ amount, currency }));
  if (cost) sum.cost = cost;
  if (otherCosts.length > 0) sum.otherCosts = otherCosts;
  return sum;
}

function costsOf({ cost, otherCosts = [] }: Usage): readonly Cost[] {
  return cost ? [cost, ...otherCosts] : otherCosts;
}
