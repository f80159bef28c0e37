import { recordOf } from "../../journal/account.ts";
import type { Listed, ListOptions, Summariser } from "../../journal/contract.ts";
import { aheadAfter, aheadOf, stampOf } from "../../journal/order.ts";
import type { Json } from "../../journal/record.ts";
import { listCursor, newestFirst, type Place, parseListCursor } from "../page.ts";
import type { Rows, SessionRow } from "./rows.ts";

/** Later than any time. */
const START: Place = { at: "\uffff", id: "" };

export interface Page {
  readonly sessions: readonly Listed[];
  readonly next?: string;
}

/**
 * Newest first. Rows that are behind their
 * journals are carried on over the lines that came later: less than a second's worth, of sessions that are being written or were left by a
 * writer that died (S20).
 */
export function listSessions(rows: Rows, summariser: Summariser | undefined, options: ListOptions): Page {
  const after = options.after === undefined ? START : parseListCursor(options.after);
  const limit = options.limit ?? Number.POSITIVE_INFINITY;
  const fits = (row: SessionRow): boolean => newestFirst(row, after) > 0 && matches(row.summary, options.where);

  const stale = rows.unsettled();
  const moved = stale.map((row) => carryOn(rows, row, summariser)).filter(fits);
  moved.sort(newestFirst);
  const skip = new Set(stale.map((row) => row.key));

  const page: SessionRow[] = [];
  for (const row of rows.listed(after.at, after.id)) {
    if (skip.has(row.key) || !fits(row)) continue;
    while (moved[0] && newestFirst(moved[0], row) < 0) page.push(moved.shift()!);
    page.push(row);
    if (page.length > limit) break;
  }
  page.push(...moved);
  const sessions = page
    .slice(0, limit)
    .map(({ key: _, stamp, ...listed }) => (stamp === listed.at ? listed : { ...listed, stamp }));
  const last = sessions.at(-1);
  return last && page.length > sessions.length ? { sessions, next: listCursor(last) } : { sessions };
}

/** The row as it would be if its writer had saved it just now. */
export function carryOn(rows: Rows, row: SessionRow, summariser: Summariser | undefined): SessionRow {
  let { at, head, closed, summary } = row;
  let ahead = aheadOf(row.stamp, at);
  for (let chunk = rows.readLines(row.key, head + 1); ; chunk = rows.readLines(row.key, head + 1)) {
    for (const line of chunk.lines) {
      head = line.seq;
      const record = recordOf(line);
      if (!record) continue;
      at = record.at;
      ahead = aheadAfter(ahead, record);
      closed = record.kind === "closed";
      if (record.summary !== undefined) summary = record.summary;
      else if (summariser) summary = summariser.add(summary, record);
    }
    if (chunk.end) return { ...row, at, stamp: stampOf(at, ahead), head, closed, summary };
  }
}

/** A missing member counts as null. */
function matches(summary: Json, where: ListOptions["where"]): boolean {
  return Object.entries(where ?? {}).every(([name, value]) => (memberOf(summary, name) ?? null) === value);
}

function memberOf(summary: Json, name: string): unknown {
  if (typeof summary !== "object" || summary === null || !Object.hasOwn(summary, name)) return null;
  return (summary as Readonly<Record<string, unknown>>)[name];
}
