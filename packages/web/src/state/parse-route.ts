export type Tab = "conversation" | "files" | "usage" | "tree" | "compare";

export interface Route {
  /** The session that is shown; null for the list alone. */
  readonly session: string | null;
  readonly tab: Tab;
  /** The item to go to. */
  readonly item: string | null;
  /** The last record of a conversation that was replaced; null for the current one. */
  readonly until: number | null;
}

const TABS: readonly Tab[] = ["conversation", "files", "usage", "tree", "compare"];

/** Which views are offered. A read-only link is for one session: it opens neither sub-agents nor a fork's source. */
export function isOffered(
  tab: Tab,
  { isOwner, isFork }: { readonly isOwner: boolean; readonly isFork: boolean },
): boolean {
  if (tab === "tree") return isOwner;
  return tab !== "compare" || (isOwner && isFork);
}

const UNTIL = /^until-([1-9]\d{0,14})$/;

/**
 * `#/`, `#/<session>`, `#/<session>/files`, `#/<session>/conversation/<item>`, `#/<session>/until-<seq>/<item>`.
 * Anything else is the list.
 */
export function parseRoute(hash: string): Route {
  const [session, tab = "", item] = hash.replace(/^#\/?/, "").split("/").map(decode);
  if (!session || !/^[0-9a-f-]{36}$/.test(session))
    return { session: null, tab: "conversation", item: null, until: null };
  const [, until] = UNTIL.exec(tab) ?? [];
  return {
    session,
    tab: TABS.find((one) => one === tab) ?? "conversation",
    item: item || null,
    until: until === undefined ? null : Number(until),
  };
}

export function hashOf({ session, tab = "conversation", item, until = null }: Partial<Route>): string {
  if (!session) return "#/";
  const view = until === null ? tab : `until-${until}`;
  const parts = [session, ...(item ? [view, item] : view === "conversation" ? [] : [view])];
  return `#/${parts.map(encodeURIComponent).join("/")}`;
}

function decode(part: string): string {
  try {
    return decodeURIComponent(part);
  } catch {
    // An address that somebody typed.
    return "";
  }
}
