import type { Item } from "../contract/item.ts";
import type { Hosting } from "./hosting.ts";

/** The items of a session that this server does not have open. */
export interface RecentItems {
  readonly items: readonly Item[];
  readonly cursor: string | null;
}

/** How many sessions are kept: a page that scrolls through one asks for a range of it many times a second. */
const KEPT_MAX = 4;

const kept = new WeakMap<Hosting, Map<string, RecentItems>>();

/**
 * The items of a session, read again only if its journal has grown since the last time: reading a conversation of
 * 100,000 messages takes seconds.
 */
export async function readRecent(hosting: Hosting, id: string): Promise<RecentItems> {
  const recent = kept.get(hosting) ?? new Map<string, RecentItems>();
  kept.set(hosting, recent);
  const { hub, release } = await hosting.followed(id);
  const { cursor } = hub;
  release();
  const known = recent.get(id);
  recent.delete(id);
  const found = known?.cursor === cursor ? known : await read(hosting, id);
  recent.set(id, found);
  for (const oldest of recent.keys()) {
    if (recent.size <= KEPT_MAX) break;
    recent.delete(oldest);
  }
  return found;
}

async function read({ host }: Hosting, id: string): Promise<RecentItems> {
  const reading = await host.sessions.read(id);
  return { items: host.items(reading), cursor: reading.cursor ?? null };
}
