import { wellFormedText } from "../text/well-formed.ts";
import type { Entry } from "./dialect.ts";
import { type Shape, textOf, without } from "./shape.ts";

/**
 * The ids of OpenAI Responses items: an array may hold an item twice, and the API refuses a request with a repeated id.
 */

/** The id that is sent: two ids may differ only in halves of characters. Empty: it has none. */
export function idOf(item: object): string {
  return wellFormedText(textOf((item as Shape)["id"]));
}

export function withoutId<T extends object>(item: T): T {
  return "id" in item ? (without(item as Shape, "id") as T) : item;
}

/** Keeps the id only if it was not sent before. */
export function withIdOnce<T extends object>(item: T, sent: Set<string>): T {
  const id = idOf(item);
  if (id === "") return item;
  if (sent.has(id)) return withoutId(item);
  sent.add(id);
  return item;
}

/** The items whose id was sent before, or occurs earlier among them. */
export function repeatedIn(
  entries: readonly Entry<object>[],
  items: readonly number[],
  sent: ReadonlySet<string>,
): ReadonlySet<number> {
  const repeated = new Set<number>();
  const here = new Set<string>();
  for (const at of items) {
    const id = idOf(entries[at]!.message);
    if (id === "") continue;
    if (sent.has(id) || here.has(id)) repeated.add(at);
    here.add(id);
  }
  return repeated;
}
