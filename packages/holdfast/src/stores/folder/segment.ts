import { join } from "node:path";
import { setImmediate as nextTick } from "node:timers/promises";
import type { Disk, DiskFile } from "../../disk/disk.ts";
import { errnoOf } from "../../errors.ts";
import { decodeLine, LINE_START } from "../../journal/decode.ts";
import { type JournalRecord, RECORD_BYTES_MAX } from "../../journal/record.ts";
import { Scan } from "../../journal/scan.ts";
import { readAt, readFrames } from "./frames.ts";

/** One file of a journal. */
export interface Segment {
  readonly number: number;
  readonly name: string;
  readonly packed: boolean;
  /** A healing that is not finished: this file holds the bytes from that offset on, whatever the segment holds there. */
  readonly tail?: { readonly name: string; readonly offset: number };
}

const NAME = /^(\d{6}|[1-9]\d{6,})\.jsonl(\.zst)?$/;
const TAIL_NAME = /^(\d{6}|[1-9]\d{6,})\.jsonl\.tail-(\d{1,15})$/;
const CHUNK_BYTES = 1024 * 1024;
const NEWLINE = 0x0a;

const FIRST = "000001.jsonl";

export function segmentName(number: number): string {
  if (number === 1) return FIRST;
  return `${String(number).padStart(6, "0")}.jsonl`;
}

export function tailName(segment: string, offset: number): string {
  return `${segment}.tail-${offset}`;
}

/** The segments of a session, in order. Where a plain and a packed one of one number are both present, the plain one counts (S17). */
export function listSegments(disk: Disk, folder: string): Segment[] {
  const found = new Map<number, Segment>();
  const tails: [number: number, tail: { name: string; offset: number }][] = [];
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
    if (segment && !segment.packed) found.set(number, { ...segment, tail });
  }
  return [...found.values()].sort((a, b) => a.number - b.number);
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

/** A reader that comes into the middle of a healing looks again, so often at most. */
const LOOKS_MAX = 4;

/** Scans a segment from `from`, which is the beginning of a line. Gives way to others now and then. */
export async function scanSegment(disk: Disk, folder: string, segment: Segment, from = 0): Promise<Scan> {
  const { file, packed } = openSegment(disk, folder, segment);
  try {
    return packed ? await scanPacked(file, from) : await scanPlain(plainSource(disk, folder, segment, file), from);
  } finally {
    file.close();
  }
}

/**
 * Scans a segment that somebody may be healing. That cuts its end off for an instant, and keeps it in a file of its own meanwhile: a look between the two would
 * miss what was acknowledged long ago.
 */
export async function scanShared(disk: Disk, folder: string, segment: Segment): Promise<Scan> {
  let looked = segment;
  for (let looks = 1; ; looks++) {
    const scan = await scanSegment(disk, folder, looked);
    if (looks === LOOKS_MAX || looked.tail || looked.packed) return scan;
    // In this order: a tail that is gone by now has been put back, and the segment has grown.
    const now = listSegments(disk, folder).find(({ number }) => number === segment.number);
    const grown = (disk.stat(join(folder, segment.name))?.size ?? 0) > scan.end;
    if (!now?.tail && !grown) return scan;
    looked = now ?? segment;
  }
}

/** The bytes of a plain segment: a file, or one whose end stands in another. */
export type Source = Pick<DiskFile, "read"> & { stat(): { readonly size: number } };

/** The segment up to where its tail begins, then the tail, which is small; or just the file. */
export function plainSource(disk: Disk, folder: string, { tail }: Segment, file: DiskFile): Source {
  const bytes = tail && readTail(disk, folder, tail.name);
  if (!bytes) return file;
  return {
    stat: () => ({ size: tail.offset + bytes.length }),
    read(into, offset, length, position) {
      const room = Math.max(0, tail.offset - position);
      const read = room === 0 ? 0 : file.read(into, offset, Math.min(length, room), position);
      if (read < room) return read;
      const from = position + read - tail.offset;
      return read + bytes.copy(into, offset + read, from, from + length - read);
    },
  };
}

/** Null if the healing has been finished meanwhile. */
export function readTail(disk: Disk, folder: string, name: string): Buffer | null {
  try {
    const file = disk.open(join(folder, name), "read");
    try {
      return readAt(file, 0, file.stat().size);
    } finally {
      file.close();
    }
  } catch (error) {
    if (errnoOf(error) === "ENOENT") return null;
    throw error;
  }
}

async function scanPlain(file: Source, from: number): Promise<Scan> {
  const scan = new Scan();
  const { size } = file.stat();
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
