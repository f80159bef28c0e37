import { isHoldfastError, type Reading } from "holdfast";
import type { Holder } from "holdfast/store";
import type { Chat, ChatState } from "../contract/host.ts";
import type { CallItem, Item } from "../contract/item.ts";
import type { ServedHost } from "../contract/served-host.ts";
import { sessionStateOf } from "../contract/session-state.ts";
import type { TreeNode } from "../schemas/transcript.ts";

/** A session that may be open in this server (`chat`), as `GET /sessions/:id` shows it. */
export async function describeSession(
  host: ServedHost,
  { reading, cursor }: { readonly reading: Reading<unknown>; readonly cursor: string | null },
  chat: Chat | null,
) {
  const { id, attributes, recovery } = reading;
  // Its type by name: the declaration file cannot refer to one that `holdfast` does not export.
  const holder: Holder | null = reading.holder;
  const { title, cwd, app, dialect, labels, parent, forkedFrom } = attributes;
  const shown = chat?.state ?? null;
  const account = shown ? shown.account : await host.account(reading);
  return {
    id,
    title: shown?.title ?? title,
    ...(cwd === undefined ? {} : { cwd }),
    ...(app === undefined ? {} : { app }),
    dialect,
    labels,
    ...(parent ? { parent } : {}),
    ...(forkedFrom ? { forkedFrom } : {}),
    status: shown ? sessionStateOf(shown) : reading.state,
    cursor,
    count: shown ? shown.items.length : itemsIn(host, reading).length,
    here: chat !== null,
    holder,
    account,
    state: shown && stateShown(shown),
    interruption: shown ? shown.interruption : host.interruption(reading, account),
    queue: shown ? shown.queue : host.queue(reading),
    usage: reading.usage,
    damage: shown ? shown.damage : host.damageWords(recovery),
    finishAfterRestart: host.finishesAfterRestart(id),
  };
}

/** A page that scrolls through a session asks for a range of it many times a second. */
const known = new WeakMap<ServedHost, WeakMap<object, readonly Item[]>>();

/** A session as people read it, made once for each view of a session that nobody changes. */
export function itemsIn(host: ServedHost, reading: Reading<unknown>): readonly Item[] {
  const ofHost = known.get(host) ?? new WeakMap<object, readonly Item[]>();
  known.set(host, ofHost);
  const items = ofHost.get(reading) ?? host.items(reading);
  // The view of an open session changes, and has no cursor.
  if (reading.cursor !== undefined) ofHost.set(reading, items);
  return items;
}

export function stateShown({ items, ...rest }: ChatState): Omit<ChatState, "items"> & { readonly count: number } {
  return { ...rest, count: items.length };
}

/** The files that the calls of a conversation change. */
export function changesIn(host: ServedHost, items: readonly Item[]) {
  const files = new Map<string, object[]>();
  for (const item of items) {
    if (item.kind !== "call") continue;
    const change = host.changeOf(item as CallItem);
    if (!change) continue;
    const { id, call, at, turn, state } = item;
    const known = files.get(change.path) ?? [];
    known.push({ item: id, call, at, turn, state, rows: change.rows });
    files.set(change.path, known);
  }
  return { files: [...files].map(([path, changes]) => ({ path, changes })) };
}

const TREE_SESSIONS_MAX = 1000;

/** The sub-agents below a session. */
export async function treeOf(host: ServedHost, id: string, title: string, status: string): Promise<TreeNode> {
  const root: TreeNode = { session: id, title, status, children: [] };
  const seen = new Set([id]);
  const waiting = [root];
  for (let node = waiting.shift(); node && seen.size < TREE_SESSIONS_MAX; node = waiting.shift()) {
    let after: string | undefined;
    do {
      const page = await host.list({ parent: node.session, empty: true, ...(after === undefined ? {} : { after }) });
      for (const child of page.sessions) {
        // A cycle, which only a foreign program could create.
        if (seen.has(child.id)) continue;
        seen.add(child.id);
        const below: TreeNode = {
          session: child.id,
          title: child.title,
          status: child.status,
          ...(child.parent?.call === undefined ? {} : { call: child.parent.call }),
          children: [],
        };
        node.children.unshift(below);
        waiting.push(below);
      }
      after = page.next;
    } while (after !== undefined && seen.size < TREE_SESSIONS_MAX);
  }
  return root;
}

export async function nullIfUnreadable<T>(reading: Promise<T>): Promise<T | null> {
  try {
    return await reading;
  } catch (error) {
    if (isHoldfastError(error)) return null;
    throw error;
  }
}
