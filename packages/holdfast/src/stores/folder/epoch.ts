import type { Disk } from "../../disk/disk.ts";
import type { Damage, Recovery } from "../../journal/contract.ts";
import { assertFormat } from "../../journal/lifecycle.ts";
import type { JournalRecord } from "../../journal/record.ts";
import type { Scan } from "../../journal/scan.ts";
import type { Tail } from "../../journal/tail.ts";
import { chainSegments, type Link, readSegment, type Segment, scanSegment } from "./segment.ts";

/** The current epoch of a journal as the files have it, and what its tail means. */
export interface EpochFiles {
  readonly records: JournalRecord[];
  /** The segment that begins the epoch. */
  readonly first: number;
  readonly last: Segment;
  readonly tail: Tail;
  /** Where the newest segment ends, cut or not. */
  readonly size: number;
  /** The format of the newest segment; null if its header is damaged. */
  readonly format: string | null;
  readonly recovery: Recovery;
}

/** Reads the current epoch; null if there is no segment. Reads nothing older (P7), writes nothing. Throws FORMAT_NEWER. */
export async function readEpoch(disk: Disk, folder: string): Promise<EpochFiles | null> {
  const chain = chainSegments(disk, folder, epochFinder());
  const last = chain.at(-1);
  if (!last) return null;
  if (last.header) assertFormat(last.header);
  const first = await epochStart(disk, folder, chain);

  const account = new Account();
  let records: JournalRecord[] = [];
  let tail: Tail | undefined;
  let size = 0;
  let previous: number | undefined;
  for (const [i, segment] of chain.entries()) {
    if (segment.number < first) continue;
    const read = await readSegment(disk, folder, chain, i, previous);
    tail = read.tail;
    const kept = keep(read.scan, tail);
    // The usual epoch is one segment: its records are handed on without a copy.
    records = records.length === 0 ? kept : records.concat(kept);
    account.add(segment.name, tail);
    size = read.scan.end;
    previous = tail.next - 1;
  }
  const closed = records.at(-1)?.kind === "closed" && tail!.cut === null;
  const format = typeof last.header?.["format"] === "string" ? last.header["format"] : null;
  const cutBytes = tail!.cut === null ? 0 : size - tail!.cut;
  return { records, first, last, tail: tail!, size, format, recovery: account.recovery(!closed, cutBytes) };
}

/** The records of a scan that count. */
export function keep(scan: Scan, tail: Tail): JournalRecord[] {
  if (tail.keep < scan.records.length) scan.records.length = tail.keep;
  return scan.records;
}

/** Says of the segment that begins the current epoch that it is the first: a whole header names it, for its own segment and for those after it that begin none. */
function epochFinder(): (link: Link) => boolean {
  let epoch: number | undefined;
  return ({ number, header }) => {
    if (epoch === undefined && typeof header?.["epoch"] === "number") epoch = header["epoch"];
    return epoch !== undefined && number <= epoch;
  };
}

/** If a header is damaged, walk back to the nearest segment that begins an epoch (S16). */
async function epochStart(disk: Disk, folder: string, chain: readonly Link[]): Promise<number> {
  for (const link of chain.slice(1).reverse()) {
    const epoch = link.header?.["epoch"];
    if (typeof epoch === "number") return epoch;
    const scan = await scanSegment(disk, folder, link);
    if (scan.records[0]?.kind === "epoch") return link.number;
  }
  return chain[0]!.number;
}

/** Damage and gaps, over several segments. */
export class Account {
  readonly #damaged: Damage[] = [];
  readonly #missing: { from: number; to: number }[] = [];

  add(segment: string, tail: Tail): void {
    for (const { offset, end, why, seq } of tail.damaged) {
      this.#damaged.push({ segment, offset, bytes: end - offset, why, ...(seq === undefined ? {} : { seq }) });
    }
    this.#missing.push(...tail.missing);
  }

  recovery(unclean: boolean, cutBytes: number, quarantine?: string): Recovery {
    return {
      unclean,
      cutBytes,
      damaged: this.#damaged,
      missing: this.#missing,
      ...(quarantine === undefined ? {} : { quarantine }),
    };
  }
}
