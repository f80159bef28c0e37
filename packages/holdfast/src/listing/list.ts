import { defined } from "../defined.ts";
import { isHoldfastError } from "../errors.ts";
import type { JournalStore, Listed, ListOptions } from "../journal/contract.ts";
import { checkQuery, type ListQuery, type Summary, type Wanted } from "./query.ts";
import { rowOf, type SessionRow } from "./row.ts";

/** A store's list may look at every session for each page: where few rows fit, pages grow. */
const PAGE_GROWTH = 4;
const PAGE_MIN = 64;

export interface Page {
  readonly sessions: Summary[];
  readonly next?: string;
}

/**
 * One page of sessions, newest first, out of the store's rows: no transcript is read (P7). `next` is a place in the order, so that pages stay right while sessions are written; it may turn
 * out that nothing follows. `realPath` is that of the disk. Throws QUERY_INVALID, CURSOR_STALE, and what the store says.
 */
export async function listSessions(
  store: JournalStore,
  query: ListQuery,
  realPath: (path: string) => string,
): Promise<Page> {
  const wanted = checkQuery(query, realPath);
  const sessions: Summary[] = [];
  let after = query.after;
  let size = wanted.limit;
  for (;;) {
    const page = await store.list(pageOptions(wanted, size, after));
    const found = await choose(store, page.sessions, wanted, wanted.limit - sessions.length);
    if (found.seen < page.sessions.length && !found.isOver) {
      // More than fits. Only the store makes cursors, and only for the end of a page: so this one is to end here.
      size = found.seen;
      continue;
    }
    sessions.push(...found.chosen);
    if (found.isOver || page.next === undefined) return { sessions };
    if (sessions.length === wanted.limit) return { sessions, next: page.next };
    after = page.next;
    size = Math.max(wanted.limit - sessions.length, size * PAGE_GROWTH, PAGE_MIN);
  }
}

/**
 * The ids of the sessions that a user may want to go on with, for `resumeLatest`: first those whose last turn did not complete, or waits for a person, then the others, each newest first. All have something in them, work for no
 * other session, and are not in use as far as a list can tell. Whoever opens one may still find it busy, and goes on to the next.
 */
export async function* latest(
  store: JournalStore,
  query: { readonly cwd?: string; readonly app?: string },
  realPath: (path: string) => string,
): AsyncGenerator<string, void, undefined> {
  const { cwd, app } = { ...query };
  const { where, hints } = checkQuery({ ...defined({ cwd, app }) }, realPath);
  const mine = { ...where, parentSession: null };
  // A turn that was left in the middle is not to be overlooked because another session was finished after it.
  const unfinished = { ...hints, noneOf: { ...hints.noneOf, state: ["idle"] } };
  yield* free(store, { where: mine, hints: unfinished }, ({ state }) => state !== "idle");
  yield* free(store, { where: mine, hints }, ({ state }) => state === "idle");
}

async function* free(
  store: JournalStore,
  wanted: Pick<Wanted, "where" | "hints">,
  fits: (row: SessionRow) => boolean,
): AsyncGenerator<string, void, undefined> {
  let after: string | undefined;
  let size = PAGE_MIN;
  do {
    const page = await store.list(pageOptions(wanted, size, after));
    for (const listed of page.sessions) {
      const row = rowOf(listed.summary);
      if (isEmpty(row) || !fits(row)) continue;
      // The last record of one that is not in use is `closed`, or its writer died (S14).
      if (!listed.closed && !listed.unreadable && (await isHeld(store, listed).catch(isUntold))) continue;
      yield listed.id;
    }
    after = page.next;
    size *= PAGE_GROWTH;
  } while (after !== undefined);
}

function pageOptions(
  { where, hints }: Pick<Wanted, "where" | "hints">,
  limit: number,
  after: string | undefined,
): ListOptions {
  return after === undefined ? { where, hints, limit } : { where, hints, limit, after };
}

/** The rows that fit, up to a number of them; how many were looked at for that; and whether all later ones are too old. */
async function choose(
  store: JournalStore,
  rows: readonly Listed[],
  wanted: Wanted,
  limit: number,
): Promise<{ readonly chosen: Summary[]; readonly seen: number; readonly isOver: boolean }> {
  const chosen: Summary[] = [];
  let seen = 0;
  for (const listed of rows) {
    if (chosen.length === limit) break;
    // No session is written after its place in the order: behind this one all are too old.
    if ((listed.stamp ?? listed.at) < wanted.since) return { chosen, seen, isOver: true };
    seen++;
    const summary = await summaryFor(store, listed, wanted);
    if (summary) chosen.push(summary);
  }
  return { chosen, seen, isOver: false };
}

/** Null if it is not wanted. */
async function summaryFor(store: JournalStore, listed: Listed, wanted: Wanted): Promise<Summary | null> {
  const row = rowOf(listed.summary);
  if (listed.unreadable) return fitsUnread(listed, wanted) ? summaryOf(listed, row, endedStatus(row)) : null;
  if (wanted.unreadable || !fits(listed, row, wanted)) return null;
  try {
    const status = await statusOf(store, listed, row);
    return wanted.status === undefined || wanted.status === status ? summaryOf(listed, row, status) : null;
  } catch (error) {
    // Whether somebody writes to it cannot be told: its lease is another user's. It is no reason to list nothing.
    if (!isHoldfastError(error, "STORE_FORBIDDEN", "STORE_IO", "PATH_UNSAFE")) throw error;
    const { code, message } = error;
    const unread = { ...listed, unreadable: { code, message } };
    return fitsUnread(unread, wanted) ? summaryOf(unread, row, endedStatus(row)) : null;
  }
}

/** What is asked of its content cannot be answered. */
function fitsUnread({ at }: Listed, { status, labels, since, until }: Wanted): boolean {
  return status === undefined && labels.length === 0 && at >= since && at < until;
}

function fits(listed: Listed, row: SessionRow, wanted: Wanted): boolean {
  if (listed.at < wanted.since || listed.at >= wanted.until) return false;
  if (!wanted.empty && isEmpty(row)) return false;
  if (!wanted.states.includes(row.state)) return false;
  return wanted.labels.every(([name, value]) => Object.hasOwn(row.labels ?? {}, name) && row.labels?.[name] === value);
}

/** Nothing was ever said in it, and nothing waits to be. */
function isEmpty(row: SessionRow): boolean {
  return row.turns === 0 && row.queued === 0 && row.filled !== true;
}

/** Whether an open turn is running is known to the lock alone (S14): nothing else is worth a look at it. */
async function statusOf(store: JournalStore, listed: Listed, row: SessionRow): Promise<Summary["status"]> {
  return row.state === "open" && (await isHeld(store, listed)) ? "running" : endedStatus(row);
}

/** If nobody writes to it. */
function endedStatus({ state }: SessionRow): Summary["status"] {
  return state === "open" || state === "cut" ? "interrupted" : state;
}

/** Whoever opens it hears of it. */
function isUntold(error: unknown): false {
  if (isHoldfastError(error)) return false;
  throw error;
}

/** Some stores have said so already. */
async function isHeld(store: JournalStore, { id, holder }: Listed): Promise<boolean> {
  return (holder === undefined ? await store.holder(id) : holder) !== null;
}

function summaryOf(listed: Listed, row: SessionRow, status: Summary["status"]): Summary {
  const { cwd, app, labels, parent, turns, queued } = row;
  const { unreadable } = listed;
  return {
    id: listed.id,
    title: row.title || (row.prompt ?? ""),
    ...defined({ cwd, app }),
    at: listed.at,
    turns,
    queued,
    status,
    ...defined({ labels, parent, unreadable }),
  };
}
