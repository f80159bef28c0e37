import { hostname } from "node:os";
import { HoldfastError } from "../errors.ts";
import { isCount } from "./lines/decode.ts";
import { FORMAT, FORMAT_MAJOR, type JournalRecord, type Json, type NewRecord } from "./record.ts";

/** The library version that journals record as their writer. A test keeps it equal to package.json. */
export const LIBRARY_VERSION = "0.1.0";

/**
 * The records that every store writes by itself: `segment` at the start, `opened` right before a writer's first record,
 * `closed` after its last.
 */
export function segmentRecord(header: {
  readonly session: string;
  /** Starts at 1. */
  readonly segment: number;
  /** The number of the segment that started the current epoch. */
  readonly epoch: number;
  /**
   * Where the journal continues from: the previous segment, and how many of its bytes count. Set if the last writer did
   * not close that segment.
   */
  readonly after?: SegmentPlace;
  /** The keys that outlive the previous epoch (`Ledger.keysToCarry`), if this segment starts a new one. */
  readonly keys?: Json;
}): NewRecord {
  const { session, segment, epoch, after, keys } = header;
  return {
    kind: "segment",
    format: FORMAT,
    session,
    segment,
    epoch,
    ...(after ? { after: { segment: after.segment, bytes: after.bytes } } : {}),
    by: `holdfast/${LIBRARY_VERSION}`,
    ...(Array.isArray(keys) && keys.length > 0 ? { keys } : {}),
  };
}

/** A position in a journal of several segments. */
export interface SegmentPlace {
  readonly segment: number;
  readonly bytes: number;
}

/** The position that the header of segment `number` gives as the end of what precedes it, if any. */
export function placeBefore(header: JournalRecord, number: number): SegmentPlace | null {
  const after = header["after"];
  if (typeof after !== "object" || after === null || Array.isArray(after)) return null;
  const { segment, bytes } = after as Readonly<Record<string, unknown>>;
  return isCount(segment, 1) && segment < number && isCount(bytes, 0) ? { segment, bytes } : null;
}

/** Who writes from here on, and the state in which it found the journal. */
export function openedRecord(found: {
  readonly app: string;
  /** The previous writer did not write `closed`. */
  readonly unclean: boolean;
  readonly cutBytes: number;
  /** Members from the layer above (`WriterOptions.opened`). */
  readonly extra?: Readonly<Record<string, Json>> | undefined;
}): NewRecord {
  const { app, unclean, cutBytes, extra } = found;
  return { kind: "opened", writer: { pid: process.pid, host: hostname(), app }, unclean, cutBytes, ...extra };
}

/** The last record of a writer that closed the journal; written after a sync. */
export function closedRecord(): NewRecord {
  return { kind: "closed" };
}

/**
 * Refuses a segment that this version cannot read (P10), given its `segment` record. A newer minor version is accepted:
 * what it adds is kept and skipped. Throws FORMAT_NEWER { found, known }, or JOURNAL_UNREADABLE if the header names no
 * format.
 */
export function assertFormat(header: JournalRecord): void {
  const found = header["format"];
  const match = typeof found === "string" ? /^(\d{1,9})\.(\d{1,9})$/.exec(found) : null;
  if (!match) {
    const shown = JSON.stringify(found ?? null).slice(0, 80);
    throw new HoldfastError(
      "JOURNAL_UNREADABLE",
      `The journal cannot be read: its header names the format ${shown}, which is not of the form "${FORMAT}". Nothing was touched. Verify the session to see what is damaged.`,
      { found: shown, known: FORMAT },
    );
  }
  if (Number(match[1]) > FORMAT_MAJOR) {
    throw new HoldfastError(
      "FORMAT_NEWER",
      `The journal has the format ${found}, and this version of Holdfast knows ${FORMAT_MAJOR}.x only. Nothing was touched and nothing is lost. Open it with a newer version of Holdfast.`,
      { found: found as string, known: FORMAT },
    );
  }
}

/** What `epoch` of a journal was given. Throws RECORD_INVALID. */
export function assertEpoch(session: string, records: readonly NewRecord[]): void {
  if (records[0]?.kind === "epoch") return;
  const message = 'The epoch was not started: its first record must be of kind "epoch". The old epoch continues.';
  throw new HoldfastError("RECORD_INVALID", message, { session });
}
