import { join } from "node:path";
import type { Disk } from "../../disk/disk.ts";
import { errnoOf } from "../../errors.ts";
import type { FollowOptions } from "../../journal/contract.ts";
import { startAfter } from "../../journal/cursor.ts";
import { assertFormat } from "../../journal/lifecycle.ts";
import type { Scan } from "../../journal/lines/scan.ts";
import { decideTail, type TailContext } from "../../journal/lines/tail.ts";
import type { JournalRecord } from "../../journal/record.ts";
import { cursorStale } from "../../journal/refusals.ts";
import { identity } from "../lease-note.ts";
import { Wake, watchOrPoll } from "../wake.ts";
import { beginsAtOrBefore, readHistory } from "./files/history.ts";
import {
  chainSegments,
  contextOf,
  type Link,
  listSegments,
  readHeader,
  type Segment,
  scanSegment,
} from "./files/segment.ts";

/** A watch can miss changes, so followers also poll this often (S19). */
const POLL_MS = 250;
/** An unfinished line is read again on every poll; garbage larger than this is not. */
const UNREAD_BYTES = 1024 * 1024;

/** The session's writer, if it is in this process: its followers see records as soon as they are acknowledged. */
export interface LiveWriter {
  readonly acknowledged: number;
  onAcknowledged(listener: () => void): () => void;
}

export interface FollowSource {
  readonly disk: Disk;
  readonly id: string;
  readonly folder: string;
  readonly live: () => LiveWriter | undefined;
}

/**
 * Yields every record after a position once, in order, as it arrives. Keeps no bytes across a wait: bytes that a heal
 * cut off would be joined to what came after them (S19).
 */
export async function* followSession(source: FollowSource, options: FollowOptions): AsyncGenerator<JournalRecord> {
  const { disk, folder } = source;
  const { signal } = options;
  const wake = new Wake(signal);
  // The watch starts before the first read, or a change between the two would be missed.
  const unwatch = watchOrPoll(disk, folder, wake.up);
  const own = identityOf(disk, folder);
  let live: LiveWriter | undefined;
  let unlisten: (() => void) | undefined;
  try {
    let last = await startAfter(source.id, options.after ?? 0, (seq) => crcAt(source, seq));
    let given = 0;
    let place: ReadPlace | null = null;
    while (!signal?.aborted) {
      if (source.live() !== live) {
        unlisten?.();
        live = source.live();
        unlisten = live?.onAcknowledged(wake.up);
      }
      const look = await lookFurther(source, place, last, given, live);
      // Another folder with the same name is another session.
      if (look === "gone" || identityOf(disk, folder) !== own) return;
      for (const record of look.records) {
        if (signal?.aborted) return;
        last = record.seq;
        given = last;
        yield record;
      }
      place = look.place;
      if (look.more) continue;
      const pollAt = performance.now() + POLL_MS;
      // While the writer is in this process, a change of the folder that it does not announce is no new record.
      do await wake.wait(Math.max(0, pollAt - performance.now()));
      while (
        !signal?.aborted &&
        live &&
        live === source.live() &&
        live.acknowledged <= last &&
        performance.now() < pollAt
      );
    }
  } finally {
    unlisten?.();
    unwatch();
    wake.end();
  }
}

function identityOf(disk: Disk, folder: string): string {
  const stat = disk.stat(folder);
  return stat ? identity(stat) : "gone";
}

interface ReadPlace {
  readonly number: number;
  readonly offset: number;
  /**
   * What the segment looked like when much of it after the offset was not a record: it is not read again until that
   * changes.
   */
  readonly seen?: string | undefined;
}

interface Look {
  readonly records: readonly JournalRecord[];
  readonly place: ReadPlace;
  /** There is more to read without waiting. */
  readonly more: boolean;
}

async function lookFurther(
  source: FollowSource,
  place: ReadPlace | null,
  last: number,
  given: number,
  live: LiveWriter | undefined,
): Promise<Look | "gone"> {
  const { disk, folder } = source;
  try {
    const chain = await chainFrom(disk, folder, place, last);
    const segment = chain[0];
    if (!segment) return "gone";
    const offset = segment.number === place?.number ? place.offset : 0;
    // The next segment was checked before this one is read, so this one is read to its very end before it is left.
    const next = chain[1];
    const context = contextOf(chain, 0);
    const limit = live?.acknowledged ?? Number.POSITIVE_INFINITY;
    if (offset === 0) assertKnownFormat(disk, folder, segment);
    const looks = looksOf(disk, folder, chain, limit);
    if (place?.seen !== undefined && place.seen === looks) return { records: [], place, more: false };
    const scan = await scanSegment(disk, folder, segment, offset);
    // The last record yielded was not acknowledged, and its writer has been replaced.
    const overtaken = place?.offset === 0 ? scan.records[0] : next?.header;
    if (overtaken && overtaken.seq <= given) throw cursorStale(source.id, String(given));
    const look = take(scan, segment, context, next, last, limit);
    return scan.end - look.place.offset > UNREAD_BYTES ? { ...look, place: { ...look.place, seen: looks } } : look;
  } catch (error) {
    if (errnoOf(error) !== "ENOENT") throw error;
    if (disk.stat(folder) === null) return "gone";
    // Packed or replaced between listing and reading.
    return { records: [], place: place ?? { number: 1, offset: 0 }, more: false };
  }
}

/**
 * From the segment where the follower is, or has to start. Most polls find nothing newer, and need not read its header
 * again.
 */
async function chainFrom(disk: Disk, folder: string, place: ReadPlace | null, last: number): Promise<readonly Link[]> {
  if (!place) return chainSegments(disk, folder, beginsAtOrBefore(last + 1));
  const newest = listSegments(disk, folder).at(-1);
  if (newest?.number === place.number) return [{ ...newest, header: null, begins: null, isLost: false }];
  return chainSegments(disk, folder, ({ number }) => number <= place.number);
}

function assertKnownFormat(disk: Disk, folder: string, segment: Link): void {
  const header = segment.header ?? readHeader(disk, folder, segment);
  if (header) assertFormat(header);
}

/** Everything that can change what is read from the chain's first segment; undefined if unknown. */
function looksOf(disk: Disk, folder: string, chain: readonly Link[], limit: number): string | undefined {
  const { name, tail } = chain[0]!;
  const stat = disk.stat(join(folder, name));
  return stat ? [name, stat.size, stat.mtimeMs, tail?.offset, chain[1]?.number, limit].join(":") : undefined;
}

function take(
  scan: Scan,
  segment: Segment,
  context: TailContext,
  next: Segment | undefined,
  last: number,
  limit: number,
): Look {
  if (scan.unended && !context.sealed) {
    // The newline has not arrived yet.
    scan.records.pop();
    scan.end = scan.offsets.pop()!;
  }
  const tail = decideTail(scan, { ...context, previous: scan.offsets[0] === 0 ? undefined : last });
  let count = tail.keep;
  while (count > 0 && scan.records[count - 1]!.seq > limit) count--;
  const all = count === tail.keep;
  const offset = all ? (tail.cut ?? scan.end) : scan.offsets[count]!;
  const records = scan.records.slice(0, count).filter((record) => record.seq > last);
  const leave = next !== undefined && all;
  return {
    records,
    place: leave ? { number: next.number, offset: 0 } : { number: segment.number, offset },
    more: leave,
  };
}

async function crcAt({ disk, folder }: FollowSource, seq: number): Promise<string | null> {
  for await (const record of readHistory(disk, folder, seq)) return record.seq === seq ? record.crc : null;
  return null;
}
