import { isHoldfastError } from "../../errors.ts";
import type { FollowOptions } from "../../journal/contract.ts";
import { crcIn, startAfter } from "../../journal/cursor.ts";
import { recordOf } from "../../journal/lines/account.ts";
import type { JournalRecord } from "../../journal/record.ts";
import { sessionNotFound } from "../../journal/refusals.ts";
import { Wake } from "../wake.ts";
import type { Database } from "./database/database.ts";
import { findSession } from "./rows/catalogue.ts";
import { newestSeq, readChunks } from "./rows/reader.ts";

/** The followers of the sessions of one file. */
export class Followers {
  readonly #wakes = new Map<Wake, string>();

  add(id: string, wake: Wake): void {
    this.#wakes.set(wake, id);
  }

  remove(wake: Wake): void {
    this.#wakes.delete(wake);
  }

  /** Something in this session has changed. */
  wake(id: string): void {
    for (const [wake, of] of this.#wakes) if (of === id) wake.up();
  }
}

export interface FollowSource {
  readonly database: Database;
  readonly followers: Followers;
  /** Followers see what the writer of a session has acknowledged. */
  readonly journals: ReadonlyMap<string, { readonly acknowledged: number }>;
}

/** Yields every record after a position once, in order, as it arrives; whole units, because a unit is one commit. */
export async function* followSession(
  source: FollowSource,
  id: string,
  options: FollowOptions,
): AsyncGenerator<JournalRecord> {
  const { database, followers } = source;
  const { signal } = options;
  const wake = new Wake(signal);
  // Before the first read, or a change between the two would be missed.
  followers.add(id, wake);
  try {
    if (signal?.aborted) return;
    const session = database.attempt("look for the session", (rows) => findSession(rows, id));
    if (!session) throw sessionNotFound(id);
    const { key, head } = session;
    let last = await startAfter(id, options.after ?? 0, async (seq) => {
      const line = database.attempt("look for the cursor", (rows) => rows.readLine(key, seq));
      return line && crcIn(line);
    });
    while (!signal?.aborted) {
      const seen = database.attempt("follow the journal", (rows) => ({
        newest: newestSeq(rows, key) || head,
        there: findSession(rows, id)?.key === key,
      }));
      const to = Math.min(seen.newest, source.journals.get(id)?.acknowledged ?? seen.newest);
      for await (const lines of readChunks(database, { key, from: last + 1, to })) {
        for (const line of lines) {
          const record = recordOf(line);
          if (signal?.aborted) return;
          last = line.seq;
          if (record) yield record;
        }
      }
      if (!seen.there) return;
      if (!signal?.aborted) await wake.wait();
    }
  } catch (error) {
    // The store was closed during the read.
    if (!(signal?.aborted && isHoldfastError(error, "STORE_CLOSED"))) throw error;
  } finally {
    followers.remove(wake);
    wake.end();
  }
}
