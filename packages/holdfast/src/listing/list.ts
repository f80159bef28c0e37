import { defined } from "../defined.ts";
import { isHoldfastError } from "../errors.ts";
import type { JournalStore, Listed, ListOptions, Trashed } from "../journal/contract.ts";
import { checkQuery, type ListQuery, type Summary, type TrashedSession, type Wanted } from "./query.ts";
import { rowOf, type SessionRow } from "./row.ts";

/** A store may examine every session for each page, so pages grow when few rows match. */
const PAGE_GROWTH = 4;
const PAGE_MIN = 64;

export interface Page {
  readonly sessions: Summary[];
  readonly next?: string;
}

/**
 * One page of sessions, newest first, from the store's rows: no transcript is read (P7). `next` is a position in the
 * order, so pages stay correct while sessions are written; the page after it may be empty. `realPath` is the disk's.
 * Throws QUERY_INVALID, CURSOR_STALE and the store's errors.
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
      // More than fits. Only the store makes cursors, and only for the end of a page, so this page must end here.
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
 * The ids of the sessions a user may want to continue, for `resumeLatest`: first those whose last turn did not complete
 * or waits for a person, then the others, each newest first. All have content, no parent session, and no writer as far
 * as a list can tell. The caller may still find one busy, and then tries the next.
 */
export async function* unfinishedFirst(
  store: JournalStore,
  query: { readonly cwd?: string; readonly app?: string },
  realPath: (path: string) => string,
): AsyncGenerator<string, void, undefined> {
  const { cwd, app } = { ...query };
  const { where, hints } = checkQuery({ ...defined({ cwd, app }) }, realPath);
  const mine = { ...where, parentSession: null };
  // A turn that was interrupted must not be missed because another session finished after it.
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
      // If a session is not in use, its last record is `closed`, or its writer died (S14).
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

/** Up to a given number of matching rows; how many rows were examined; and whether all later ones are too old. */
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
    // No session's last write is later than its sort key: from here on, all are too old.
    if ((listed.stamp ?? listed.at) < wanted.since) return { chosen, seen, isOver: true };
    seen++;
    const row = rowOf(listed.summary);
    // Only an open turn needs to ask for its holder. Awaiting the others would double the time of a long list.
    const summary =
      row.state === "open" && !listed.unreadable
        ? await openSummary(store, listed, row, wanted)
        : settledSummary(listed, row, wanted);
    if (summary) chosen.push(summary);
  }
  return { chosen, seen, isOver: false };
}

/** Null if the query does not want it. */
function settledSummary(listed: Listed, row: SessionRow, wanted: Wanted): Summary | null {
  const status = endedStatus(row);
  if (listed.unreadable) return fitsUnread(listed, wanted) ? summaryOf(listed, row, status) : null;
  return fits(listed, row, wanted) && hasStatus(status, wanted) ? summaryOf(listed, row, status) : null;
}

/** The same for a session whose last turn is open: only the lock knows whether it is running (S14). */
async function openSummary(
  store: JournalStore,
  listed: Listed,
  row: SessionRow,
  wanted: Wanted,
): Promise<Summary | null> {
  if (!fits(listed, row, wanted)) return null;
  try {
    const status = (await isHeld(store, listed)) ? "running" : endedStatus(row);
    return hasStatus(status, wanted) ? summaryOf(listed, row, status) : null;
  } catch (error) {
    // Its lease belongs to another user, so whether it has a writer is unknown. That is no reason to fail the list.
    if (!isHoldfastError(error, "STORE_FORBIDDEN", "STORE_IO", "PATH_UNSAFE")) throw error;
    const { code, message } = error;
    return settledSummary({ ...listed, unreadable: { code, message } }, row, wanted);
  }
}

function hasStatus(status: Summary["status"], wanted: Wanted): boolean {
  return wanted.status === undefined || wanted.status === status;
}

/** Conditions on its content cannot be checked. */
function fitsUnread({ at }: Listed, { status, labels, since, until }: Wanted): boolean {
  return status === undefined && labels.length === 0 && at >= since && at < until;
}

function fits(listed: Listed, row: SessionRow, wanted: Wanted): boolean {
  if (wanted.unreadable || listed.at < wanted.since || listed.at >= wanted.until) return false;
  if (!wanted.empty && isEmpty(row)) return false;
  if (!wanted.states.includes(row.state)) return false;
  return wanted.labels.every(([name, value]) => Object.hasOwn(row.labels ?? {}, name) && row.labels?.[name] === value);
}

/** It has no messages and nothing is queued. */
function isEmpty(row: SessionRow): boolean {
  return row.turns === 0 && row.queued === 0 && row.filled !== true;
}

/** The status if the session has no writer. */
function endedStatus({ state }: SessionRow): Summary["status"] {
  return state === "open" || state === "cut" ? "interrupted" : state;
}

/** Opening the session reports the error. */
function isUntold(error: unknown): false {
  if (isHoldfastError(error)) return false;
  throw error;
}

/** Some stores already report the holder in the list. */
async function isHeld(store: JournalStore, { id, holder }: Listed): Promise<boolean> {
  return (holder === undefined ? await store.holder(id) : holder) !== null;
}

export function trashedSession({ id, trashedAt, summary }: Trashed): TrashedSession {
  const { title, prompt = "", cwd, app, turns, queued, parent } = rowOf(summary);
  return { id, trashedAt, title: title || prompt, ...defined({ cwd, app, parent }), turns, queued };
}

function summaryOf(listed: Listed, row: SessionRow, status: Summary["status"]): Summary {
  const { cwd, app, labels, parent, turns, queued } = row;
  const { id, at, unreadable } = listed;
  const title = row.title || (row.prompt ?? "");
  return { id, title, at, turns, queued, status, ...defined({ cwd, app, labels, parent, unreadable }) };
}
