import type { Damage } from "../../../journal/contract.ts";
import { isId } from "../../../journal/id.ts";
import { recordOf } from "../../../journal/lines/account.ts";
import type { JournalRecord } from "../../../journal/record.ts";
import { orNull } from "../database/failure.ts";
import type { Rows } from "./rows.ts";
import type { SessionRow } from "./session-row.ts";

/**
 * Which sessions exist. The table says so, and its indexes repeat it; and a journal itself says, under its checksum, to
 * which session it belongs. If table and indexes disagree, the journals decide (P9).
 */

/** A session by id. Null if it does not exist or is in the trash. Throws SQLite's errors. */
export function findSession(rows: Rows, id: string): SessionRow | null {
  // Undefined if the index cannot be read.
  const key = orNull(() => ({ found: rows.keyOf(id) }))?.found;
  if (key === null && rows.isSound) return null;
  const row = key ? orNull(() => rows.session(key)) : null;
  if (row?.id === id && !row.isTrashed) return row;
  return allSessions(rows).find((session) => session.id === id) ?? null;
}

/**
 * The same from the index alone: for a caller about to create the session, because the index would refuse a duplicate.
 */
export function isKnown(rows: Rows, id: string): boolean {
  return rows.keyOf(id) !== null;
}

/** Every session, even where table and indexes disagree; unordered. */
export function allSessions(rows: Rows): SessionRow[] {
  const indexed = orNull(() => rows.indexedKeys()) ?? new Set();
  const table = orNull(() => rows.sessions()) ?? [];
  const known = new Set(table.map(({ key }) => key));
  const lost = [...indexed].filter((key) => !known.has(key)).map((key) => ({ ...LOST, key }));
  const found = new Map<string, SessionRow>();
  for (const row of [...table, ...lost]) {
    if (row.key === 0 || (row.isTrashed && !indexed.has(row.key))) continue;
    // The key of a row can be damaged, too: then another one leads to the journal that names the session.
    const owner = ownerOf(rows, row.key);
    const id = owner ?? row.id;
    if (isId(id) && (owner !== null || !found.has(id))) found.set(id, { ...row, id });
  }
  return [...found.values()];
}

/** A row that cannot be read. */
const LOST = { id: "", at: "", stamp: "", head: 0, closed: false, summary: undefined, isTrashed: false };

/** Null if its line is missing or damaged. */
function recordAt(rows: Rows, key: number, seq: number): JournalRecord | null {
  const bytes = orNull(() => rows.readLine(key, seq));
  return bytes && recordOf({ seq, bytes });
}

/** A table, in place of a segment. */
export function damagedPart(name: string): Damage {
  return { segment: name, offset: 0, bytes: 0, why: "corrupt" };
}

/** The session a journal says it belongs to; null if it has no whole header. */
export function ownerOf(rows: Rows, key: number): string | null {
  for (const { first } of [{ first: 1 }, ...(orNull(() => rows.readSegments(key)) ?? [])]) {
    const record = recordAt(rows, key, first);
    if (record?.kind === "segment" && typeof record["session"] === "string") return record["session"];
  }
  return null;
}
