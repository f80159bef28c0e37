import { hostname } from "node:os";
import { HoldfastError } from "../errors.ts";
import { isCount } from "./lines/decode.ts";
import { FORMAT_MAJOR, FORMAT_MINOR, type JournalRecord, type Json, type NewRecord } from "./record.ts";

/** The version of this library, as journals name their writer. A test keeps it equal to package.json. */
export const LIBRARY_VERSION = "0.1.0";
const FORMAT = `${FORMAT_MAJOR}.${FORMAT_MINOR}`;

/**
 * The records that a store writes by itself, the same in every store: `segment` first of all, `opened` directly before a writer's
 * first record, `closed` after its last one.
 */
export function segmentRecord(header: {
  readonly session: string;
  /** From 1 on. */
  readonly segment: number;
  /** The number of the segment that begins the current epoch. */
  readonly epoch: number;
  /** Where the journal goes on: the segment before this one, and how many of its bytes count. For one whose last writer did not close it. */
  readonly after?: Place;
  /** The keys that outlive the epoch before (`Ledger.keysToCarry`), if this segment begins one. */
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

/** A place in a journal of several segments. */
export interface Place {
  readonly segment: number;
  readonly bytes: number;
}

/** The place that the header of segment `number` names as the end of what comes before it, if it does. */
export function placeBefore(header: JournalRecord, number: number): Place | null {
  const after = header["after"];
  if (typeof after !== "object" || after === null || Array.isArray(after)) return null;
  const { segment, bytes } = after as Readonly<Record<string, unknown>>;
  return isCount(segment, 1) && segment < number && isCount(bytes, 0) ? { segment, bytes } : null;
}

/** Who writes from here on, and in what state the journal was found. */
export function openedRecord(found: {
  readonly app: string;
  /** The writer before did not write `closed`. */
  readonly unclean: boolean;
  readonly cutBytes: number;
  /** Members of the layer above (`WriterOptions.opened`). */
  readonly extra?: Readonly<Record<string, Json>> | undefined;
}): NewRecord {
  const { app, unclean, cutBytes, extra } = found;
  return { kind: "opened", writer: { pid: process.pid, host: hostname(), app }, unclean, cutBytes, ...extra };
}

/** Written after a sync, as the last record of a writer that ended in order. */
export function closedRecord(): NewRecord {
  return { kind: "closed" };
}

/**
 * Refuses a segment that this version cannot read (P10), given its `segment` record. A newer minor version is read: what is new in it
 * is kept and passed over. Throws FORMAT_NEWER { found, known }, and JOURNAL_UNREADABLE if no format is named.
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
