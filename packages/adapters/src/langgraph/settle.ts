import type { Captured, KnownItem } from "./capture.ts";
import type { StoredValue } from "./records.ts";

/** A captured value, with everything serialized. */
export type Settled =
  | { readonly value: StoredValue }
  | { readonly items: readonly SettledItem[] }
  | { readonly members: readonly (readonly [name: string, value: Settled])[] };

export interface SettledItem {
  readonly item: unknown;
  readonly content: Settled;
  /** Where it is stored already. */
  readonly known: KnownItem | null;
}

export async function settle(captured: Captured): Promise<Settled> {
  if ("leaf" in captured) return { value: await captured.leaf };
  if ("members" in captured) {
    return { members: await Promise.all(captured.members.map(async ([name, value]) => [name, await settle(value)])) };
  }
  const items: SettledItem[] = [];
  for (const { item, content, known } of captured.items) {
    if (!content) {
      items.push({ item, known, content: { value: known!.value } });
      continue;
    }
    const settled = await settle(content);
    // It is the same object, and has changed inside.
    const isSame = known !== null && "value" in settled && isEqual(settled.value, known.value);
    items.push(isSame ? { item, known, content: { value: known.value } } : { item, known: null, content: settled });
  }
  return { items };
}

export function isEqual(a: StoredValue, b: StoredValue): boolean {
  return a === b || JSON.stringify(a) === JSON.stringify(b);
}
