import { join } from "node:path";
import type { Disk, DiskFile } from "../../../disk/disk.ts";
import { errnoOf } from "../../../errors.ts";
import { placeBefore, type SegmentPlace } from "../../../journal/lifecycle.ts";
import { decodeLine } from "../../../journal/lines/decode.ts";
import type { Scan } from "../../../journal/lines/scan.ts";
import { decideTail, type TailContext, type Tail as Verdict } from "../../../journal/lines/tail.ts";
import { type JournalRecord, RECORD_BYTES_MAX } from "../../../journal/record.ts";
import { readFrames } from "./frames.ts";
import { type SegmentBytes, scanPacked, scanPlain } from "./scan-file.ts";

/** One file of a journal. */
export interface Segment {
  readonly number: number;
  readonly name: string;
  readonly packed: boolean;
  /**
   * Left for a segment that its writer did not close: the segment ends at that offset, followed by the bytes of this
   * file, if any.
   */
  readonly tail?: Tail;
}

interface Tail {
  readonly name: string | null;
  readonly offset: number;
}

/** How a segment starts. */
export interface Head {
  /** Its first record; null if that is not a header. */
  readonly header: JournalRecord | null;
  /** The seq it starts with; null if it holds no record. */
  readonly begins: number | null;
  /** It has content, but no record. */
  readonly isLost: boolean;
}

/** A segment that counts. */
export interface Link extends Segment, Head {}

/** From 1, at most 15 digits: larger numbers are not exact. */
const NUMBER = String.raw`(?!000000)(\d{6}|[1-9]\d{6,14})`;
const NAME = new RegExp(String.raw`^${NUMBER}\.jsonl(\.zst)?$`);
const TAIL_NAME = new RegExp(String.raw`^${NUMBER}\.jsonl\.tail-(0|[1-9]\d{0,14})$`);
const CLAIM_NAME = new RegExp(String.raw`^${NUMBER}\.claim$`);
/** The highest number a segment's name can have. */
export const SEGMENT_NUMBER_MAX = 999_999_999_999_999;
const NEWLINE = 0x0a;

const FIRST = "000001.jsonl";

export function segmentName(number: number): string {
  if (number === 1) return FIRST;
  return `${String(number).padStart(6, "0")}.jsonl`;
}

/** The number in a segment's name, packed or not; null for other names. */
export function segmentNumber(name: string): number | null {
  const match = NAME.exec(name);
  return match ? Number(match[1]) : null;
}

/** The name of the file that claims a segment (claim.ts). */
export function claimName(number: number): string {
  return `${String(number).padStart(6, "0")}.claim`;
}

export function claimedNumber(name: string): number | null {
  const match = CLAIM_NAME.exec(name);
  return match ? Number(match[1]) : null;
}

export function tailName(segment: string, offset: number): string {
  return `${segment}.tail-${offset}`;
}

/** The names of the tails with this number, whether or not the segment exists. */
export function tailsOf(disk: Disk, folder: string, number: number): string[] {
  return disk.list(folder).filter((name) => Number(TAIL_NAME.exec(name)?.[1]) === number);
}

/**
 * The segments of a session, by number. If a number has both a plain and a packed segment, the plain one counts (S17).
 */
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
    // Of several tails, the latest knew of the most durable bytes.
    const isNewer = tail.offset > (segment?.tail?.offset ?? -1);
    if (segment && !segment.packed && isNewer) found.set(number, { ...segment, tail });
  }
  return [...found.values()].sort((a, b) => a.number - b.number);
}

/**
 * The segments that count, in order, with their headers. A segment continues from the one before it, or from the
 * position its header names: anything between, or after that position, came from a writer that had been replaced. Walks
 * back from the newest to the first, or until `isFirst` returns true.
 */
export async function chainSegments(
  disk: Disk,
  folder: string,
  isFirst: (link: Link) => boolean = () => false,
): Promise<Link[]> {
  const chain: Link[] = [];
  let place: SegmentPlace | null = null;
  for (const segment of listSegments(disk, folder).reverse()) {
    if (place && segment.number > place.segment) continue;
    const isNamed = place?.segment === segment.number && !segment.packed;
    const ended = isNamed ? endedAt(disk, folder, segment, place!.bytes) : segment;
    const link: Link = { ...ended, ...(await readHead(disk, folder, ended)) };
    chain.push(link);
    if (isFirst(link)) break;
    place = link.header && placeBefore(link.header, link.number);
  }
  return chain.reverse();
}

function endedAt(disk: Disk, folder: string, segment: Segment, offset: number): Segment {
  if (segment.tail?.offset === offset) return segment;
  const name = tailName(segment.name, offset);
  return { ...segment, tail: { name: disk.stat(join(folder, name)) ? name : null, offset } };
}

/** Scans a segment from `from`, which is the start of a line. Yields to the event loop now and then. */
export async function scanSegment(disk: Disk, folder: string, segment: Segment, from = 0): Promise<Scan> {
  const source = openSource(disk, folder, segment);
  try {
    return source.packed ? await scanPacked(source.packed, from) : await scanPlain(source, from);
  } finally {
    source.close();
  }
}

/**
 * Which part of the i-th segment of a chain counts, and what its end means. `previous` is the last seq of the previous
 * segment, if that was read.
 */
export async function readSegment(
  disk: Disk,
  folder: string,
  chain: readonly Link[],
  i: number,
  previous?: number,
): Promise<{ readonly scan: Scan; readonly tail: Verdict }> {
  const context = contextOf(chain, i);
  const scan = await scanSegment(disk, folder, chain[i]!);
  return { scan, tail: decideTail(scan, { ...context, previous }) };
}

/** What the rest of the chain says about a segment. */
export function contextOf(chain: readonly Link[], i: number): TailContext {
  const { packed, tail } = chain[i]!;
  const sealed = i < chain.length - 1 || packed || tail !== undefined;
  const before = beginningsOf(chain)[i + 1]!;
  return Number.isFinite(before) ? { sealed, before } : { sealed };
}

const beginnings = new WeakMap<readonly Link[], readonly number[]>();

/**
 * For each segment of a chain, and for the one that would come next: the highest seq it can start with. A journal may
 * have many segments, so this is computed once.
 */
function beginningsOf(chain: readonly Link[]): readonly number[] {
  let found = beginnings.get(chain);
  if (found) return found;
  const numbers = new Array<number>(chain.length + 1).fill(Number.POSITIVE_INFINITY);
  for (let i = chain.length - 1; i >= 0; i--) {
    const { begins, isLost } = chain[i]!;
    const next = numbers[i + 1]!;
    // The lowest of all: a later segment may start lower than the next one, and no seq is used twice.
    numbers[i] = Math.max(1, Math.min(begins ?? next - (isLost ? 1 : 0), next));
  }
  found = numbers;
  beginnings.set(chain, found);
  return found;
}

/** The bytes of a segment: a plain file, one whose end is in another file, or a packed one. */
export interface Source extends SegmentBytes {
  readonly packed: DiskFile | null;
  close(): void;
}

/** Opens a segment for reading. If it was packed since it was listed, it is found under its new name (S17). */
export function openSource(disk: Disk, folder: string, segment: Segment): Source {
  const path = join(folder, segment.name);
  const { tail, packed } = segment;
  let file: DiskFile | null = null;
  let end: DiskFile | null = null;
  try {
    file = disk.open(path, "read");
    if (tail?.name && !packed) end = disk.open(join(folder, tail.name), "read");
  } catch (error) {
    file?.close();
    // Packing removes the segment first, then its tail.
    const wasPacked = !packed && errnoOf(error) === "ENOENT" && disk.stat(path) === null;
    if (wasPacked) return openSource(disk, folder, { ...segment, name: `${segment.name}.zst`, packed: true });
    throw error;
  }
  // Someone may have truncated the segment: then the tail follows where it ends now.
  const own = tail && !packed ? Math.min(tail.offset, file.stat().size) : Number.POSITIVE_INFINITY;
  return {
    packed: packed ? file : null,
    size: () => Math.min(own, file.stat().size) + (end?.stat().size ?? 0),
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

/** Reads one line, unless it is damaged: then the whole segment, because something may precede its header. */
async function readHead(disk: Disk, folder: string, segment: Segment): Promise<Head> {
  const first = readHeader(disk, folder, segment);
  if (first) return { header: first, begins: first.seq, isLost: false };
  const { records, strays } = await scanSegment(disk, folder, segment);
  const record = records[0] ?? null;
  if (record?.kind === "segment") return { header: record, begins: record.seq, isLost: false };
  // The header is one record, so several damaged lines may be its pieces. If all were counted, records of the previous
  // segment would not count.
  const isDamaged = strays.some(({ after, line }) => after === 0 && line);
  return { header: null, begins: record && record.seq - (isDamaged ? 1 : 0), isLost: !record && isDamaged };
}

/** The header, if it is the segment's first line. */
export function readHeader(disk: Disk, folder: string, segment: Segment): JournalRecord | null {
  const source = openSource(disk, folder, segment);
  try {
    const bytes = source.packed ? firstFrame(source.packed) : firstLine(source);
    const newline = bytes.indexOf(NEWLINE);
    const record = decodeLine(bytes, 0, newline === -1 ? bytes.length : newline);
    return record?.kind === "segment" ? record : null;
  } finally {
    source.close();
  }
}

function firstLine(file: SegmentBytes): Buffer {
  for (let size = 16 * 1024; ; size *= 4) {
    const buffer = Buffer.allocUnsafe(size);
    const read = file.read(buffer, 0, size, 0);
    const bytes = buffer.subarray(0, read);
    if (read < size || bytes.includes(NEWLINE) || size >= RECORD_BYTES_MAX) return bytes;
  }
}

function firstFrame(file: DiskFile): Buffer {
  for (const { bytes } of readFrames(file)) return bytes ?? Buffer.alloc(0);
  return Buffer.alloc(0);
}
