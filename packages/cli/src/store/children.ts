import type { Store } from "holdfast";

/** By call: the sessions of all sub-agents that this one has begun. Where ids repeat, the newest. */
export async function childrenOf(store: Store, parent: string): Promise<Map<string, string>> {
  const children = new Map<string, string>();
  let after: string | undefined;
  do {
    const page = await store.list({ parent, empty: true, ...(after === undefined ? {} : { after }) });
    for (const { id, parent: link } of page.sessions) {
      if (link?.call !== undefined && !children.has(link.call)) children.set(link.call, id);
    }
    after = page.next;
  } while (after !== undefined);
  return children;
}
