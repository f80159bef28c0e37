import { sqliteCode } from "../../disk/node-disk.ts";
import { recordOf } from "../../journal/account.ts";
import { type Listed, type ListOptions, rowIn, type Summariser } from "../../journal/contract.ts";
import { aheadAfter, aheadOf, stampOf } from "../../journal/order.ts";
import type { Json } from "../../journal/record.ts";
import { listCursor, newestFirst, type Place, parseListCursor } from "../page.ts";
import type { Rows, SessionRow } from "./rows.ts";

const SQLITE_IOERR = 10;
const SQLITE_CORRUPT = 11;
/** Later than any time. */
const START: Place = { at: "\uffff", id: "" };

export interface Page {
  readonly sessions: readonly Listed[];
  readonly next?: string;
}

/** A row as it is listed. */
interface Row extends SessionRow {
  readonly summary: Json;
  readonly unreadable?: NonNullable<Listed["unreadable"]>;
}

/**
 * Newest first. Rows that are behind their journals are carried on over the lines that came later: less than a second's worth, of sessions that are being written or were left by a writer that died (S20).
 */
export function listSessions(rows: Rows, summariser: Summariser | undefined, options: ListOptions): Page {
  const after = options.after === undefined ? START : parseListCursor(options.after);
  const limit = options.limit ?? Number.POSITIVE_INFINITY;
  const fits = (row: Row): boolean => newestFirst(row, after) > 0 && matches(row.summary, options.where);

  const stale = unsettled(rows);
  const moved = stale.map((row) => current(rows, row, summariser)).filter(fits);
  moved.sort(newestFirst);
  const skip = new Set(stale.map((row) => row.key));

  const page: Row[] = [];
  for (const found of rows.listed(after.at, after.id)) {
    if (skip.has(found.key)) continue;
    const row = isWhole(found) ? found : current(rows, found, summariser);
    if (!fits(row)) continue;
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

/** A damaged page must not keep the others from being listed: then each of them is looked at by itself. */
function unsettled(rows: Rows): SessionRow[] {
  try {
    return rows.unsettled();
  } catch (error) {
    if (!isDamage(error)) throw error;
    return rows.open();
  }
}

function isDamage(error: unknown): boolean {
  const code = sqliteCode(error);
  return code === SQLITE_IOERR || code === SQLITE_CORRUPT;
}

function isWhole(row: SessionRow): row is Row {
  return row.summary !== undefined;
}

/** The row as it would be if its writer had saved it just now. A spoiled one is made of all its lines. Where a page of these is damaged, that is said of this session alone (P9). */
function current(rows: Rows, row: SessionRow, summariser: Summariser | undefined): Row {
  try {
    return isWhole(row)
      ? carryOn(rows, row, summariser)
      : { ...carryOn(rows, { ...row, head: 0, summary: null }, summariser), stamp: row.stamp };
  } catch (error) {
    if (!isDamage(error)) throw error;
    const message = `Session ${row.id} cannot be read: ${(error as Error).message}. Nothing was touched, and other sessions are not affected. Check the disk, and restore the session from a backup.`;
    return { ...row, summary: row.summary ?? null, unreadable: { code: "STORE_IO", message } };
  }
}

function carryOn(rows: Rows, row: Row, summariser: Summariser | undefined): Row {
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
      const carried = rowIn(record, summariser);
      if (carried !== undefined) summary = carried;
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
