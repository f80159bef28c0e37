import type { Store, Summary } from "holdfast";

/** The sessions of all sub-agents that this one has begun, newest first. */
export async function* childrenIn(store: Store, parent: string): AsyncGenerator<Summary, void, undefined> {
  let after: string | undefined;
  do {
    const page = await store.list({ parent, empty: true, ...(after === undefined ? {} : { after }) });
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
