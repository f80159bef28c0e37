import type { Listed, ListOptions, Summariser } from "../../../journal/contract.ts";
import { isId } from "../../../journal/id.ts";
import { recordOf } from "../../../journal/lines/account.ts";
import { RowFold } from "../../../journal/list-row.ts";
import type { Json } from "../../../journal/record.ts";
import { type ListPlace, listCursor, newestFirst, parseListCursor } from "../../page.ts";
import { isIoError, orNull } from "../database/failure.ts";
import { allSessions } from "./catalogue.ts";
import { newestSeq, readSome } from "./reader.ts";
import type { Rows } from "./rows.ts";
import { type SessionRow, sessionOf, type TableRow } from "./session-row.ts";

/** Later than any time. */
const START: ListPlace = { at: "\uffff", id: "" };

export interface Page {
  readonly sessions: readonly Listed[];
  readonly next?: string;
}

/** Checks made once per open store. */
export interface Soundness {
  /** The table of sessions and its indexes contain the same sessions. */
  isSound?: boolean;
  /** SQLite finds nothing wrong with the file. */
  isWhole?: boolean;
}

/** A row as listed. */
interface Row extends SessionRow {
  readonly summary: Json;
  readonly unreadable?: NonNullable<Listed["unreadable"]>;
}

/**
 * Newest first. For rows that are behind their journals, the later lines are folded in: less than a second's worth, for
 * sessions that are being written or whose writer died (S20). If table and indexes disagree, all of them and the
 * journals themselves are consulted (P9).
 */
export function listSessions(
  rows: Rows,
  summariser: Summariser | undefined,
  options: ListOptions,
  soundness: Soundness,
): Page {
  const after = options.after === undefined ? START : parseListCursor(options.after);
  const limit = options.limit ?? Number.POSITIVE_INFINITY;
  const fits = (row: Row): boolean => newestFirst(row, after) > 0 && matches(row.summary, options.where);

  soundness.isSound ??= orNull(() => rows.isSound()) ?? false;
  const quick = soundness.isSound ? orNull(() => quickPage(rows, summariser, after, fits, limit)) : null;
  const page = quick ?? carefulPage(rows, summariser, fits);
  const sessions = page
    .slice(0, limit)
    .map(({ key: _, stamp, ...listed }) => (stamp === listed.at ? listed : { ...listed, stamp }));
  const last = sessions.at(-1);
  return last && page.length > sessions.length ? { sessions, next: listCursor(last) } : { sessions };
}

/** Up to one more than `limit`. Null if the table disagrees with its index. */
function quickPage(
  rows: Rows,
  summariser: Summariser | undefined,
  after: ListPlace,
  fits: (row: Row) => boolean,
  limit: number,
): Row[] | null {
  const stale = findUnsettled(rows).map(sessionOf);
  const moved: Row[] = [];
  for (const row of stale) {
    if (!row) return null;
    const carried = current(rows, row, summariser);
    if (fits(carried)) moved.push(carried);
  }
  moved.sort(newestFirst);
  const skip = new Set(stale.map((row) => row?.key));

  const page: Row[] = [];
  for (const found of rows.listed(after.at, after.id)) {
    if (!found || !isId(found.id)) return null;
    if (skip.has(found.key)) continue;
    const row = isUsable(found) ? found : current(rows, found, summariser);
    if (!fits(row)) continue;
    while (moved[0] && newestFirst(moved[0], row) < 0) page.push(moved.shift()!);
    page.push(row);
    if (page.length > limit) break;
  }
  page.push(...moved);
  return page;
}

function carefulPage(rows: Rows, summariser: Summariser | undefined, fits: (row: Row) => boolean): Row[] {
  const page = allSessions(rows).map((row) => current(rows, row, summariser));
  return page.filter((row) => isId(row.id) && fits(row)).sort(newestFirst);
}

/** One unreadable page must not stop the other sessions from being listed: then each is read by itself. */
function findUnsettled(rows: Rows): TableRow[] {
  try {
    return rows.unsettled();
  } catch (error) {
    if (!isIoError(error)) throw error;
    return rows.open();
  }
}

function isUsable(row: SessionRow): row is Row {
  return row.summary !== undefined;
}

/**
 * The row as if its writer had saved it just now, built from the whole lines. A spoiled row is rebuilt from all of
 * them. If the disk cannot read them, only this session is marked as unreadable (P9).
 */
function current(rows: Rows, row: SessionRow, summariser: Summariser | undefined): Row {
  try {
    return isUsable(row)
      ? carryOn(rows, row, summariser)
      : { ...carryOn(rows, { ...row, head: 0, summary: null }, summariser), stamp: row.stamp };
  } catch (error) {
    if (!isIoError(error)) throw error;
    const message = `Session ${row.id} cannot be read: ${(error as Error).message}. Nothing was touched, and other sessions are not affected. Check the disk, and restore the session from a backup.`;
    return { ...row, summary: row.summary ?? null, unreadable: { code: "STORE_IO", message } };
  }
}

function carryOn(rows: Rows, row: Row, summariser: Summariser | undefined): Row {
  const fold = new RowFold(row, summariser);
  const last = newestSeq(rows, row.key);
  for (let from = row.head + 1; from <= last; ) {
    const { lines, next } = readSome(rows, row.key, from, last);
    for (const line of lines) fold.add(line.seq, recordOf(line));
    from = next;
  }
  return { ...row, ...fold.row };
}

/** A missing member counts as null. */
function matches(summary: Json, where: ListOptions["where"]): boolean {
  return Object.entries(where ?? {}).every(([name, value]) => (memberOf(summary, name) ?? null) === value);
}

function memberOf(summary: Json, name: string): unknown {
  if (typeof summary !== "object" || summary === null || !Object.hasOwn(summary, name)) return null;
  return (summary as Readonly<Record<string, unknown>>)[name];
}
