import type { Store, Summary } from "holdfast";
import { defined } from "../defined.ts";

/** The sessions of all sub-agents that this one started, newest first. */
export async function* childrenIn(store: Store, parent: string): AsyncGenerator<Summary, void, undefined> {
  let after: string | undefined;
  do {
    const page = await store.list({ parent, empty: true, ...defined({ after }) });
    yield* page.sessions;
    after = page.next;
  } while (after !== undefined);
}

/** The same by call; the newest one where ids repeat. */
export async function childrenOf(store: Store, parent: string): Promise<Map<string, string>> {
  const children = new Map<string, string>();
  for await (const { id, parent: link } of childrenIn(store, parent)) {
    if (link?.call !== undefined && !children.has(link.call)) children.set(link.call, id);
  }
  return children;
}

/** The sessions of its sub-agents, and of theirs: nobody looks for them without it. */
export async function familyOf(store: Store, id: string): Promise<string[]> {
  const family = new Set<string>([id]);
  // The set grows during the loop. A cycle, which only a foreign program could create, is visited once.
  for (const one of family) for await (const child of childrenIn(store, one)) family.add(child.id);
  family.delete(id);
  return [...family];
}

/** Each session followed by its family, without duplicates. */
export async function withFamilies(store: Store, ids: readonly string[]): Promise<string[]> {
  const all = new Set<string>();
  for (const id of ids) for (const one of [id, ...(await familyOf(store, id))]) all.add(one);
  return [...all];
}
