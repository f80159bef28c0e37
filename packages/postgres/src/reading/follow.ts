import { isHoldfastError, type JournalRecord } from "holdfast";
import { crcIn, cursorStale, recordOf, sessionNotFound, startAfter, Wake } from "holdfast/internal";
import type { FollowOptions } from "holdfast/store";
import type { Lines } from "./lines.ts";

/** Notifications can be lost with a connection, so followers also poll (S27). */
const POLL_MS = 1000;

/** Followers of this store's sessions, in this process. */
export class PostgresFollowers {
  readonly #wakes = new Map<string, Set<Wake>>();
  readonly #onFollowed: (id: string, isFollowed: boolean) => void;

  /** `onFollowed` is called when the first follower of a session comes, and when the last one leaves. */
  constructor(onFollowed: (id: string, isFollowed: boolean) => void) {
    this.#onFollowed = onFollowed;
  }

  add(id: string, wake: Wake): void {
    const wakes = this.#wakes.get(id) ?? new Set();
    this.#wakes.set(id, wakes.add(wake));
    if (wakes.size === 1) this.#onFollowed(id, true);
  }

  remove(id: string, wake: Wake): void {
    const wakes = this.#wakes.get(id);
    if (!wakes?.delete(wake) || wakes.size > 0) return;
    this.#wakes.delete(id);
    this.#onFollowed(id, false);
  }

  /** This session has changed; null: any may have. */
  wake(id: string | null): void {
    const changed = id === null ? [...this.#wakes.values()] : [this.#wakes.get(id) ?? []];
    for (const wakes of changed) for (const wake of wakes) wake.up();
  }
}

export interface FollowSource {
  /** Where a session is, and its newest seq; also of one in the trash, by its place. */
  readonly sessions: {
    find(id: string): Promise<{ readonly place: string; readonly head: number } | null>;
    head(place: string): Promise<number | null>;
  };
  readonly lines: Lines;
  readonly followers: PostgresFollowers;
  /** How far followers may see, if the session's writer is in this store. */
  readonly acknowledged: (id: string) => number;
}

/**
 * Yields every record after a position, once, in order, as it arrives. A unit is one commit, so units are never split.
 */
export async function* followSession(
  source: FollowSource,
  id: string,
  options: FollowOptions,
): AsyncGenerator<JournalRecord> {
  const { sessions, lines, followers } = source;
  const { signal } = options;
  const wake = new Wake(signal);
  // Register before the first read, or a change in between goes unnoticed.
  followers.add(id, wake);
  try {
    if (signal?.aborted) return;
    const found = await sessions.find(id);
    if (!found) throw sessionNotFound(id);
    const { place } = found;
    /** Of the last record, if it is known: it must stay the same. */
    let lastCrc: string | null = null;
    let last = await startAfter(id, options.after ?? 0, async (seq) => {
      const line = await lines.one(place, seq);
      lastCrc = line && crcIn(line);
      return lastCrc;
    });
    while (!signal?.aborted) {
      const now = await sessions.find(id);
      const isThere = now?.place === place;
      const newest = isThere ? now.head : ((await sessions.head(place)) ?? last);
      const seen = lastCrc === null ? null : cursorFrom(last, lastCrc);
      // The server failed over and lacks the newest records. Do not yield records twice, nor skip those that replace
      // them.
      if (seen !== null && newest < last) throw cursorStale(id, seen);
      // A new session with the same id has its own writer.
      const to = isThere ? Math.min(newest, source.acknowledged(id)) : newest;
      // With the line before them, to see that it is still the same.
      const unread = to > last ? lines.read(place, seen === null ? last + 1 : last, to) : [];
      for await (const some of unread) {
        if (seen !== null && some[0] && some[0].seq <= last && crcIn(some[0].bytes) !== lastCrc)
          throw cursorStale(id, seen);
        for (const line of some) {
          if (signal?.aborted) return;
          if (line.seq <= last) continue;
          last = line.seq;
          lastCrc = crcIn(line.bytes);
          const record = recordOf(line);
          if (record) yield record;
        }
      }
      if (!isThere) return;
      if (!signal?.aborted) await wake.wait(POLL_MS);
    }
  } catch (error) {
    // The store closed during the read.
    if (!(signal?.aborted && isHoldfastError(error))) throw error;
  } finally {
    followers.remove(id, wake);
    wake.end();
  }
}

function cursorFrom(seq: number, crc: string): string {
  return `${seq}-${crc}`;
}
