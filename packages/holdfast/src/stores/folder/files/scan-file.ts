import { setImmediate as nextTick } from "node:timers/promises";
import type { DiskFile } from "../../../disk/disk.ts";
import { ENDLESS_LINE_BYTES, Scan } from "../../../journal/lines/scan.ts";
import { SEGMENT_BYTES_MAX } from "../../../journal/record.ts";
import { type Frame, readFrames } from "./frames.ts";

const CHUNK_BYTES = 1024 * 1024;

/** The bytes of a plain segment. */
export interface SegmentBytes extends Pick<DiskFile, "read"> {
  size(): number;
}

/**
 * Scans a plain segment from `from`, which is the start of a line. Yields to the event loop now and then. Bytes beyond
 * the maximum segment size are not read: they are one stray, whatever size the file claims.
 */
export async function scanPlain(
  file: SegmentBytes,
  from: number,
  segmentBytesMax: number = SEGMENT_BYTES_MAX,
): Promise<Scan> {
  const scan = new Scan();
  const size = file.size();
  let buffer = Buffer.allocUnsafe(Math.max(1, Math.min(CHUNK_BYTES, size - from)));
  let filled = 0;
  let offset = from;
  for (let chunks = 1; ; chunks++) {
    const room = Math.min(buffer.length - filled, segmentBytesMax - offset - filled);
    const read = room <= 0 ? 0 : file.read(buffer, filled, room, offset + filled);
    if (read === 0) break;
    filled += read;
    let rest = scan.feed(buffer, 0, filled, offset);
    if (rest === 0 && filled === ENDLESS_LINE_BYTES) {
      scan.passEndless(offset, offset + filled);
      rest = filled;
    }
    offset += rest;
    buffer.copy(buffer, 0, rest, filled);
    filled -= rest;
    if (filled === buffer.length) {
      const larger = Buffer.allocUnsafe(Math.min(ENDLESS_LINE_BYTES, buffer.length * 2));
      buffer.copy(larger, 0, 0, filled);
      buffer = larger;
    }
    if (chunks % 8 === 0) await nextTick();
  }
  scan.finish(buffer, 0, filled, offset);
  if (size > segmentBytesMax) scan.oversize(Math.max(from, segmentBytesMax), size);
  return scan;
}

/** The same for a packed segment. */
export async function scanPacked(file: DiskFile, from: number): Promise<Scan> {
  const scan = new Scan();
  for (const frame of readFrames(file, from)) {
    feedFrame(scan, frame, from);
    await nextTick();
  }
  return scan;
}

/** Takes a frame, from the plain byte `from` on. */
export function feedFrame(scan: Scan, { offset, size, bytes }: Frame, from: number): void {
  if (!bytes) {
    scan.oversize(offset, offset + size);
    return;
  }
  const start = Math.max(0, from - offset);
  const rest = scan.feed(bytes, start, bytes.length, offset + start);
  if (rest < bytes.length) scan.finish(bytes, rest, bytes.length, offset + rest);
}
