import { HoldfastError } from "../../errors.ts";
import type { Listed, ListOptions, Summariser } from "../../journal/contract.ts";
import type { JournalRecord, Json } from "../../journal/record.ts";
import type { MemorySession } from "./session.ts";

/** Newest first; sessions of the same instant by id, so that a page can be continued after any of them. */
export function listSessions(
  sessions: Iterable<MemorySession>,
  summariser: Summariser | undefined,
  options: ListOptions,
): { readonly sessions: readonly Listed[]; readonly next?: string } {
  const after = options.after === undefined ? null : parsePlace(options.after);
  const where = Object.entries(options.where ?? {});
  const found: Listed[] = [];
  for (const session of sessions) {
    const listed = rowOf(session, summariser);
    if (!listed || (after && comparePlaces(listed, after) <= 0)) continue;
    if (where.every(([name, value]) => (memberOf(listed.summary, name) ?? null) === value)) found.push(listed);
  }
  found.sort(comparePlaces);
  const page = found.slice(0, options.limit);
  const last = page.at(-1);
  return last && page.length < found.length ? { sessions: page, next: `${last.at} ${last.id}` } : { sessions: page };
}

/** From the newest summary that stands in the journal, carried on over what came after it (S20). */
function rowOf(session: MemorySession, summariser: Summariser | undefined): Listed | null {
  const newest = session.last;
  if (!newest) return null;
  let summary: Json = null;
  if (summariser) {
    const later: JournalRecord[] = [];
    for (const record of session.backwards()) {
      if (record.summary !== undefined) {
        summary = record.summary;
        break;
      }
      later.push(record);
    }
    for (const record of later.reverse()) summary = summariser.add(summary, record);
  }
  return { id: session.id, at: newest.at, head: session.head, closed: newest.kind === "closed", summary };
}

interface Place {
  readonly at: string;
  readonly id: string;
}

function comparePlaces(a: Place, b: Place): number {
  if (a.at !== b.at) return a.at < b.at ? 1 : -1;
  return a.id === b.id ? 0 : a.id < b.id ? 1 : -1;
}

function parsePlace(cursor: string): Place {
  const [at, id] = cursor.split(" ");
  if (at === undefined || id === undefined) {
    const message =
      "The place that the list is to go on from is none of its own. Nothing was touched. List from the start.";
    throw new HoldfastError("CURSOR_STALE", message, { after: cursor.slice(0, 80) });
  }
  return { at, id };
}

function memberOf(row: Json, name: string): Json | undefined {
  if (typeof row !== "object" || row === null || Array.isArray(row)) return undefined;
  return (row as { readonly [member: string]: Json | undefined })[name];
}
