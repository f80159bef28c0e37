import { type Listed, type ListOptions, rowIn, type Summariser } from "../../journal/contract.ts";
import { aheadAfter, stampOf } from "../../journal/order.ts";
import type { JournalRecord, Json } from "../../journal/record.ts";
import { newestFirst, pageOf } from "../page.ts";
import type { MemorySession } from "./session.ts";

/** Newest first. */
export function listSessions(
  sessions: Iterable<MemorySession>,
  summariser: Summariser | undefined,
  options: ListOptions,
): { readonly sessions: readonly Listed[]; readonly next?: string } {
  const rows: Listed[] = [];
  for (const session of sessions) {
    const listed = rowOf(session, summariser);
    if (listed) rows.push(listed);
  }
  return pageOf(rows.sort(newestFirst), options);
}

/** Starts from the newest summary in the journal, and folds in the records after it (S20). */
function rowOf(session: MemorySession, summariser: Summariser | undefined): Listed | null {
  const later = sinceSummary(session, summariser);
  const newest = later.at(-1);
  if (!newest) return null;
  let summary: Json = null;
  for (const record of later) {
    const row = rowIn(record, summariser);
    if (row !== undefined) summary = row;
    else if (summariser) summary = summariser.add(summary, record);
  }
  return { ...placeOf(session, later), head: session.head, closed: newest.kind === "closed", summary };
}

/** The newest record that carries a summary, and those after it; all of them if none does. */
function sinceSummary(session: MemorySession, summariser?: Summariser): JournalRecord[] {
  const later: JournalRecord[] = [];
  for (const record of session.backwards()) {
    later.push(record);
    if (rowIn(record, summariser) !== undefined) break;
  }
  return later.reverse();
}

/** Its sort key in lists. */
export function placeOf(
  session: MemorySession,
  records: readonly JournalRecord[] = sinceSummary(session),
): { readonly id: string; readonly at: string; readonly stamp: string } {
  const at = records.at(-1)?.at ?? "";
  return { id: session.id, at, stamp: stampOf(at, records.reduce(aheadAfter, 0)) };
}
