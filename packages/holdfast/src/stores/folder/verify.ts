import type { Disk } from "../../disk/disk.ts";
import type { Verification } from "../../journal/contract.ts";
import { assertFormat } from "../../journal/lifecycle.ts";
import { decideTail } from "../../journal/tail.ts";
import { Account } from "./epoch.ts";
import { listSegments, readHeader, scanShared } from "./segment.ts";

/** Reads every byte of a session and heals nothing. Null if it is no session. */
export async function verifySession(
  disk: Disk,
  folder: string,
  id: string,
  isHeld: () => boolean,
): Promise<Verification | null> {
  const segments = listSegments(disk, folder);
  if (segments.length === 0) return null;
  const account = new Account();
  let records = 0;
  let bytes = 0;
  let closed = false;
  let cutBytes = 0;
  let previous: number | undefined;
  for (const segment of segments) {
    const header = readHeader(disk, folder, segment);
    if (header) assertFormat(header);
    const scan = await scanShared(disk, folder, segment);
    const newest = segment === segments.at(-1);
    const tail = decideTail(scan, { sealed: !newest || segment.packed, previous });
    account.add(segment.name, tail);
    records += tail.keep;
    bytes += scan.end;
    previous = tail.next - 1;
    if (!newest) continue;
    closed = tail.cut === null && scan.records[tail.keep - 1]?.kind === "closed";
    cutBytes = tail.cut === null ? 0 : scan.end - tail.cut;
  }
  const beingWritten = !closed && isHeld();
  const recovery = account.recovery(!closed && !beingWritten, beingWritten ? 0 : cutBytes);
  return { id, records, bytes, segments: segments.length, beingWritten, ...recovery };
}
