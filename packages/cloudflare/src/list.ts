import { type ListPage, newestFirst, pageOf, parseListCursor, RowFold, recordOf } from "holdfast/internal";
import type { ListOptions, Summariser } from "holdfast/store";
import type { Rows, SessionRow } from "./rows.ts";

/** Later than any time. */
const START = { at: "\uffff", id: "" };

/**
 * Newest first. Sessions that no writer has closed come where their newest lines put them: their rows are behind by
 * less than a second's worth of records, which are folded in.
 */
export function listSessions(rows: Rows, summariser: Summariser | undefined, options: ListOptions): ListPage {
  return pageOf(inOrder(rows, summariser, options.after), options);
}

function* inOrder(rows: Rows, summariser: Summariser | undefined, after: string | undefined): Generator<SessionRow> {
  const { at, id } = after === undefined ? START : parseListCursor(after);
  const open = rows.open().map((row) => currentRow(rows, row, summariser));
  open.sort(newestFirst);
  for (const row of rows.closed(at, id)) {
    while (open[0] && newestFirst(open[0], row) < 0) yield open.shift()!;
    yield row;
  }
  yield* open;
}

function currentRow(rows: Rows, row: SessionRow, summariser: Summariser | undefined): SessionRow {
  const fold = new RowFold(row.head > 0 ? row : null, summariser);
  for (const lines of rows.readChunks(row.key, row.head + 1, rows.newestSeq(row.key)))
    for (const line of lines) fold.add(line.seq, recordOf(line));
  return { ...row, ...fold.row };
}
