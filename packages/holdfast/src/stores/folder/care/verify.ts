import type { Disk } from "../../../disk/disk.ts";
import type { Verification } from "../../../journal/contract.ts";
import { assertFormat } from "../../../journal/lifecycle.ts";
import { verificationOf } from "../../../journal/verification.ts";
import { DamageAccount } from "../files/read-epoch.ts";
import { chainSegments, readSegment } from "../files/segment.ts";

/** Reads every byte of a session and heals nothing. Null if it is not a session. */
export async function verifySession(
  disk: Disk,
  folder: string,
  id: string,
  isHeld: () => boolean,
): Promise<Verification | null> {
  const chain = await chainSegments(disk, folder);
  if (chain.length === 0) return null;
  const account = new DamageAccount();
  let records = 0;
  let bytes = 0;
  let previous: number | undefined;
  for (const [i, { name, header }] of chain.entries()) {
    if (header) assertFormat(header);
    const { scan, tail } = await readSegment(disk, folder, chain, i, previous);
    account.add(name, scan, tail);
    records += tail.keep;
    bytes += scan.end;
    previous = tail.next - 1;
  }
  return verificationOf(id, { records, bytes, segments: chain.length }, account.recovery(), isHeld);
}
