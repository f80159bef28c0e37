import { recordOf } from "../../journal/account.ts";
import type { Listed, ListOptions, Summariser } from "../../journal/contract.ts";
import { isId } from "../../journal/id.ts";
import type { Json } from "../../journal/record.ts";
import { listCursor, parseListCursor } from "../page.ts";
import { allSessions } from "./catalogue.ts";
import { orNull } from "./failure.ts";
import { type Rows, type SessionRow, sessionOf } from "./rows.ts";

/** Later than any time. */
const START: Place = { at: "\uffff", id: "" };

interface Place {
  readonly at: string;
  readonly id: string;
}

export interface Page {
  readonly sessions: readonly Listed[];
  readonly next?: string;
}

/** What is looked at once for each store that is opened. */
export interface Soundness {
  /** The table of sessions and its indexes have the same ones. */
  isSound?: boolean;
  /** SQLite finds nothing wrong with the file. */
  isWhole?: boolean;
}

/**
 * Newest first; sessions of the same instant by id, so that a page can be continued after any of them. Rows that are behind their
 * journals are carried on over the lines that came later: less than a second's worth, of sessions that are being written or were left by a
 * writer that died (S20). Where table and indexes say different things, all of them are asked, and the journals themselves (P9).
 */
export function listSessions(
  rows: Rows,
  summariser: Summariser | undefined,
  options: ListOptions,
  soundness: Soundness,
): Page {
  const after = options.after === undefined ? START : parseListCursor(options.after);
  const limit = options.limit ?? Number.POSITIVE_INFINITY;
  const fits = (row: SessionRow): boolean => comparePlaces(row, after) > 0 && matches(row.summary, options.where);

  soundness.isSound ??= orNull(() => rows.isSound()) ?? false;
  const quick = soundness.isSound ? orNull(() => quickPage(rows, summariser, after, fits, limit)) : null;
  const page = quick ?? carefulPage(rows, summariser, fits);
  const sessions = page.slice(0, limit).map(({ key: _, ...listed }) => listed);
  const last = sessions.at(-1);
  return last && page.length > sessions.length ? { sessions, next: listCursor(last) } : { sessions };
}

/** One more than `limit`, if there are as many. Null if the table says other things than its index. */
function quickPage(
  rows: Rows,
  summariser: Summariser | undefined,
  after: Place,
  fits: (row: SessionRow) => boolean,
  limit: number,
): SessionRow[] | null {
  const stale = rows.unsettled().map(sessionOf);
  const moved: SessionRow[] = [];
  for (const row of stale) {
    if (!row) return null;
    const carried = carryOn(rows, row, summariser);
    if (fits(carried)) moved.push(carried);
  }
  moved.sort(comparePlaces);
  const skip = new Set(stale.map((row) => row?.key));

  const page: SessionRow[] = [];
  for (const row of rows.listed(after.at, after.id)) {
    if (!row || !isId(row.id)) return null;
    if (skip.has(row.key) || !fits(row)) continue;
    while (moved[0] && comparePlaces(moved[0], row) < 0) page.push(moved.shift()!);
    page.push(row);
    if (page.length > limit) break;
  }
  page.push(...moved);
  return page;
}

function carefulPage(rows: Rows, summariser: Summariser | undefined, fits: (row: SessionRow) => boolean): SessionRow[] {
  const page = allSessions(rows).map((row) => carryOn(rows, row, summariser));
  return page.filter((row) => isId(row.id) && fits(row)).sort(comparePlaces);
}

/** The row as it would be if its writer had saved it just now; as far as the lines can be read. */
function carryOn(rows: Rows, row: SessionRow, summariser: Summariser | undefined): SessionRow {
  let { at, head, closed, summary } = row;
  for (;;) {
    const chunk = orNull(() => rows.readLines(row.key, head + 1));
    for (const line of chunk?.lines ?? []) {
      head = line.seq;
      const record = recordOf(line);
      if (!record) continue;
      at = record.at;
      closed = record.kind === "closed";
      if (record.summary !== undefined) summary = record.summary;
      else if (summariser) summary = summariser.add(summary, record);
    }
    if (chunk?.end !== false) return { ...row, at, head, closed, summary };
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

function comparePlaces(a: Place, b: Place): number {
  if (a.at !== b.at) return a.at < b.at ? 1 : -1;
  return a.id === b.id ? 0 : a.id < b.id ? 1 : -1;
}
