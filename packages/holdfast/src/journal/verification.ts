import type { Recovery, Verification } from "./contract.ts";

/**
 * What a reader reports about the end of a journal. While a writer holds the lease, an unfinished end is not damage: it
 * is still being written (S8).
 */
export async function judgeEnd(
  recovery: Recovery,
  isHeld: () => boolean | Promise<boolean>,
): Promise<{ readonly beingWritten: boolean; readonly recovery: Recovery }> {
  const beingWritten = recovery.unclean && (await isHeld());
  return { beingWritten, recovery: beingWritten ? { ...recovery, unclean: false, cutBytes: 0 } : recovery };
}

/** The result of `verify`, for a journal that was read completely. */
export async function verificationOf(
  id: string,
  { records, bytes, segments }: Pick<Verification, "records" | "bytes" | "segments">,
  found: Recovery,
  isHeld: () => boolean | Promise<boolean>,
): Promise<Verification> {
  const { beingWritten, recovery } = await judgeEnd(found, isHeld);
  return { id, records, bytes, segments, beingWritten, ...recovery };
}
