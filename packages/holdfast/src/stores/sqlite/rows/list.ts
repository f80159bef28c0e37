import type { ListOptions, Summariser } from "../../../journal/contract.ts";
import { recordOf } from "../../../journal/lines/account.ts";
import { RowFold } from "../../../journal/list-row.ts";
import type { Json } from "../../../journal/record.ts";
import { type ListPage, type ListPlace, newestFirst, pageOf, parseListCursor } from "../../page.ts";
import { isIoError } from "../database/failure.ts";
import { allSessions } from "./catalogue.ts";
import { newestSeq, readSome } from "./reader.ts";
import type { Rows } from "./rows.ts";
import type { SessionRow } from "./session-row.ts";

/** Later than any time. */
const START: ListPlace = { at: "\uffff", id: "" };

/** A row as listed. */
interface Row extends SessionRow {
  readonly summary: Json;
  readonly unreadable?: { readonly code: "STORE_IO"; readonly message: string };
}

/**
 * Newest first. For rows that are behind their journals, the later lines are folded in: less than a second's worth, for
 * sessions that are being written or whose writer died (S20). If table and indexes disagree, the whole table and the
 * journals themselves are consulted (P9).
 */
export function listSessions(rows: Rows, summariser: Summariser | undefined, options: ListOptions): ListPage {
  const after = options.after === undefined ? START : parseListCursor(options.after);
  const update = (row: SessionRow): Row => current(rows, row, summariser);
  const sorted = rows.isSound ? byIndex(rows, after, update) : allSessions(rows).map(update).sort(newestFirst);
  return pageOf(sorted, options);
}

/** In the order of the index; rows that are behind come where their newest lines put them. */
function* byIndex(rows: Rows, after: ListPlace, update: (row: SessionRow) => Row): Generator<Row> {
  const open = rows.open();
  const moved = open.map(update).sort(newestFirst);
  const skip = new Set(open.map(({ key }) => key));
  for (const row of rows.listed(after.at, after.id)) {
    if (skip.has(row.key)) continue;
    const shown = isUsable(row) ? row : update(row);
    while (moved[0] && newestFirst(moved[0], shown) < 0) yield moved.shift()!;
    yield shown;
  }
  yield* moved;
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
    if (isUsable(row)) return carryOn(rows, row, summariser);
    const rebuilt = carryOn(rows, { ...row, head: 0, summary: null }, summariser);
    return { ...rebuilt, stamp: row.stamp || rebuilt.stamp };
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
