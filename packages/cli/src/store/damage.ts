import type { Recovery } from "holdfast/internal";
import type { Verification } from "holdfast/store";
import { bytesWords } from "../terminal/bytes.ts";
import { plainLine } from "../terminal/plain.ts";

/** `torn`: has an unacknowledged end. `corrupt`: durable data is damaged or missing. */
export type Health = "whole" | "torn" | "corrupt";

export function healthOf({ cutBytes, damaged, missing }: Recovery): Health {
  if (damaged.length > 0 || missing.length > 0) return "corrupt";
  return cutBytes > 0 ? "torn" : "whole";
}

/**
 * The same for a journal that was read to its end. Sessions are created with records: one without any has lost whole
 * files (to a faulty disk or an interrupted copy).
 */
export function verifiedHealth(found: Verification): Health {
  return found.records === 0 && !found.beingWritten ? "corrupt" : healthOf(found);
}

/** What is wrong with a journal, and where; empty if nothing is. `healed`: a writer has already repaired it. */
export function damageLines({ cutBytes, quarantine, damaged, missing }: Recovery, healed: boolean): string[] {
  const lines = damaged.map(({ segment, offset, bytes, seq, why }) => {
    const which = seq === undefined ? "" : `, record ${seq}`;
    const what = why === "foreign" ? "not a Holdfast record" : "damaged";
    return `${plainLine(segment)}, byte ${offset}: ${bytesWords(bytes)} ${what}${which}. Skipped, and kept in place.`;
  });
  for (const { from, to } of missing) {
    lines.push(from === to ? `Record ${from} is missing.` : `Records ${from} to ${to} are missing.`);
  }
  if (cutBytes > 0 && !healed)
    lines.push(
      `${bytesWords(cutBytes)} at the end were never acknowledged. The next writer or "holdfast repair" sets them aside.`,
    );
  if (cutBytes > 0 && healed)
    lines.push(
      `${bytesWords(cutBytes)} at the end that were never acknowledged were set aside${quarantine ? `: ${plainLine(quarantine)}` : ""}.`,
    );
  return lines;
}

export function sizeWords({ records, bytes, segments, beingWritten }: Verification): string {
  const now = beingWritten ? ", in use" : "";
  return `${records} ${records === 1 ? "record" : "records"}, ${bytesWords(bytes)}, ${segments} ${segments === 1 ? "segment" : "segments"}${now}`;
}

/** For a journal without readable records. */
export function emptyLines({ records, beingWritten }: Verification): string[] {
  return records > 0 || beingWritten
    ? []
    : ["No record could be read, though every session is created with some. Restore it from a backup if you have one."];
}

/** What opening a session found and skipped, as a chat shows it. */
export function recoveryLines({ damaged, missing, cutBytes, quarantine }: Recovery): string[] {
  const words = damaged.map(
    ({ segment, offset, bytes, why }) =>
      `${bytesWords(bytes)} at ${offset} of ${segment}: ${why === "foreign" ? "not a Holdfast record" : "damaged"}; skipped, and kept in place.`,
  );
  for (const { from, to } of missing) {
    words.push(from === to ? `Record ${from} is missing.` : `Records ${from} to ${to} are missing.`);
  }
  if (cutBytes > 0) {
    words.push(
      `${bytesWords(cutBytes)} at the end were never acknowledged, and were set aside${quarantine ? ` in ${quarantine}` : ""}.`,
    );
  }
  return words;
}
