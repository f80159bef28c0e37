/**
 * The columns that keep lists cheap. Pure.
 *
 * `closed` now means that the row is settled: it is as of the session's newest record, and the next writer unsets
 * it in the same statement. So lists look for newer records only in rows that are not closed, which are those being
 * written. A session that its writer left without closing it is settled too, with its head in `unclosed_head`: the
 * session was closed by its writer if `closed AND unclosed_head IS DISTINCT FROM head`.
 *
 * While a session is being written, only the `live_…` columns change. They are in no index, so that these updates stay
 * on their page (HOT). They count if `live_head > head`, and settling moves them to the indexed columns. Workers of an
 * earlier version know none of this: they write `at`, `head` and `summary` directly, which then have the higher head.
 *
 * `newest` is the newest stamp that a worker has given out: lists of unsettled rows cannot be asked for it cheaply.
 */
export function settledRows(schema: string): string {
  return `
    ALTER TABLE ${schema}.catalogue ADD COLUMN unclosed_head bigint, ADD COLUMN live_at text COLLATE "C",
      ADD COLUMN live_written text, ADD COLUMN live_head bigint, ADD COLUMN live_summary jsonb, SET (fillfactor = 50);
    ALTER TABLE ${schema}.workers ADD COLUMN newest text COLLATE "C";`;
}
