import { HoldfastError } from "../errors.ts";
import type { Listed, ListOptions } from "../journal/contract.ts";

type Writable<T> = { -readonly [K in keyof T]: T[K] };

/** Sorts rows newest first, and rows of the same instant by id, so that a page can continue after any of them. */
export function newestFirst(a: ListPlace, b: ListPlace): number {
  const [one, other] = [a.stamp ?? a.at, b.stamp ?? b.at];
  if (one !== other) return one < other ? 1 : -1;
  return a.id === b.id ? 0 : a.id < b.id ? 1 : -1;
}

/**
 * One page of rows sorted newest first. The cursor names a position in that order, not an index, so pages stay correct
 * while sessions change.
 */
export function pageOf(
  rows: Iterable<Listed>,
  { where, limit = Number.POSITIVE_INFINITY, after: cursor, visit }: ListOptions,
): ListPage {
  const after = cursor === undefined ? null : parseListCursor(cursor);
  const wanted = where && Object.entries(where);
  const sessions: Listed[] = [];
  let count = 0;
  let last: Listed | null = null;
  for (const row of rows) {
    if (after && newestFirst(row, after) <= 0) continue;
    if (wanted && !wanted.every(([name, value]) => memberOf(row.summary, name) === value)) continue;
    if (count >= limit) return last ? { sessions, next: listCursor(last) } : { sessions };
    const listed = withoutRest(row);
    count++;
    last = listed;
    if (visit) visit(listed);
    else sessions.push(listed);
  }
  return { sessions };
}

export interface ListPage {
  readonly sessions: readonly Listed[];
  readonly next?: string;
}

/** Stores keep more in their rows than they show. */
function withoutRest({ id, at, stamp, head, closed, summary, unreadable }: Listed): Listed {
  const listed: Writable<Listed> = { id, at, head, closed, summary };
  if (stamp !== undefined && stamp !== at) listed.stamp = stamp;
  if (unreadable !== undefined) listed.unreadable = unreadable;
  return listed;
}

/** A session's position in lists. */
export type ListPlace = Pick<Listed, "at" | "stamp" | "id">;

export function listCursor({ at, stamp, id }: ListPlace): string {
  return `${stamp ?? at}_${id}`;
}

export function parseListCursor(cursor: string): { at: string; id: string } {
  const [, at, id] = /^(.+)_([0-9a-f-]{36})$/.exec(cursor) ?? [];
  if (at === undefined || id === undefined) {
    const message = "This cursor did not come from a list. Nothing was touched. List again from the start.";
    throw new HoldfastError("CURSOR_STALE", message, { cursor: cursor.slice(0, 80) });
  }
  return { at, id };
}

/** A missing member counts as null. */
function memberOf(summary: unknown, name: string): unknown {
  if (typeof summary !== "object" || summary === null || !Object.hasOwn(summary, name)) return null;
  return (summary as Record<string, unknown>)[name] ?? null;
}
