import type { Damage } from "../../../journal/contract.ts";
import { recordOf } from "../../../journal/lines/account.ts";
import { stampOf } from "../../../journal/order.ts";
import { asFarAsPossible, orNull } from "../database/failure.ts";
import type { IndexEntry, Rows } from "./rows.ts";
import { type SessionRow, sessionOf, type TableRow } from "./session-row.ts";

/**
 * Which sessions exist. Three places say so: the table, the index by id and the index by time; and a journal itself
 * says, under its checksum, to which session it belongs. One damaged bit makes one of them wrong. Nearly always all
 * agree, and nothing extra is read.
 */

/** A session by id. Null if it does not exist or is in the trash. Throws SQLite's errors. */
export function findSession(rows: Rows, id: string): SessionRow | null {
  return quickly(rows, id) ?? carefully(rows, id);
}

/**
 * The same from the index alone: for a caller about to create the session, because the index would refuse a duplicate.
 */
export function isKnown(rows: Rows, id: string): boolean {
  return rows.keyOf(id) !== null;
}

/** Every session, even where table and indexes disagree; unordered. */
export function allSessions(rows: Rows): SessionRow[] {
  const sessions: SessionRow[] = [];
  for (const testimony of hear(rows, null).testimonies) {
    const id = idOf(rows, testimony);
    if (id !== null && isLive(testimony)) sessions.push(rowOf(rows, testimony, id));
  }
  return sessions;
}

/** Where the catalogue disagrees with the journal, or with itself. */
export function damageOf(rows: Rows, { key, id }: SessionRow): Damage[] {
  const wrong: string[] = [];
  const row = orNull(() => rows.tableRow(key));
  if (row?.id !== id || row.isTrashed || row.at === null || row.head === null || !isTimeOf(rows, row))
    wrong.push("sessions");
  if (orNull(() => rows.keyOf(id)) !== key) wrong.push("sessions_by_id");
  if (row && orNull(() => rows.isTimed(key, row.at ?? "", id)) !== true) wrong.push("sessions_by_time");
  if (row && orNull(() => rows.isOpen(key)) !== !row.closed) wrong.push("sessions_open");
  return wrong.map(damagedPart);
}

/** A row's time is that of the record it is valid for. A damaged record is no evidence against it. */
function isTimeOf(rows: Rows, { key, at, written, head }: TableRow): boolean {
  const record = recordAt(rows, key, head ?? 0);
  return !record || record.at === (written ?? at);
}

/** Null if its line is missing or damaged. */
export function recordAt(rows: Rows, key: number, seq: number): ReturnType<typeof recordOf> {
  const bytes = orNull(() => rows.readLine(key, seq));
  return bytes && recordOf({ seq, bytes });
}

/** A table or an index, in place of a segment. */
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

function quickly(rows: Rows, id: string): SessionRow | null {
  const key = orNull(() => rows.keyOf(id));
  const row = key ? orNull(() => rows.tableRow(key)) : null;
  return row?.id === id && !row.isTrashed ? sessionOf(row) : null;
}

/** For an id that does not exist, this costs only a walk through the catalogue. */
function carefully(rows: Rows, id: string): SessionRow | null {
  const { testimonies, unread } = hear(rows, id);
  for (const testimony of testimonies)
    if (idOf(rows, testimony) === id && isLive(testimony)) return rowOf(rows, testimony, id);
  // It cannot be ruled out that it exists.
  if (unread !== undefined) throw unread;
  return null;
}

/** What each of the three says about one key. */
interface Testimony {
  readonly key: number;
  row: TableRow | null;
  byId: IndexEntry | null;
  byTime: IndexEntry | null;
}

interface Hearing {
  readonly testimonies: Iterable<Testimony>;
  /** A damaged page of the table or of the index by time: without either, two of the three cannot agree. */
  readonly unread: unknown;
}

/** `id`: only what is said about this session. */
function hear(rows: Rows, id: string | null): Hearing {
  const heard = new Map<number, Testimony>();
  const of = (key: number): Testimony => {
    const known = heard.get(key) ?? { key, row: null, byId: null, byTime: null };
    if (key > 0) heard.set(key, known);
    return known;
  };
  asFarAsPossible(rows.entriesById(id), (entry) => {
    of(entry.key).byId = entry;
  });
  const untimed = asFarAsPossible(rows.entriesByTime(id), (entry) => {
    of(entry.key).byTime = entry;
  });
  const untold = asFarAsPossible(rows.tableRows(id), (row) => {
    of(row.key).row = row;
  });
  // Rows that a walk missed because it reached a damaged page.
  for (const testimony of heard.values()) testimony.row ??= orNull(() => rows.tableRow(testimony.key));
  return { testimonies: heard.values(), unread: untold ?? untimed };
}

/** From the journal itself, or else by two of the three. */
function idOf(rows: Rows, { key, row, byId, byTime }: Testimony): string | null {
  const owner = ownerOf(rows, key);
  if (owner !== null) return owner;
  const said = [byId?.id, byTime?.id, row?.id].filter((id) => typeof id === "string");
  return said.find((id, i) => said.indexOf(id) !== i) ?? said[0] ?? null;
}

/** Deleting a session removes it from both indexes, and its row says so: two of the three decide. */
function isLive({ row, byId, byTime }: Testimony): boolean {
  const says = [row !== null && !row.isTrashed, byId !== null, byTime !== null];
  return says.filter(Boolean).length >= 2;
}

/** The time comes from the record, which has a checksum. */
function rowOf(rows: Rows, { key, row, byTime }: Testimony, id: string): SessionRow {
  const head = row?.head ?? orNull(() => rows.newestSeq(key)) ?? 0;
  const said = row?.at ?? byTime?.at;
  const at = recordAt(rows, key, head)?.at ?? row?.written ?? said ?? "";
  const stamp = said === undefined || said === null || byTime?.at === at ? stampOf(at, 0) : said;
  return { key, id, at, stamp, head, closed: row?.closed ?? false, summary: row?.summary };
}
