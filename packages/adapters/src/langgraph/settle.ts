import type { CapturedValue, KnownItem } from "./capture.ts";
import type { StoredValue } from "./records.ts";

/** A captured value, with everything serialized. */
export type SerializedValue =
  | { readonly value: StoredValue }
  | { readonly items: readonly SerializedItem[] }
  | { readonly members: readonly (readonly [name: string, value: SerializedValue])[] };

export interface SerializedItem {
  readonly item: unknown;
  readonly content: SerializedValue;
  /** Where it is stored already. */
  readonly known: KnownItem | null;
}

export async function settle(captured: CapturedValue): Promise<SerializedValue> {
  if ("leaf" in captured) return { value: await captured.leaf };
  if ("members" in captured) {
    return { members: await Promise.all(captured.members.map(async ([name, value]) => [name, await settle(value)])) };
  }
  const items: SerializedItem[] = [];
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
