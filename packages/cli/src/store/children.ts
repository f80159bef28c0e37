import type { Store, Summary } from "holdfast";
import { defined } from "../defined.ts";

/** The sessions of all sub-agents that this one has begun, newest first. */
export async function* childrenIn(store: Store, parent: string): AsyncGenerator<Summary, void, undefined> {
  let after: string | undefined;
  do {
    const page = await store.list({ parent, empty: true, ...defined({ after }) });
    yield* page.sessions;
    after = page.next;
  } while (after !== undefined);
}

/** The same by call. Where ids repeat, the newest. */
export async function childrenOf(store: Store, parent: string): Promise<Map<string, string>> {
  const children = new Map<string, string>();
  for await (const { id, parent: link } of childrenIn(store, parent)) {
    if (link?.call !== undefined && !children.has(link.call)) children.set(link.call, id);
  }
  return children;
}

/** The sessions of its sub-agents, and of theirs: those that nobody looks for without it. */
export async function familyOf(store: Store, id: string): Promise<string[]> {
  const family = new Set<string>([id]);
  // It grows while it is gone through. A link back, which only a foreign program could make, is met once.
  for (const one of family) for await (const child of childrenIn(store, one)) family.add(child.id);
  family.delete(id);
  return [...family];
}

/** Each with its family behind it, none twice. */
export async function withFamilies(store: Store, ids: readonly string[]): Promise<string[]> {
  const all = new Set<string>();
  for (const id of ids) for (const one of [id, ...(await familyOf(store, id))]) all.add(one);
  return [...all];
}
