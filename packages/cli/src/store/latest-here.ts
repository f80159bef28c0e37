import type { Reading, Store, Summary } from "holdfast";
import { defined } from "../defined.ts";
import { nullIfUnreadable } from "./usage.ts";

interface FolderAndApp {
  readonly cwd: string;
  readonly app: string;
}

const PAGE = 50;

/** The sessions of a folder, newest first. Those of sub-agents are reached through their parents. */
async function* sessionsHere(store: Store, { cwd, app }: FolderAndApp): AsyncGenerator<Summary, void, undefined> {
  let after: string | undefined;
  do {
    const page = await store.list({ cwd, app, limit: PAGE, ...defined({ after }) });
    for (const session of page.sessions) if (!session.parent && !session.unreadable) yield session;
    after = page.next;
  } while (after !== undefined);
}

/** The session of a folder that was written to last; null if there is none. */
export async function newestHere(store: Store, here: FolderAndApp): Promise<Summary | null> {
  for await (const session of sessionsHere(store, here)) return session;
  return null;
}

/**
 * The last session of a folder, if its turn did not complete or waits for a person, or prompts are queued; null
 * otherwise. Sessions that a process has open do not count: somebody is at work there. Opens nothing.
 */
export async function unfinishedHere<M>(
  store: Store,
  here: FolderAndApp,
): Promise<{ readonly session: Summary; readonly reading: Reading<M> } | null> {
  const finished: Summary[] = [];
  for await (const session of sessionsHere(store, here)) {
    if (session.status === "running") continue;
    if (session.status === "idle" && session.queued === 0) {
      finished.push(session);
      // Most people have no more than a few chats open in one folder.
      if (finished.length > OPEN_MAX) return null;
      continue;
    }
    const reading = await nullIfUnreadable(store.read<M>(session.id));
    if (reading === null || reading.holder !== null) continue;
    // A newer session that is finished, and that nobody has open, was the last one.
    for (const { id } of finished) if ((await nullIfUnreadable(store.read(id)))?.holder === null) return null;
    return { session, reading };
  }
  return null;
}

const OPEN_MAX = 8;
