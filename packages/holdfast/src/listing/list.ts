import { defined } from "../defined.ts";
import { type Shape, shapeOf } from "../dialects/shape.ts";
import { isHoldfastError } from "../errors.ts";
import { type Holder, hasWritten, type JournalStore, type Listed, type Trashed } from "../journal/contract.ts";
import { sessionState } from "../session-state.ts";
import { checkQuery, type ListQuery, type SessionFilter, type Summary, type TrashedSession } from "./query.ts";
import {
  attemptsIn,
  isEmptyIn,
  labelsIn,
  lastTurnIn,
  linkIn,
  queuedIn,
  rowOf,
  type SessionRow,
  stateIn,
  stringIn,
  titleIn,
  turnsIn,
  wakeAtIn,
} from "./row.ts";

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
  const { where, hints } = wanted;
  let sessions: Summary[] = [];
  let after = query.after;
  let size = wanted.limit;
  for (;;) {
    const choice = new Choice(wanted, wanted.limit - sessions.length);
    const visit = (listed: Listed): void => choice.see(listed);
    const page = await store.list({ where, hints, limit: size, ...defined({ after }), visit });
    for (const listed of page.sessions) choice.see(listed);
    if (choice.isFull) {
      // More than fits. Only the store makes cursors, and only for the end of a page, so this page must end here.
      size = choice.seen;
      continue;
    }
    const made = await choice.made(store);
    sessions = sessions.length === 0 ? made : [...sessions, ...made];
    if (choice.isOver || page.next === undefined) return { sessions };
    if (sessions.length === wanted.limit) return { sessions, next: page.next };
    after = page.next;
    size = Math.max(wanted.limit - sessions.length, size * PAGE_GROWTH, PAGE_MIN);
  }
}

/**
 * The ids of the sessions a user may want to continue, for `resumeLatest`: first those whose last turn was interrupted
 * or waits for a person, then the others, also those that somebody stopped on purpose, each newest first. All have
 * content, no parent session, and no writer as far as a list can tell. The caller may still find one busy, and then
 * tries the next.
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
  const isUnfinished = (shape: Shape): boolean => !["completed", "stopped"].includes(lastTurnIn(shape));
  yield* free(store, { where: mine, hints: unfinished }, isUnfinished);
  yield* free(store, { where: mine, hints }, (shape) => !isUnfinished(shape));
}

async function* free(
  store: JournalStore,
  { where, hints }: Pick<SessionFilter, "where" | "hints">,
  fits: (shape: Shape) => boolean,
): AsyncGenerator<string, void, undefined> {
  let after: string | undefined;
  let size = PAGE_MIN;
  do {
    const page = await store.list({ where, hints, limit: size, ...defined({ after }) });
    for (const listed of page.sessions) {
      const shape = shapeIn(listed);
      if (isEmptyIn(shape) || !fits(shape)) continue;
      // If a session is not in use, its last record is `closed`, or its writer died (S14).
      if (!listed.closed && !listed.unreadable && (await holderOf(store, listed).catch(isUntold)) !== null) continue;
      yield listed.id;
    }
    after = page.next;
    size *= PAGE_GROWTH;
  } while (after !== undefined);
}

/** A session whose last turn is open: only its lock knows whether it is running (S14). */
interface OpenRow {
  readonly listed: Listed;
  readonly shape: Shape;
}

/** Chooses up to a given number of matching rows. */
class Choice {
  readonly #wanted: SessionFilter;
  readonly #limit: number;
  readonly #chosen: (Summary | OpenRow)[] = [];
  #hasOpen = false;
  /** How many rows were examined. */
  seen = 0;
  /** There were more rows than fit. */
  isFull = false;
  /** All later rows are too old. */
  isOver = false;

  constructor(wanted: SessionFilter, limit: number) {
    this.#wanted = wanted;
    this.#limit = limit;
  }

  see(listed: Listed): void {
    if (this.isFull || this.isOver) return;
    if (this.#chosen.length === this.#limit) {
      this.isFull = true;
      return;
    }
    // No session's last write is later than its sort key: from here on, all are too old.
    if ((listed.stamp ?? listed.at) < this.#wanted.since) {
      this.isOver = true;
      return;
    }
    this.seen++;
    const shape = shapeIn(listed);
    const state = stateIn(shape);
    if (listed.unreadable) {
      if (fitsUnread(listed, this.#wanted)) this.#chosen.push(summaryOf(listed, shape, statusOf(shape, false)));
    } else if (fits(listed, shape, state, this.#wanted)) {
      const status = statusOf(shape, false);
      if (state === "open") this.#chosen.push({ listed, shape });
      else if (hasStatus(status, this.#wanted)) this.#chosen.push(summaryOf(listed, shape, status));
      this.#hasOpen ||= state === "open";
    }
  }

  /** Asks for the holders of open turns, and of no others: that would double the time of a long list. */
  async made(store: JournalStore): Promise<Summary[]> {
    if (!this.#hasOpen) return this.#chosen as Summary[];
    const made: Summary[] = [];
    for (const one of this.#chosen) {
      const summary = "listed" in one ? await openSummary(store, one, this.#wanted) : one;
      if (summary) made.push(summary);
    }
    return made;
  }
}

/** Null if the query does not want it. */
async function openSummary(
  store: JournalStore,
  { listed, shape }: OpenRow,
  wanted: SessionFilter,
): Promise<Summary | null> {
  try {
    const holder = await holderOf(store, listed);
    const status = statusOf(shape, holder !== null && hasWritten(holder, listed.at));
    return hasStatus(status, wanted) ? summaryOf(listed, shape, status) : null;
  } catch (error) {
    // Its lease belongs to another user, so whether it has a writer is unknown. That is no reason to fail the list.
    if (!isHoldfastError(error, "STORE_FORBIDDEN", "STORE_IO", "PATH_UNSAFE")) throw error;
    const { code, message } = error;
    const unreadable = { ...listed, unreadable: { code, message } };
    return fitsUnread(unreadable, wanted) ? summaryOf(unreadable, shape, statusOf(shape, false)) : null;
  }
}

function hasStatus(status: Summary["status"], wanted: SessionFilter): boolean {
  return wanted.status === undefined || wanted.status === status;
}

/** Conditions on its content cannot be checked. */
function fitsUnread({ at }: Listed, { status, labels, since, until }: SessionFilter): boolean {
  return status === undefined && labels.length === 0 && at >= since && at < until;
}

function fits({ at }: Listed, shape: Shape, state: SessionRow["state"], wanted: SessionFilter): boolean {
  if (wanted.unreadable || at < wanted.since || at >= wanted.until) return false;
  if (!wanted.empty && isEmptyIn(shape)) return false;
  if (!wanted.states.includes(state)) return false;
  if (wanted.labels.length === 0) return true;
  const labels = labelsIn(shape) ?? {};
  return wanted.labels.every(([name, value]) => Object.hasOwn(labels, name) && labels[name] === value);
}

function statusOf(shape: Shape, isBeingWritten: boolean): Summary["status"] {
  return sessionState(lastTurnIn(shape), isBeingWritten);
}

/** Opening the session reports the error. */
function isUntold(error: unknown): null {
  if (isHoldfastError(error)) return null;
  throw error;
}

/** Some stores already report the holder in the list. */
async function holderOf(store: JournalStore, { id, holder }: Listed): Promise<Holder | null> {
  return holder === undefined ? store.holder(id) : holder;
}

export function trashedSession({ id, trashedAt, summary }: Trashed): TrashedSession {
  const { title, prompt = "", cwd, app, turns, queued, parent } = rowOf(summary);
  return { id, trashedAt, title: title || prompt, ...defined({ cwd, app, parent }), turns, queued };
}

function summaryOf({ id, at, unreadable }: Listed, shape: Shape, status: Summary["status"]): Summary {
  const title = titleIn(shape);
  const turns = turnsIn(shape);
  const queued = queuedIn(shape);
  const cwd = stringIn(shape, "cwd");
  const app = stringIn(shape, "app");
  const labels = labelsIn(shape);
  const parent = linkIn(shape);
  const wakeAt = status === "paused" ? wakeAtIn(shape) : undefined;
  const attempts = status === "idle" ? undefined : attemptsIn(shape) || undefined;
  // Nearly all have both: one literal is the least memory, and a list keeps thousands of them.
  if (cwd !== undefined && app !== undefined && !labels && !parent && !unreadable && !wakeAt && !attempts)
    return { id, title, at, turns, queued, status, cwd, app };
  return {
    id,
    title,
    at,
    turns,
    queued,
    status,
    ...defined({ cwd, app, labels, parent, unreadable, wakeAt, attempts }),
  };
}

function shapeIn({ summary }: Listed): Shape {
  return shapeOf(summary) ?? {};
}
