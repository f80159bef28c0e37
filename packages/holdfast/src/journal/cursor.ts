import { TRAILER_BYTES, TRAILER_START } from "./lines/decode.ts";
import { cursorStale } from "./refusals.ts";

/** The checksum as it stands in a line: a cursor stays valid when the record it names is damaged later. */
export function crcIn(line: Buffer): string {
  return line.toString("latin1", line.length - TRAILER_BYTES + TRAILER_START.length, line.length - 2);
}

/**
 * The seq a follower starts after. `crcAt` gives the checksum of the record with a seq, or null if there is none: a
 * cursor is valid only while its record is the one it was taken from. Throws CURSOR_STALE.
 */
export async function startAfter(
  id: string,
  after: number | string,
  crcAt: (seq: number) => Promise<string | null>,
): Promise<number> {
  if (typeof after === "number") return Math.max(0, after);
  const dash = after.indexOf("-");
  const seq = Number(after.slice(0, dash));
  if (dash > 0 && Number.isSafeInteger(seq) && seq > 0 && (await crcAt(seq)) === after.slice(dash + 1)) return seq;
  throw cursorStale(id, after);
}
