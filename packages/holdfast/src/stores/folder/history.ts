import type { Disk } from "../../disk/disk.ts";
import { assertFormat } from "../../journal/lifecycle.ts";
import type { JournalRecord } from "../../journal/record.ts";
import { decideTail } from "../../journal/tail.ts";
import { keep } from "./epoch.ts";
import { listSegments, readHeader, type Segment, scanShared } from "./segment.ts";

/** All records from seq `from` on, one segment in memory at a time. Writes nothing. */
export async function* readHistory(disk: Disk, folder: string, from: number): AsyncGenerator<JournalRecord> {
  const segments = listSegments(disk, folder);
  const start = segmentOf(disk, folder, segments, from);
  let previous: number | undefined;
  for (let i = start; i < segments.length; i++) {
    const segment = segments[i]!;
    const header = readHeader(disk, folder, segment);
    if (header) assertFormat(header);
    const scan = await scanShared(disk, folder, segment);
    const tail = decideTail(scan, { sealed: segment.packed || i < segments.length - 1, previous });
    for (const record of keep(scan, tail)) if (record.seq >= from) yield record;
    previous = tail.next - 1;
  }
}

/** The index of the last segment that begins at or before `seq`. A damaged header is passed over, towards the beginning. */
export function segmentOf(disk: Disk, folder: string, segments: readonly Segment[], seq: number): number {
  for (let i = segments.length - 1; i > 0; i--) {
    const header = readHeader(disk, folder, segments[i]!);
    if (header && header.seq <= seq) return i;
  }
  return 0;
}
