import { createHash } from "node:crypto";
import { HoldfastError, isHoldfastError, type JournalRecord } from "holdfast";
import { lineOf } from "holdfast/internal";
import type { JournalStore, VerbatimLine } from "holdfast/store";
import { cannotTakeOver } from "./stores.ts";

export interface CopyOptions {
  /** Moves the source to the trash once the copy is verified. */
  readonly move: boolean;
  /** The number of records of this session read so far. */
  readonly onProgress: (records: number) => void;
}

/** The result for one session. */
export interface CopyResult {
  readonly id: string;
  /** `copied`; `completed`: replaced a copy with fewer records; `there`: the copy was already complete. */
  readonly outcome: "copied" | "completed" | "there";
  readonly records: number;
  /** Seq of the last record in the copy. */
  readonly head: number;
  /** A process has the source open: there may be more records by now. */
  readonly live: boolean;
  /** Seqs that could not be read from the source and are not in the copy. */
  readonly gaps: readonly { readonly from: number; readonly to: number }[];
  readonly moved: boolean;
  /** Why the source was not removed, despite `move`. */
  readonly kept?: "in use" | "changed" | "damaged";
}

/** Limits of a batch of lines. */
const BATCH_RECORDS = 256;
const BATCH_BYTES = 1024 * 1024;

/**
 * Copies a session byte for byte, up to its current end, and reads the copy back to verify it. Safe to repeat: an
 * existing copy is verified, and replaced if it is behind. Reads without the lease, so a writer of the source is not
 * disturbed. Throws SESSION_EXISTS if the target has a different session with this id, or a copy that has diverged.
 */
export async function copySession(
  from: JournalStore,
  to: JournalStore,
  id: string,
  options: CopyOptions,
): Promise<CopyResult> {
  if (!to.adopt) throw cannotTakeOver(to.url);
  const live = (await from.holder(id)) !== null;
  const known = (await to.has(id)) ? await compare(from, to, id, options.onProgress) : null;
  if (known?.relation === "differs") throw other(id, to.url);
  // The old copy stays in the trash, in case the new one fails.
  if (known?.relation === "behind") await to.delete(id);
  const passage = known?.relation === "same" ? known.passage : new Passage(id);
  if (known?.relation !== "same") {
    await to.adopt(id, passage.through(from.history(id), options.onProgress));
    await assertSame(to, id, passage);
  }
  const outcome = known === null ? "copied" : known.relation === "same" ? "there" : "completed";
  const { records, head, gaps } = passage;
  const copied = { id, outcome, records, head, live, gaps } as const;
  if (!options.move) return { ...copied, moved: false };
  const kept = await removeSource(from, copied);
  return kept === null ? { ...copied, moved: true } : { ...copied, moved: false, kept };
}

/** The records copied, with a digest of every byte. */
class Passage {
  readonly #id: string;
  readonly #digest = createHash("sha256");
  readonly gaps: { from: number; to: number }[] = [];
  records = 0;
  head = 0;

  constructor(id: string) {
    this.#id = id;
  }

  add(record: JournalRecord): VerbatimLine {
    const line = lineOf(record);
    if (!line) throw notVerbatim(this.#id, record.seq);
    if (record.seq > this.head + 1) this.gaps.push({ from: this.head + 1, to: record.seq - 1 });
    this.head = record.seq;
    this.records++;
    this.#digest.update(line.bytes).update("\n");
    return line;
  }

  async *through(
    records: AsyncIterable<JournalRecord>,
    onProgress: (records: number) => void,
  ): AsyncGenerator<readonly VerbatimLine[]> {
    let lines: VerbatimLine[] = [];
    let bytes = 0;
    for await (const record of records) {
      const line = this.add(record);
      lines.push(line);
      bytes += line.bytes.length;
      if (lines.length < BATCH_RECORDS && bytes < BATCH_BYTES) continue;
      yield lines;
      onProgress(this.records);
      lines = [];
      bytes = 0;
    }
    if (lines.length > 0) yield lines;
    onProgress(this.records);
  }

  digest(): string {
    return this.#digest.copy().digest("hex");
  }
}

/** Reads the copy, in which every line has a checksum, and compares all bytes with those sent. */
async function assertSame(to: JournalStore, id: string, sent: Passage): Promise<void> {
  const found = new Passage(id);
  for await (const record of to.history(id)) found.add(record);
  if (found.digest() === sent.digest()) return;
  const message =
    `The copy of session ${id} in ${to.url} is not the same as the original: ${found.records} of ${sent.records} records were read back. ` +
    "The original is untouched. Check the target's disk, remove the copy there, and copy again.";
  throw new HoldfastError("STORE_IO", message, { session: id, sent: sent.records, found: found.records });
}

type Relation = "same" | "behind" | "differs";

/**
 * Compares a session in the target with the source. If it has more records than the source, it was written to since.
 */
async function compare(
  from: JournalStore,
  to: JournalStore,
  id: string,
  onProgress: (records: number) => void,
): Promise<{ readonly relation: Relation; readonly passage: Passage }> {
  const passage = new Passage(id);
  const copy = to.history(id)[Symbol.asyncIterator]();
  let relation: Relation = "same";
  try {
    for await (const record of from.history(id)) {
      passage.add(record);
      if (passage.records % BATCH_RECORDS === 0) onProgress(passage.records);
      const { done, value } = await copy.next();
      if (done) {
        relation = "behind";
        break;
      }
      if (value.seq !== record.seq || value.crc !== record.crc) return { relation: "differs", passage };
    }
    if (relation === "same" && !(await copy.next()).done) relation = "differs";
  } finally {
    await copy.return?.();
  }
  return { relation, passage };
}

/** Moves the source to its trash, unless it has more than the copy. Null if it was moved, else why not. */
async function removeSource(
  from: JournalStore,
  { id, head, live, gaps }: Pick<CopyResult, "id" | "head" | "live" | "gaps">,
): Promise<NonNullable<CopyResult["kept"]> | null> {
  if (live) return "in use";
  const { damaged, missing, cutBytes } = await from.verify(id);
  if (gaps.length + damaged.length + missing.length + cutBytes > 0) return "damaged";
  for await (const _ of from.history(id, head + 1)) return "changed";
  try {
    await from.delete(id);
    return null;
  } catch (error) {
    if (isHoldfastError(error, "SESSION_BUSY")) return "in use";
    throw error;
  }
}

function other(id: string, url: string): HoldfastError {
  const message = `Session ${id} was not copied: ${url} has a different session with this id, or a copy that has changed since. Nothing was touched. If you do not need that one, move it to the trash first.`;
  return new HoldfastError("SESSION_EXISTS", message, { session: id });
}

function notVerbatim(id: string, seq: number): HoldfastError {
  const message = `Session ${id} was not copied: record ${seq} was written by another program, in a form that cannot be copied byte for byte. Nothing was touched or lost.`;
  return new HoldfastError("RECORD_INVALID", message, { session: id, seq });
}
