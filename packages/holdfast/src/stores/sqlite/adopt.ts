import { setImmediate as breathe } from "node:timers/promises";
import { HoldfastError } from "../../errors.ts";
import type { Ledger } from "../../journal/ledger.ts";
import type { Segment } from "../../journal/lines/account.ts";
import { assertFollows, nothingToAdopt, segmentAt, type VerbatimLine } from "../../journal/lines/verbatim.ts";
import { sessionExists } from "../../journal/refusals.ts";
import type { Database } from "./database/database.ts";
import type { Wal } from "./database/wal.ts";
import { isKnown } from "./rows/catalogue.ts";

/** The approximate maximum of one transaction, so that no writer waits long. */
const BATCH_BYTES = 1024 * 1024;
const BATCH_ROWS = 512;

/**
 * Creates a session with exactly these lines. Until they are complete it is in the trash, where nobody sees it, and
 * where an unfinished one is collected like any other; a last transaction takes it out. Runs under the lease. Throws
 * SQLite's errors and SESSION_EXISTS.
 */
export async function adoptSession(
  place: {
    readonly database: Database;
    readonly wal: Wal;
    readonly ledger: Ledger;
    readonly id: string;
    readonly nowMs: number;
  },
  lines: AsyncIterable<readonly VerbatimLine[]>,
): Promise<void> {
  const { database, wal, ledger, id, nowMs } = place;
  const { rows } = database;
  const what = "adopt a session";
  const key = database.attempt(what, () =>
    database.transaction(() => {
      if (isKnown(rows, id)) throw sessionExists(id);
      return rows.insertTrashed(id, nowMs);
    }),
  );
  let segment: Segment | null = null;
  let count = 0;
  let closed = false;
  const put = async (some: readonly VerbatimLine[], bytes: number): Promise<void> => {
    let newest: Segment | null = segment;
    const begun: Segment[] = [];
    for (const { record } of some) {
      const begins = segmentAt(record, newest);
      if (begins) begun.push(begins);
      newest = begins ?? newest;
    }
    database.attempt(what, () =>
      database.transaction(() => {
        for (const one of begun) rows.insertSegment(key, one);
        for (const line of some) rows.insertLine(key, line.record.seq, line.bytes);
      }),
    );
    segment = newest;
    count += some.length;
    wal.grew(bytes);
    await breathe();
  };

  let waiting: VerbatimLine[] = [];
  let bytes = 0;
  for await (const some of lines) {
    for (const line of some) {
      assertFollows(line, id, ledger.head);
      ledger.absorb(line.record);
      closed = line.record.kind === "closed";
      waiting.push(line);
      bytes += line.bytes.length;
      if (bytes < BATCH_BYTES && waiting.length < BATCH_ROWS) continue;
      await put(waiting, bytes);
      waiting = [];
      bytes = 0;
    }
  }
  if (waiting.length > 0) await put(waiting, bytes);
  if (count === 0) throw nothingToAdopt(id);
  database.attempt(what, () =>
    database.transaction(() => {
      if (isKnown(rows, id)) throw sessionExists(id);
      if (rows.countLines(key) !== count) throw collected(id);
      rows.updateSession(key, ledger, closed, ledger.row);
      rows.untrash(key);
    }),
  );
}

function collected(id: string): HoldfastError {
  const message = `Session ${id} was not adopted: a concurrent garbage collection removed the part copied so far. Nothing else is affected. Try again.`;
  return new HoldfastError("STORE_IO", message, { session: id });
}
