import type { Listed, ListOptions, Summariser } from "../../journal/contract.ts";
import type { JournalRecord, Json } from "../../journal/record.ts";
import { pageOf } from "../page.ts";
import type { MemorySession } from "./session.ts";

/** Newest first; sessions of the same instant by id, so that a page can be continued after any of them. */
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

/** From the newest summary that stands in the journal, carried on over what came after it (S20). */
function rowOf(session: MemorySession, summariser: Summariser | undefined): Listed | null {
  const newest = session.last;
  if (!newest) return null;
  let summary: Json = null;
  const later: JournalRecord[] = [];
  for (const record of session.backwards()) {
    if (record.summary !== undefined) {
      summary = record.summary;
      break;
    }
    later.push(record);
  }
  if (summariser) for (const record of later.reverse()) summary = summariser.add(summary, record);
  return { id: session.id, at: newest.at, head: session.head, closed: newest.kind === "closed", summary };
}

function newestFirst(a: Listed, b: Listed): number {
  if (a.at !== b.at) return a.at < b.at ? 1 : -1;
  return a.id < b.id ? 1 : -1;
}
