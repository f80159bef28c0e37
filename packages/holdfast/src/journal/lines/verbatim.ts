import { crc32 } from "node:zlib";
import { HoldfastError } from "../../errors.ts";
import type { VerbatimLine } from "../contract.ts";
import type { Ledger } from "../ledger.ts";
import type { JournalRecord } from "../record.ts";
import type { Segment } from "./account.ts";
import { isCount, TRAILER_BYTES } from "./decode.ts";

/**
 * The exact line a record was read from, proved by its checksum, which covers every byte. Null if it cannot be
 * reconstructed: another program may have written members in an order, or numbers in a form, that the record does not
 * preserve.
 */
export function lineOf(record: JournalRecord): VerbatimLine | null {
  const bytes = Buffer.from(JSON.stringify(record));
  const covered = bytes.length - TRAILER_BYTES;
  if (covered <= 0) return null;
  const crc = crc32(bytes.subarray(0, covered)).toString(16).padStart(8, "0");
  return crc === record.crc && bytes.toString("latin1", covered) === `,"crc":"${crc}"}` ? { record, bytes } : null;
}

/** The segment that a line starts; null for any other line. The first line of a journal always starts one. */
export function segmentAt({ seq, kind, ...header }: JournalRecord, before: Segment | null): Segment | null {
  const { segment, epoch } = header as { segment?: unknown; epoch?: unknown };
  const isHeader = kind === "segment" && isCount(segment, 1) && isCount(epoch, 1) && epoch <= segment;
  if (isHeader && segment > (before?.number ?? 0)) return { number: segment, epoch, first: seq };
  return before ? null : { number: 1, epoch: 1, first: seq };
}

/** Refuses lines that do not form a journal, before anything is written. */
export function assertFollows({ record }: VerbatimLine, id: string, last: number): void {
  if (record.seq > last && (record.kind !== "segment" || record["session"] === id)) return;
  const why = record.seq > last ? `it names the session ${String(record["session"])}` : `record ${last} precedes it`;
  const message = `Session ${id} was not adopted: record ${record.seq} is out of place, because ${why}. Nothing was written.`;
  throw new HoldfastError("RECORD_INVALID", message, { session: id, seq: record.seq });
}

export function nothingToAdopt(id: string): HoldfastError {
  const message = `Session ${id} was not adopted: it has no records. Nothing was written.`;
  return new HoldfastError("RECORD_INVALID", message, { session: id });
}

/** Lines of a session that is being adopted, and the segments that they start. */
export interface AdoptedBatch {
  readonly lines: readonly VerbatimLine[];
  readonly segments: readonly Segment[];
  readonly bytes: number;
}

/**
 * The lines of a session in batches, each line checked and absorbed by the ledger: for stores that write so much at
 * once. Throws RECORD_INVALID, also if there are none.
 */
export async function* adoptedBatches(
  id: string,
  source: AsyncIterable<readonly VerbatimLine[]>,
  ledger: Ledger,
  max: { readonly bytes: number; readonly lines: number },
): AsyncGenerator<AdoptedBatch> {
  let segment: Segment | null = null;
  let lines: VerbatimLine[] = [];
  let segments: Segment[] = [];
  let bytes = 0;
  for await (const some of source) {
    for (const line of some) {
      assertFollows(line, id, ledger.head);
      ledger.absorb(line.record);
      const begins: Segment | null = segmentAt(line.record, segment);
      if (begins) segments.push(begins);
      segment = begins ?? segment;
      lines.push(line);
      bytes += line.bytes.length;
      if (bytes < max.bytes && lines.length < max.lines) continue;
      yield { lines, segments, bytes };
      lines = [];
      segments = [];
      bytes = 0;
    }
  }
  if (segment === null) throw nothingToAdopt(id);
  if (lines.length > 0) yield { lines, segments, bytes };
}
