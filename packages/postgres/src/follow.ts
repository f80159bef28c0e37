import { type FollowOptions, isHoldfastError, type JournalRecord } from "holdfast";
import { cursorStale, recordOf, sessionNotFound, TRAILER_BYTES, TRAILER_START, Wake } from "holdfast/kit";
import type { Lines } from "./lines.ts";
import type { Places } from "./places.ts";

/** News can be lost with a connection, so followers look this often as well (S27). */
const POLL_MS = 1000;

/** Those who follow sessions of a store in this process. */
export class Followers {
  readonly #wakes = new Map<Wake, string>();

  add(id: string, wake: Wake): void {
    this.#wakes.set(wake, id);
  }

  remove(wake: Wake): void {
    this.#wakes.delete(wake);
  }

  /** Something of this session has changed; null: of any. */
  wake(id: string | null): void {
    for (const [wake, of] of this.#wakes) if (id === null || of === id) wake.up();
  }
}

export interface FollowSource {
  readonly places: Places;
  readonly lines: Lines;
  readonly followers: Followers;
  /** What followers may see of a session whose writer is in this store. */
  readonly acknowledged: (id: string) => number;
}

/** Every record after a place, once, in order, as it comes; whole units, since a unit is one commit. */
export async function* followSession(
  source: FollowSource,
  id: string,
  options: FollowOptions,
): AsyncGenerator<JournalRecord> {
  const { places, lines, followers } = source;
  const { signal } = options;
  const wake = new Wake(signal);
  // Before the first look, or else a change between the two would go unseen.
  followers.add(id, wake);
  try {
    if (signal?.aborted) return;
    const found = await places.find(id);
    if (!found) throw sessionNotFound(id);
    const { place } = found;
    let last = await startAfter(lines, id, place, options.after ?? 0);
    let lastCrc: string | null = null;
    while (!signal?.aborted) {
      const now = await places.find(id);
      const isThere = now?.place === place;
      const newest = isThere ? now.head : ((await places.head(place)) ?? last);
      const seen = lastCrc === null ? null : cursorFrom(last, lastCrc);
      // A server that took over without the newest records: they are not given out twice, nor are others in their place passed over.
      if (seen !== null && newest < last) throw cursorStale(id, seen);
      // A new session of the same id has a writer of its own.
      const to = isThere ? Math.min(newest, source.acknowledged(id)) : newest;
      for await (const some of lines.read(place, seen === null || to <= last ? last + 1 : last, to)) {
        if (seen !== null && some[0] && some[0].seq <= last && crcOf(some[0].bytes) !== lastCrc)
          throw cursorStale(id, seen);
        for (const line of some) {
          if (signal?.aborted) return;
          if (line.seq <= last) continue;
          last = line.seq;
          lastCrc = crcOf(line.bytes);
          const record = recordOf(line);
          if (record) yield record;
        }
      }
      if (!isThere) return;
      if (!signal?.aborted) await wake.wait(POLL_MS);
    }
  } catch (error) {
    // The store was closed while this one was looking.
    if (!(signal?.aborted && isHoldfastError(error))) throw error;
  } finally {
    followers.remove(wake);
    wake.end();
  }
}

/** The seq to start after. A cursor is good only while its record is the one that it was taken from. */
async function startAfter(lines: Lines, id: string, place: string, after: number | string): Promise<number> {
  if (typeof after === "number") return Math.max(0, after);
  const dash = after.indexOf("-");
  const seq = Number(after.slice(0, dash));
  if (dash > 0 && Number.isSafeInteger(seq) && seq > 0) {
    const line = await lines.one(place, seq);
    if (line && crcOf(line) === after.slice(dash + 1)) return seq;
  }
  throw cursorStale(id, after);
}

function cursorFrom(seq: number, crc: string): string {
  return `${seq}-${crc}`;
}

/** As it stands in the line. */
function crcOf(line: Buffer): string {
  return line.toString("latin1", line.length - TRAILER_BYTES + TRAILER_START.length, line.length - 2);
}
