import { dirname } from "node:path";
import type { Disk } from "../../disk/disk.ts";
import { isHoldfastError } from "../../errors.ts";
import type { FollowOptions } from "../../journal/contract.ts";
import { recordOf } from "../../journal/lines/account.ts";
import { TRAILER_BYTES, TRAILER_START } from "../../journal/lines/decode.ts";
import type { JournalRecord } from "../../journal/record.ts";
import { cursorStale, sessionNotFound } from "../../journal/refusals.ts";
import { Wake, watchOrPoll } from "../wake.ts";
import type { Reads } from "./database/database.ts";
import { findSession } from "./rows/catalogue.ts";
import { newestSeq, readChunks } from "./rows/reader.ts";

/** A watch can miss changes, so followers look this often as well (S19). */
const POLL_MS = 250;
/**
 * The log is written before the commit is published in shared memory, which no watch sees: so a look comes a little
 * after the news, and another one after that, for a writer that was held up between the two. Many writes in this time
 * are one piece of news.
 */
const LOOK_MS = 1;
const LOOK_AGAIN_MS = 15;

/** The followers of a store, and the one watch that all of them share. */
export class Followers {
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

  /** Something of this session has changed, in this process. */
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
  readonly followers: Followers;
  /** What followers may see of a session whose writer is in this process. */
  readonly acknowledged: (id: string) => number;
}

/** Every record after a place, once, in order, as it comes; whole units, since a unit is one commit. */
export async function* followSession(
  source: FollowSource,
  id: string,
  options: FollowOptions,
): AsyncGenerator<JournalRecord> {
  const { database, followers } = source;
  const { signal } = options;
  const wake = new Wake(signal);
  // The watch comes before the first look, or else a change between the two would go unseen.
  followers.add(id, wake);
  try {
    if (signal?.aborted) return;
    const session = await database.read("look for the session", (rows) => findSession(rows, id));
    if (!session) throw sessionNotFound(id);
    const { key, head } = session;
    let last = await startAfter(source, id, key, options.after ?? 0);
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
    // The store was closed while this one was looking.
    if (!(signal?.aborted && isHoldfastError(error, "STORE_CLOSED"))) throw error;
  } finally {
    followers.remove(wake);
    wake.end();
  }
}

/** The seq to start after. A cursor is good only while its record is the one that it was taken from. */
async function startAfter(source: FollowSource, id: string, key: number, after: number | string): Promise<number> {
  if (typeof after === "number") return Math.max(0, after);
  const { database } = source;
  const dash = after.indexOf("-");
  const seq = Number(after.slice(0, dash));
  if (dash > 0 && Number.isSafeInteger(seq) && seq > 0) {
    const line = await database.read("look for the cursor", (rows) => rows.readLine(key, seq));
    if (line && crcOf(line) === after.slice(dash + 1)) return seq;
  }
  throw cursorStale(id, after);
}

/** As it stands in the line: a cursor stays good when the record that it names is damaged later. */
function crcOf(line: Buffer): string {
  return line.toString("latin1", line.length - TRAILER_BYTES + TRAILER_START.length, line.length - 2);
}
