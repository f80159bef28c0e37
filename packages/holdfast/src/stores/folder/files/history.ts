import type { Disk } from "../../../disk/disk.ts";
import { assertFormat } from "../../../journal/lifecycle.ts";
import type { JournalRecord } from "../../../journal/record.ts";
import { keep } from "./read-epoch.ts";
import { chainSegments, type Link, readSegment } from "./segment.ts";

/** Yields all records from seq `from` on, one segment in memory at a time. Writes nothing. */
export async function* readHistory(disk: Disk, folder: string, from: number): AsyncGenerator<JournalRecord> {
  const chain = await chainSegments(disk, folder, beginsAtOrBefore(from));
  let previous: number | undefined;
  for (const [i, { header }] of chain.entries()) {
    if (header) assertFormat(header);
    const { scan, tail } = await readSegment(disk, folder, chain, i, previous);
    for (const record of keep(scan, tail)) if (record.seq >= from) yield record;
    previous = tail.next - 1;
  }
}

/** Finds the last segment that starts at or before `seq`. Skips a damaged header, towards the start. */
export function beginsAtOrBefore(seq: number): (link: Link) => boolean {
  return ({ header }) => header !== null && header.seq <= seq;
}
