import type { JournalRecord, Usage } from "holdfast";

const COUNTS = ["inputTokens", "outputTokens", "cacheReadTokens", "cacheWriteTokens", "reasoningTokens"] as const;
type Sum = { -readonly [K in keyof Usage]: Usage[K] };

/** Adds up the usage records of a session by turn, model and day. */
export class UsageFold {
  readonly #turns = new Map<number, { at: string; usage: Usage }>();
  readonly #models = new Map<string, Usage>();
  readonly #days = new Map<string, Usage>();
  #total: Usage = {};
  #model = "";

  add(record: JournalRecord): void {
    const { kind, at } = record;
    if (kind === "message" && typeof record["model"] === "string") this.#model = record["model"];
    if (kind !== "usage" || typeof record["usage"] !== "object" || record["usage"] === null) return;
    const usage = record["usage"] as Usage;
    const turn = typeof record["turn"] === "number" ? record["turn"] : 0;
    const known = this.#turns.get(turn);
    this.#turns.set(turn, { at: known?.at ?? at, usage: addUsage(known?.usage ?? {}, usage) });
    this.#models.set(this.#model, addUsage(this.#models.get(this.#model) ?? {}, usage));
    const day = at.slice(0, 10);
    this.#days.set(day, addUsage(this.#days.get(day) ?? {}, usage));
    this.#total = addUsage(this.#total, usage);
  }

  report() {
    return {
      total: this.#total,
      turns: [...this.#turns].map(([turn, one]) => ({ turn, ...one })),
      models: [...this.#models].map(([model, usage]) => ({ model, usage })),
      days: [...this.#days].map(([day, usage]) => ({ day, usage })),
    };
  }
}

/** Costs add up per currency. A journal may hold anything in place of a number. */
export function addUsage(a: Usage, b: Usage): Usage {
  const sum: Sum = {};
  for (const name of COUNTS) {
    const [one, other] = [countOf(a[name]), countOf(b[name])];
    if (one !== undefined || other !== undefined) sum[name] = (one ?? 0) + (other ?? 0);
  }
  const costs = new Map<string, number>();
  for (const { cost, otherCosts } of [a, b])
    for (const paid of [cost, ...(Array.isArray(otherCosts) ? otherCosts : [])])
      if (typeof paid?.amount === "number" && typeof paid.currency === "string")
        costs.set(paid.currency, (costs.get(paid.currency) ?? 0) + paid.amount);
  const [first, ...others] = [...costs].map(([currency, amount]) => ({ currency, amount }));
  if (first) sum.cost = first;
  if (others.length > 0) sum.otherCosts = others;
  return sum;
}

function countOf(value: unknown): number | undefined {
  return typeof value === "number" && Number.isFinite(value) ? value : undefined;
}
