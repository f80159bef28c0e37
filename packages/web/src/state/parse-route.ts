export type Tab = "conversation" | "files" | "usage" | "tree" | "compare";

export interface Route {
  /** The session that is shown; null for the list alone. */
  readonly session: string | null;
  readonly tab: Tab;
  /** The item to go to. */
  readonly item: string | null;
}

const TABS: readonly Tab[] = ["conversation", "files", "usage", "tree", "compare"];

/** `#/`, `#/<session>`, `#/<session>/files`, `#/<session>/conversation/<item>`. Anything else is the list. */
export function parseRoute(hash: string): Route {
  const [session, tab, item] = hash.replace(/^#\/?/, "").split("/").map(decode);
  if (!session || !/^[0-9a-f-]{36}$/.test(session)) return { session: null, tab: "conversation", item: null };
  return { session, tab: TABS.find((one) => one === tab) ?? "conversation", item: item || null };
}

export function hashOf({ session, tab, item }: Partial<Route>): string {
  if (!session) return "#/";
  const parts = [session, ...(item ? [tab ?? "conversation", item] : tab && tab !== "conversation" ? [tab] : [])];
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
