import { type Listed, type ListOptions, rowIn, type Summariser } from "../../journal/contract.ts";
import { type ListRow, RowFold } from "../../journal/list-row.ts";
import type { JournalRecord } from "../../journal/record.ts";
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

/** Starts from the newest summary in the journal, and folds in the records after it (S20). Null if nothing is whole. */
export function rowOf(session: MemorySession, summariser?: Summariser): (ListRow & { readonly id: string }) | null {
  const later: JournalRecord[] = [];
  for (const record of session.backwards()) {
    later.push(record);
    if (rowIn(record, summariser) !== undefined) break;
  }
  const fold = new RowFold(null, summariser);
  for (const record of later.reverse()) fold.add(record.seq, record);
  return later.length > 0 ? { ...fold.row, id: session.id, head: session.head } : null;
}
