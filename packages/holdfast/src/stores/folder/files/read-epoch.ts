import { defined } from "../../../defined.ts";
import type { Disk } from "../../../disk/disk.ts";
import { HoldfastError } from "../../../errors.ts";
import type { Damage, Recovery, Verification } from "../../../journal/contract.ts";
import { assertFormat } from "../../../journal/lifecycle.ts";
import { STRAYS_MAX } from "../../../journal/lines/chain.ts";
import { isCount } from "../../../journal/lines/decode.ts";
import type { Scan } from "../../../journal/lines/scan.ts";
import type { Tail } from "../../../journal/lines/tail.ts";
import type { JournalRecord } from "../../../journal/record.ts";
import { verificationOf } from "../../../journal/verification.ts";
import { chainSegments, type Link, readSegment, type Segment } from "./segment.ts";

/** The current epoch of a journal as found in its files, and what its tail means. */
export interface EpochFiles {
  readonly records: JournalRecord[];
  /** The segment that starts the epoch. */
  readonly first: number;
  readonly last: Segment;
  readonly tail: Tail;
  /** Where the newest segment ends, before any cut. */
  readonly size: number;
  /** The format of the newest segment; null if its header is damaged. */
  readonly format: string | null;
  readonly recovery: Recovery;
}

/**
 * Reads the current epoch; null if there is no segment. Reads nothing older (P7), writes nothing. Throws FORMAT_NEWER.
 */
export async function readEpoch(disk: Disk, folder: string): Promise<EpochFiles | null> {
  const chain = await chainSegments(disk, folder, epochFinder());
  const last = chain.at(-1);
  if (!last) return null;
  if (last.header) assertFormat(last.header);
  const first = await epochStart(disk, folder, chain);
  const begin = chain.findIndex(({ number }) => number >= first);
  // Without a header nothing in the segment says which numbers damaged lines before its first record had.
  const previous = chain[begin]!.header || begin === 0 ? undefined : await lastSeqBefore(disk, folder, chain, begin);

  const account = new DamageAccount();
  let records: JournalRecord[] = [];
  let tail: Tail | undefined;
  let size = 0;
  for await (const read of readSegments(disk, folder, chain, first, previous)) {
    tail = read.tail;
    account.add(read.segment.name, read.scan, tail);
    const kept = keep(read.scan, tail);
    // The usual epoch is one segment: its records are passed on without a copy.
    records = records.length === 0 ? kept : records.concat(kept);
    size = read.scan.end;
  }
  const format = typeof last.header?.["format"] === "string" ? last.header["format"] : null;
  return { records, first, last, tail: tail!, size, format, recovery: account.recovery() };
}

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
  for await (const { segment, scan, tail } of readSegments(disk, folder, chain)) {
    account.add(segment.name, scan, tail);
    records += tail.keep;
    bytes += scan.end;
  }
  return verificationOf(id, { records, bytes, segments: chain.length }, account.recovery(), isHeld);
}

/** What the segments from this number on hold. */
async function* readSegments(
  disk: Disk,
  folder: string,
  chain: readonly Link[],
  first = 1,
  previous?: number,
): AsyncGenerator<{ readonly segment: Link; readonly scan: Scan; readonly tail: Tail }> {
  let last = previous;
  for (const [i, segment] of chain.entries()) {
    if (segment.number < first) continue;
    if (segment.header) assertFormat(segment.header);
    const { scan, tail } = await readSegment(disk, folder, chain, i, last);
    yield { segment, scan, tail };
    last = tail.next - 1;
  }
}

/**
 * Throws FORMAT_NEWER or JOURNAL_UNREADABLE if this version cannot read the format of a segment in the current epoch.
 */
export async function assertEpochFormat(disk: Disk, folder: string): Promise<void> {
  for (const { header } of await chainSegments(disk, folder, epochFinder())) if (header) assertFormat(header);
}

/** The records of a scan that count. */
export function keep(scan: Scan, tail: Tail): JournalRecord[] {
  if (tail.keep < scan.records.length) scan.records.length = tail.keep;
  return scan.records;
}

/**
 * Recognises the segment that starts the current epoch: a whole header names it, both in that segment and in later ones
 * that start no epoch.
 */
function epochFinder(): (link: Link) => boolean {
  let epoch: number | null = null;
  return (link) => {
    epoch ??= epochIn(link);
    return epoch !== null && link.number <= epoch;
  };
}

/** The epoch that a segment's header names; null if the header is damaged or names an impossible one. */
function epochIn({ number, header }: Link): number | null {
  const epoch = header?.["epoch"];
  return isCount(epoch, 1) && epoch <= number ? epoch : null;
}

/** If a header is damaged, walk back to the nearest segment that starts an epoch (S16). */
async function epochStart(disk: Disk, folder: string, chain: readonly Link[]): Promise<number> {
  for (let i = chain.length - 1; i > 0; i--) {
    const epoch = epochIn(chain[i]!);
    if (epoch !== null) return epoch;
    const { scan } = await readSegment(disk, folder, chain, i);
    const first = scan.records[0]?.kind === "segment" ? 1 : 0;
    if (scan.records[first]?.kind !== "epoch") continue;
    const { tail } = await readSegment(disk, folder, chain, i, await lastSeqBefore(disk, folder, chain, i));
    // A torn epoch has not started.
    if (tail.keep > first) return chain[i]!.number;
  }
  return chain[0]!.number;
}

/** The last seq that the segments before this one use. Of lines before its first record, it decides which are torn. */
async function lastSeqBefore(disk: Disk, folder: string, chain: readonly Link[], i: number): Promise<number> {
  const { scan, tail } = await readSegment(disk, folder, chain, i - 1);
  if (scan.records.length > 0 || i === 1) return tail.next - 1;
  const previous = await lastSeqBefore(disk, folder, chain, i - 1);
  return (await readSegment(disk, folder, chain, i - 1, previous)).tail.next - 1;
}

/** Each damage takes memory, across all segments. */
const DAMAGES_MAX = STRAYS_MAX;

function tooDamaged(segment: string): HoldfastError {
  const message =
    `The journal cannot be read: up to segment ${segment} more than ${DAMAGES_MAX} places are damaged. Nothing was touched. ` +
    "Look at the files, and restore them from a backup.";
  return new HoldfastError("JOURNAL_UNREADABLE", message, { segment, strays: DAMAGES_MAX });
}

/** What is wrong with a journal, from all of its segments in order. */
export class DamageAccount {
  readonly #damaged: Damage[] = [];
  readonly #missing: { from: number; to: number }[] = [];
  /** Of the newest segment. */
  #isClosed = false;
  #cutBytes = 0;

  add(segment: string, scan: Scan, tail: Tail): void {
    this.#isClosed = tail.cut === null && scan.records[tail.keep - 1]?.kind === "closed";
    this.#cutBytes = tail.cut === null ? 0 : scan.end - tail.cut;
    for (const { offset, end, why, seq } of tail.damaged) {
      this.#damaged.push({ segment, offset, bytes: end - offset, why, ...defined({ seq }) });
    }
    // One at a time: as arguments of one call they would overflow the stack.
    for (const gap of tail.missing) this.#missing.push(gap);
    if (this.#damaged.length > DAMAGES_MAX) throw tooDamaged(segment);
  }

  recovery(): Recovery {
    const [damaged, missing] = [this.#damaged, this.#missing];
    return { unclean: !this.#isClosed, cutBytes: this.#cutBytes, damaged, missing };
  }
}
