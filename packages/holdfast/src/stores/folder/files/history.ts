import type { Disk } from "../../../disk/disk.ts";
import { assertFormat } from "../../../journal/lifecycle.ts";
import type { JournalRecord } from "../../../journal/record.ts";
import { keep } from "./read-epoch.ts";
import { readParts } from "./read-parts.ts";
import { chainSegments, contextOf, type Link, openSource, readSegment } from "./segment.ts";

/** Yields all records from seq `from` on. Holds a part of a segment in memory, or all of one that has damage. */
export async function* readHistory(disk: Disk, folder: string, from: number): AsyncGenerator<JournalRecord> {
  const chain = await chainSegments(disk, folder, beginsAtOrBefore(from));
  let previous: number | undefined;
  let given = from - 1;
  for (const [i, { header }] of chain.entries()) {
    if (header) assertFormat(header);
    const source = openSource(disk, folder, chain[i]!);
    try {
      const parts = readParts(source, { ...contextOf(chain, i), previous, from: given + 1 });
      let part = await parts.next();
      for (; !part.done; part = await parts.next()) {
        for (const record of part.value) {
          if (record.seq <= given) continue;
          given = record.seq;
          yield record;
        }
      }
      if (part.value !== null) {
        previous = part.value;
        continue;
      }
    } finally {
      source.close();
    }
    const { scan, tail } = await readSegment(disk, folder, chain, i, previous);
    for (const record of keep(scan, tail)) {
      if (record.seq <= given) continue;
      given = record.seq;
      yield record;
    }
    previous = tail.next - 1;
  }
}

/** Finds the last segment that starts at or before `seq`. Skips a damaged header, towards the start. */
export function beginsAtOrBefore(seq: number): (link: Link) => boolean {
  return ({ header }) => header !== null && header.seq <= seq;
}
