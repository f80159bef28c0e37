import { dirname } from "node:path";
import type { Disk } from "../../disk/disk.ts";
import { isHoldfastError } from "../../errors.ts";
import type { FollowOptions } from "../../journal/contract.ts";
import { crcIn, startAfter } from "../../journal/cursor.ts";
import { recordOf } from "../../journal/lines/account.ts";
import type { JournalRecord } from "../../journal/record.ts";
import { sessionNotFound } from "../../journal/refusals.ts";
import { Wake, watchOrPoll } from "../wake.ts";
import type { Reads } from "./database/database.ts";
import { findSession } from "./rows/catalogue.ts";
import { newestSeq, readChunks } from "./rows/reader.ts";

/** A watch can miss changes, so followers also poll this often (S19). */
const POLL_MS = 250;
/**
 * The log is written before the commit is published in shared memory, which no watch sees. So a follower reads shortly
 * after the notification, and once more after that, for a writer that was delayed between the two. Several writes in
 * this time count as one notification.
 */
const LOOK_MS = 1;
const LOOK_AGAIN_MS = 15;

/** The followers of a store, and the one watch they all share. */
export class SqliteFollowers {
  readonly #disk: Disk;
  readonly #folder: string;
  readonly #wakes = new Map<Wake, string>();
  #unwatch: (() => void) | null = null;
  #look: NodeJS.Timeout | null = null;
  #again: NodeJS.Timeout | null = null;

  constructor(disk: Disk, file: string) {
    this.#disk = disk;
    this.#folder = dirname(file);
  }

  add(id: string, wake: Wake): void {
    this.#unwatch ??= watchOrPoll(this.#disk, this.#folder, () => this.#news());
    this.#wakes.set(wake, id);
  }

  remove(wake: Wake): void {
    this.#wakes.delete(wake);
    if (this.#wakes.size > 0) return;
    this.#unwatch?.();
    this.#unwatch = null;
    if (this.#look) clearTimeout(this.#look);
    if (this.#again) clearTimeout(this.#again);
    this.#look = this.#again = null;
  }

  /** Something in this session has changed, in this process. */
  wake(id: string): void {
    for (const [wake, of] of this.#wakes) if (of === id) wake.up();
  }

  #news(): void {
    this.#look ??= setTimeout(() => {
      this.#look = null;
      this.#wakeAll();
    }, LOOK_MS);
    if (this.#again) this.#again.refresh();
    else this.#again = setTimeout(() => this.#wakeAll(), LOOK_AGAIN_MS);
  }

  #wakeAll(): void {
    for (const wake of this.#wakes.keys()) wake.up();
  }
}

export interface FollowSource {
  readonly database: Reads;
  readonly followers: SqliteFollowers;
  /** What followers may see of a session whose writer is in this process. */
  readonly acknowledged: (id: string) => number;
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
  // The watch starts before the first read, or a change between the two would be missed.
  followers.add(id, wake);
  try {
    if (signal?.aborted) return;
    const session = await database.read("look for the session", (rows) => findSession(rows, id));
    if (!session) throw sessionNotFound(id);
    const { key, head } = session;
    let last = await startAfter(id, options.after ?? 0, async (seq) => {
      const line = await database.read("look for the cursor", (rows) => rows.readLine(key, seq));
      return line && crcIn(line);
    });
    while (!signal?.aborted) {
      const seen = await database.read("follow the journal", (rows) => ({
        newest: newestSeq(rows, key) || head,
        there: findSession(rows, id)?.key === key,
      }));
      const to = Math.min(seen.newest, source.acknowledged(id));
      for await (const lines of readChunks(database, { key, from: last + 1, to })) {
        for (const line of lines) {
          const record = recordOf(line);
          if (signal?.aborted) return;
          last = line.seq;
          if (record) yield record;
        }
      }
      if (!seen.there) return;
      if (!signal?.aborted) await wake.wait(POLL_MS);
    }
  } catch (error) {
    // The store was closed during the read.
    if (!(signal?.aborted && isHoldfastError(error, "STORE_CLOSED"))) throw error;
  } finally {
    followers.remove(wake);
    wake.end();
  }
}
