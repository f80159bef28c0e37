import { type Cost, isHoldfastError, type Reading, type Store, type Usage } from "holdfast";
import { APP } from "./app.ts";
import { childrenIn } from "./children.ts";

/**
 * The note for usage outside a turn, such as a compaction on request. Names its session, because a fork copies its
 * source's notes.
 */
export const BETWEEN_TURNS = "usageBetweenTurns";

/** The session's own usage, without sub-agents. */
export function usageOf({ id, usage, attributes }: Pick<Reading<unknown>, "id" | "usage" | "attributes">): Usage {
  const note = attributes.notes[BETWEEN_TURNS] as { readonly session?: unknown; readonly usage?: Usage } | undefined;
  return note?.session === id && note.usage ? sumUsage([usage, note.usage]) : usage;
}

/**
 * What the sub-agents of this session used, including their own sub-agents, by session. It is added up on display and
 * recorded only in their own sessions, so a kill cannot make it count twice. Sessions in `known` are not read again.
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
    // Ignores a cycle, which only a foreign program could create.
    if (used.has(id) || line.includes(id)) continue;
    const child = await nullIfUnreadable(store.read(id));
    if (!child) continue;
    // Our own sub-agents have none: listing the children of hundreds of sessions would take longer than all the rest.
    const below = app === APP ? [] : (await usageBelow(store, id, new Map(), line)).values();
    used.set(id, sumUsage([usageOf(child), ...below]));
  }
  return used;
}

/** Null if the session is gone or unreadable, so that showing another one does not fail. */
export async function nullIfUnreadable<T>(reading: Promise<T>): Promise<T | null> {
  try {
    return await reading;
  } catch (error) {
    if (isHoldfastError(error)) return null;
    throw error;
  }
}

const COUNTS = ["inputTokens", "outputTokens", "cacheReadTokens", "cacheWriteTokens", "reasoningTokens"] as const;

/** Adds up usage; costs per currency. */
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
