import { type Cost, isHoldfastError, type Reading, type Store, type Usage } from "holdfast";
import { APP } from "./app.ts";
import { childrenIn } from "./children.ts";

/**
 * The note in which the agent keeps what it used while no turn was open: for a summary that a person asked for. With
 * the session, since a fork has the notes of its source.
 */
export const BETWEEN_TURNS = "usageBetweenTurns";

/** All that a session itself used. */
export function usageOf({ id, usage, attributes }: Pick<Reading<unknown>, "id" | "usage" | "attributes">): Usage {
  const note = attributes.notes[BETWEEN_TURNS] as { readonly session?: unknown; readonly usage?: Usage } | undefined;
  return note?.session === id && note.usage ? sumUsage([usage, note.usage]) : usage;
}

/**
 * By session: what the sub-agents of this one have used, with those below them. It is added up when it is shown, and
 * recorded nowhere else than in their own sessions: so a kill between the two can count nothing twice. `known` need not
 * be
 * read again.
 */
export async function usageBelow(
  store: Store,
  parent: string,
  known: ReadonlyMap<string, Usage> = new Map(),
  above: readonly string[] = [],
): Promise<Map<string, Usage>> {
  const used = new Map(known);
  const line = [...above, parent];
  for await (const { id, app } of childrenIn(store, parent)) {
    // A link back, which only a foreign program could make, leads nowhere.
    if (used.has(id) || line.includes(id)) continue;
    const child = await nullIfUnreadable(store.read(id));
    if (!child) continue;
    // Our own hand nothing on: a list for each of hundreds, to find nobody, would take longer than all the rest.
    const below = app === APP ? [] : (await usageBelow(store, id, new Map(), line)).values();
    used.set(id, sumUsage([usageOf(child), ...below]));
  }
  return used;
}

/** Null if the session is gone by now, or cannot be read: what is shown of another one does not fail by it. */
export async function nullIfUnreadable<T>(reading: Promise<T>): Promise<T | null> {
  try {
    return await reading;
  } catch (error) {
    if (isHoldfastError(error)) return null;
    throw error;
  }
}

const COUNTS = ["inputTokens", "outputTokens", "cacheReadTokens", "cacheWriteTokens", "reasoningTokens"] as const;

/** What is known of several, added up; costs within a currency. */
export function sumUsage(usages: readonly Usage[]): Usage {
  const sum: { -readonly [K in keyof Usage]: Usage[K] } = {};
  const costs = new Map<string, number>();
  for (const { cost, otherCosts = [], ...counts } of usages) {
    for (const name of COUNTS) if (counts[name] !== undefined) sum[name] = (sum[name] ?? 0) + counts[name];
    const paid: Cost[] = [...(cost ? [cost] : []), ...otherCosts];
    for (const { amount, currency } of paid) costs.set(currency, (costs.get(currency) ?? 0) + amount);
  }
  const [first, ...others] = [...costs].map(([currency, amount]) => ({ currency, amount }));
  return { ...sum, ...(first ? { cost: first } : {}), ...(others.length > 0 ? { otherCosts: others } : {}) };
}
