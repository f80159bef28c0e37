import { setImmediate as breathe } from "node:timers/promises";
import type { VerbatimLine } from "../../journal/contract.ts";
import type { Ledger } from "../../journal/ledger.ts";
import { adoptedBatches } from "../../journal/lines/verbatim.ts";
import { sessionExists } from "../../journal/refusals.ts";
import type { Database } from "./database/database.ts";
import type { Wal } from "./database/wal.ts";
import { isKnown } from "./rows/catalogue.ts";

/** The approximate maximum of one transaction, so that no writer waits long. */
const BATCH = { bytes: 1024 * 1024, lines: 512 };

/**
 * Creates a session with exactly these lines. Until they are complete it is in the trash, where nobody sees it, and
 * where an unfinished one is collected like any other; a last transaction takes it out. Runs under the lease, so nobody
 * collects it meanwhile. Throws SQLite's errors and SESSION_EXISTS.
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
  let closed = false;
  for await (const batch of adoptedBatches(id, lines, ledger, BATCH)) {
    database.attempt(what, () =>
      database.transaction(() => {
        for (const segment of batch.segments) rows.insertSegment(key, segment);
        for (const line of batch.lines) rows.insertLine(key, line.record.seq, line.bytes);
      }),
    );
    closed = batch.lines.at(-1)!.record.kind === "closed";
    wal.grew(batch.bytes);
    await breathe();
  }
  database.attempt(what, () =>
    database.transaction(() => {
      if (isKnown(rows, id)) throw sessionExists(id);
      rows.updateSession(key, ledger, closed, ledger.row);
      rows.untrash(key);
    }),
  );
}
