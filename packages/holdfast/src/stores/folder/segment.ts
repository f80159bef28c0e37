import { join } from "node:path";
import { setImmediate as nextTick } from "node:timers/promises";
import type { Disk, DiskFile } from "../../disk/disk.ts";
import { errnoOf } from "../../errors.ts";
import { decodeLine, LINE_START } from "../../journal/decode.ts";
import { type Place, placeBefore } from "../../journal/lifecycle.ts";
import { type JournalRecord, RECORD_BYTES_MAX } from "../../journal/record.ts";
import { Scan } from "../../journal/scan.ts";
import { decideTail, type TailContext, type Tail as Verdict } from "../../journal/tail.ts";
import { readFrames } from "./frames.ts";

/** One file of a journal. */
export interface Segment {
  readonly number: number;
  readonly name: string;
  readonly packed: boolean;
  /** Left by a writer that did not close it: the segment ends at that offset, and there the bytes of this file follow, if there is one. */
  readonly tail?: Tail;
}

interface Tail {
  readonly name: string | null;
  readonly offset: number;
}

/** A segment that counts, with its header; null if that is damaged. */
export interface Link extends Segment {
  readonly header: JournalRecord | null;
}

const NAME = /^(\d{6}|[1-9]\d{6,})\.jsonl(\.zst)?$/;
const TAIL_NAME = /^(\d{6}|[1-9]\d{6,})\.jsonl\.tail-(0|[1-9]\d{0,14})$/;
const CHUNK_BYTES = 1024 * 1024;
const NEWLINE = 0x0a;

const FIRST = "000001.jsonl";

export function segmentName(number: number): string {
  if (number === 1) return FIRST;
  return `${String(number).padStart(6, "0")}.jsonl`;
}

/** The number in the name of a segment, packed or not; null if it is none. */
export function segmentNumber(name: string): number | null {
  const match = NAME.exec(name);
  return match ? Number(match[1]) : null;
}

export function tailName(segment: string, offset: number): string {
  return `${segment}.tail-${offset}`;
}

/** The segments of a session, in the order of their numbers. Where a plain and a packed one of one number are both present, the plain one counts (S17). */
export function listSegments(disk: Disk, folder: string): Segment[] {
  const found = new Map<number, Segment>();
  const tails: [number: number, tail: Tail][] = [];
  for (const name of disk.list(folder)) {
    const match = NAME.exec(name);
    if (match) {
      const segment = { number: Number(match[1]), name, packed: match[2] !== undefined };
      if (!segment.packed || !found.has(segment.number)) found.set(segment.number, segment);
      continue;
    }
    const tail = TAIL_NAME.exec(name);
    if (tail) tails.push([Number(tail[1]), { name, offset: Number(tail[2]) }]);
  }
  for (const [number, tail] of tails) {
    const segment = found.get(number);
    // Of several, the one that was made last knew of more that was durable.
    const isNewer = tail.offset > (segment?.tail?.offset ?? -1);
    if (segment && !segment.packed && isNewer) found.set(number, { ...segment, tail });
  }
  return [...found.values()].sort((a, b) => a.number - b.number);
}

/**
 * The segments that count, in order, with their headers. A segment goes on from the one before it, or from the place that its header names: what lies between, or behind that place, was written by
 * a writer that had been replaced. Goes back from the newest to the first, or until `isFirst` says that it is enough.
 */
export function chainSegments(disk: Disk, folder: string, isFirst: (link: Link) => boolean = () => false): Link[] {
  const chain: Link[] = [];
  let place: Place | null = null;
  for (const segment of listSegments(disk, folder).reverse()) {
    if (place && segment.number > place.segment) continue;
    const isNamed = place?.segment === segment.number && !segment.packed;
    const ended = isNamed ? endedAt(disk, folder, segment, place!.bytes) : segment;
    const link: Link = { ...ended, header: readHeader(disk, folder, segment) };
    chain.unshift(link);
    if (isFirst(link)) break;
    place = link.header && placeBefore(link.header);
  }
  return chain;
}

function endedAt(disk: Disk, folder: string, segment: Segment, offset: number): Segment {
  if (segment.tail?.offset === offset) return segment;
  const name = tailName(segment.name, offset);
  return { ...segment, tail: { name: disk.stat(join(folder, name)) ? name : null, offset } };
}

/** Opens a segment for reading. One that was packed since it was listed is found under its new name (S17). */
function openSegment(disk: Disk, folder: string, segment: Segment): { file: DiskFile; packed: boolean } {
  const path = join(folder, segment.name);
  if (segment.packed) return { file: disk.open(path, "read"), packed: true };
  try {
    return { file: disk.open(path, "read"), packed: false };
  } catch (error) {
    if (errnoOf(error) !== "ENOENT") throw error;
    return { file: disk.open(`${path}.zst`, "read"), packed: true };
  }
}

/** Scans a segment from `from`, which is the beginning of a line. Gives way to others now and then. */
export async function scanSegment(disk: Disk, folder: string, segment: Segment, from = 0): Promise<Scan> {
  const source = openSource(disk, folder, segment);
  try {
    return source.packed ? await scanPacked(source.packed, from) : await scanPlain(source, from);
  } finally {
    source.close();
  }
}

/** What of the i-th segment of a chain counts, and what its end means. `previous` is the last seq of the segment before, if that was read. */
export async function readSegment(
  disk: Disk,
  folder: string,
  chain: readonly Link[],
  i: number,
  previous?: number,
): Promise<{ readonly scan: Scan; readonly tail: Verdict }> {
  const context = await contextOf(disk, folder, chain, i);
  const scan = await scanSegment(disk, folder, chain[i]!);
  return { scan, tail: decideTail(scan, { ...context, previous }) };
}

/** What the rest of the chain says of a segment. */
export async function contextOf(disk: Disk, folder: string, chain: readonly Link[], i: number): Promise<TailContext> {
  const { packed, tail } = chain[i]!;
  const later = chain.slice(i + 1);
  const sealed = later.length > 0 || packed || tail !== undefined;
  for (const link of later) {
    const begins = link.header?.seq ?? (await firstNumber(disk, folder, link));
    if (begins !== null) return { sealed, before: begins };
  }
  return { sealed };
}

/** The number of the first line of a segment whose header is damaged; null if nothing tells. */
async function firstNumber(disk: Disk, folder: string, segment: Segment): Promise<number | null> {
  const { records, strays } = await scanSegment(disk, folder, segment);
  const lines = strays.filter(({ after, line }) => after === 0 && line).length;
  return records[0] ? Math.max(1, records[0].seq - lines) : null;
}

/** The bytes of a segment: a plain file, one whose end stands in another, or a packed one. */
export interface Source extends Pick<DiskFile, "read"> {
  readonly packed: DiskFile | null;
  size(): number;
  close(): void;
}

export function openSource(disk: Disk, folder: string, segment: Segment): Source {
  const { file, packed } = openSegment(disk, folder, segment);
  const whole: Source = {
    packed: packed ? file : null,
    size: () => file.stat().size,
    read: (into, offset, length, position) => file.read(into, offset, length, position),
    close: () => file.close(),
  };
  const { tail } = segment;
  if (!tail || packed) return whole;
  let end: DiskFile | null;
  try {
    end = tail.name === null ? null : disk.open(join(folder, tail.name), "read");
  } catch (error) {
    file.close();
    throw error;
  }
  // Somebody may have cut the segment short: then the tail follows where it ends now.
  const own = Math.min(tail.offset, file.stat().size);
  return {
    packed: null,
    size: () => own + (end?.stat().size ?? 0),
    read(into, offset, length, position) {
      const room = Math.max(0, own - position);
      const read = room === 0 ? 0 : file.read(into, offset, Math.min(length, room), position);
      if (read < room || !end) return read;
      return read + end.read(into, offset + read, length - read, position + read - own);
    },
    close() {
      file.close();
      end?.close();
    },
  };
}

async function scanPlain(file: Source, from: number): Promise<Scan> {
  const scan = new Scan();
  const size = file.size();
  let buffer = Buffer.allocUnsafe(Math.max(1, Math.min(CHUNK_BYTES, size - from)));
  let filled = 0;
  let offset = from;
  for (let chunks = 1; ; chunks++) {
    const read = file.read(buffer, filled, buffer.length - filled, offset + filled);
    if (read === 0) break;
    filled += read;
    const rest = scan.feed(buffer, 0, filled, offset);
    offset += rest;
    buffer.copy(buffer, 0, rest, filled);
    filled -= rest;
    if (filled === buffer.length) {
      if (filled > RECORD_BYTES_MAX) {
        const skipped = skipOversize(scan, buffer, filled, offset);
        offset += skipped;
        filled -= skipped;
      } else {
        const larger = Buffer.allocUnsafe(buffer.length * 2);
        buffer.copy(larger, 0, 0, filled);
        buffer = larger;
      }
    }
    if (chunks % 8 === 0) await nextTick();
  }
  scan.finish(buffer, 0, filled, offset);
  return scan;
}

/** Lets go of bytes that can be no record, so that a file without newlines cannot take all memory (S4). Returns how many. */
function skipOversize(scan: Scan, buffer: Buffer, filled: number, offset: number): number {
  const next = buffer.indexOf(LINE_START, 1);
  const skipped = next === -1 || next >= filled ? filled - LINE_START.length : next;
  scan.oversize(offset, offset + skipped);
  buffer.copy(buffer, 0, skipped, filled);
  return skipped;
}

async function scanPacked(file: DiskFile, from: number): Promise<Scan> {
  const scan = new Scan();
  for (const { offset, size, bytes } of readFrames(file)) {
    if (offset + size <= from) continue;
    if (bytes) {
      const start = Math.max(0, from - offset);
      const rest = scan.feed(bytes, start, bytes.length, offset + start);
      if (rest < bytes.length) scan.finish(bytes, rest, bytes.length, offset + rest);
    } else scan.oversize(offset, offset + size);
    await nextTick();
  }
  return scan;
}

/** The first record of a segment, or null if it is damaged. */
export function readHeader(disk: Disk, folder: string, segment: Segment): JournalRecord | null {
  const { file, packed } = openSegment(disk, folder, segment);
  try {
    const bytes = packed ? firstFrame(file) : firstLine(file);
    const newline = bytes.indexOf(NEWLINE);
    const record = decodeLine(bytes, 0, newline === -1 ? bytes.length : newline);
    return record?.kind === "segment" ? record : null;
  } finally {
    file.close();
  }
}

function firstLine(file: DiskFile): Buffer {
  for (let size = 16 * 1024; ; size *= 4) {
    const buffer = Buffer.allocUnsafe(size);
    const read = file.read(buffer, 0, size, 0);
    const bytes = buffer.subarray(0, read);
    if (read < size || bytes.includes(NEWLINE) || size > RECORD_BYTES_MAX) return bytes;
  }
}

function firstFrame(file: DiskFile): Buffer {
  for (const { bytes } of readFrames(file)) return bytes ?? Buffer.alloc(0);
  return Buffer.alloc(0);
}
