import {
  closeSync,
  constants,
  fdatasyncSync,
  futimesSync,
  lstatSync,
  openSync,
  readSync,
  renameSync,
  writeSync,
} from "node:fs";
import { basename, dirname } from "node:path";
import { setImmediate as pause } from "node:timers/promises";
import type { FileFacts } from "../files/door.ts";
import type { SourceFile } from "../files/source-file.ts";
import { namesIn } from "./names.ts";

/**
 * A file of an agent, kept byte for byte. The copy only grows. When the agent's file no longer begins with what was
 * kept, the copy becomes an epoch of its own (`<name>.epoch-<n>`), and a new one begins. A copy that was interrupted is
 * the beginning of the file: the next one goes on where it ends.
 */

export interface KeepOutcome {
  /** `shrunk`, `rewritten`: what was kept before is in an epoch of its own now. */
  readonly change: "none" | "new" | "grown" | "shrunk" | "rewritten";
  /** The size of what was kept before, and now. */
  readonly before: number;
  readonly size: number;
  /** Of the epoch that has just ended. */
  readonly epoch: string | null;
}

export interface KeepOptions {
  /** Compares everything that was kept, not only its beginning and its end. */
  readonly isThorough: boolean;
  /** Compares also if the size and the time of the file say that nothing changed. */
  readonly isForced?: boolean;
  /** Ends what takes long, before its end: the next time it goes on. */
  readonly signal?: AbortSignal;
}

/** Some systems count the times of files in steps of two seconds. */
const TICK_MS = 2_000;
const CHUNK_BYTES = 2 ** 18;
/** How much of its beginning, and of its end, is compared each time. */
const EDGE_BYTES = 2 ** 16;
/** After so many bytes, others get their turn. */
const SHARE_BYTES = 2 ** 23;

/** Whether the copy is complete: it has the file's size and its time. */
export function isCurrent(target: string, { size, modifiedMs }: FileFacts): boolean {
  const kept = lstatSync(target, { throwIfNoEntry: false });
  return kept?.isFile() === true && kept.size === size && Math.abs(kept.mtimeMs - modifiedMs) < 1;
}

/** Keeps what the file has by now. Throws errors of the system, such as a full disk; what was kept stays. */
export async function keepFile(
  file: SourceFile,
  facts: FileFacts,
  target: string,
  { isThorough, signal }: KeepOptions,
): Promise<KeepOutcome> {
  const old = lstatSync(target, { throwIfNoEntry: false });
  if (old && !old.isFile()) throw new Error(`${target} is no file. Nothing was kept there.`);
  const before = old?.size ?? 0;
  const epochs = namesIn(dirname(target)).filter((name) => name.startsWith(`${basename(target)}.epoch-`));
  let epoch: string | null = null;
  if (old && !(before <= file.size && (await beginsWith(file, target, before, isThorough, signal)))) {
    epoch = `${target}.epoch-${1 + Math.max(0, ...epochs.map((name) => Number(/\d+$/.exec(name)?.[0] ?? 0)))}`;
    renameSync(target, epoch);
  }
  const size = await append(file, facts, target, epoch === null ? before : 0, signal);
  return { change: changeOf(old !== undefined, epochs.length > 0, epoch !== null, before, size), before, size, epoch };
}

function changeOf(
  isThere: boolean,
  hasEpochs: boolean,
  isReplaced: boolean,
  before: number,
  size: number,
): KeepOutcome["change"] {
  if (isReplaced) return size < before ? "shrunk" : "rewritten";
  // With epochs but without a copy, it was interrupted right after the old copy got its new name.
  if (!isThere) return hasEpochs ? "rewritten" : "new";
  return size > before ? "grown" : "none";
}

/** Whether the file begins with the `length` bytes that were kept. */
async function beginsWith(
  file: SourceFile,
  target: string,
  length: number,
  isThorough: boolean,
  signal: AbortSignal | undefined,
): Promise<boolean> {
  const kept = openSync(target, constants.O_RDONLY | (constants.O_NOFOLLOW ?? 0));
  try {
    const isWhole = isThorough || length <= 2 * EDGE_BYTES;
    const spans = isWhole ? [[0, length] as const] : [[0, EDGE_BYTES] as const, [length - EDGE_BYTES, length] as const];
    const bytes = Buffer.allocUnsafe(CHUNK_BYTES);
    for (const [from, to] of spans)
      for (let offset = from; offset < to; ) {
        const count = readSync(kept, bytes, 0, Math.min(CHUNK_BYTES, to - offset), offset);
        if (count === 0 || !bytes.subarray(0, count).equals(file.read(offset, count))) return false;
        offset += count;
        if (Math.floor(offset / SHARE_BYTES) > Math.floor((offset - count) / SHARE_BYTES)) await rest(signal);
      }
    return true;
  } finally {
    closeSync(kept);
  }
}

/** Adds what is missing, and syncs it. The time of the file is set last: it says that the copy is complete. */
async function append(
  file: SourceFile,
  facts: FileFacts,
  target: string,
  from: number,
  signal: AbortSignal | undefined,
): Promise<number> {
  const kept = openSync(target, constants.O_RDWR | constants.O_CREAT | (constants.O_NOFOLLOW ?? 0), 0o600);
  let offset = from;
  try {
    while (offset < file.size) {
      const bytes = file.read(offset, CHUNK_BYTES);
      // It was cut off meanwhile: the next look sees that.
      if (bytes.length === 0) break;
      for (let written = 0; written < bytes.length; )
        written += writeSync(kept, bytes, written, bytes.length - written, offset + written);
      offset += bytes.length;
      if (Math.floor(offset / SHARE_BYTES) > Math.floor((offset - bytes.length) / SHARE_BYTES)) await rest(signal);
    }
    if (offset > from) fdatasyncSync(kept);
    // A file that was written just now can be written again without another time.
    const isSettled = Date.now() - facts.modifiedMs > TICK_MS;
    // Its own time would be the one of a file that is written next.
    futimesSync(kept, new Date(), offset === facts.size && isSettled ? facts.modifiedMs / 1000 : 0);
  } finally {
    closeSync(kept);
  }
  return offset;
}

async function rest(signal: AbortSignal | undefined): Promise<void> {
  await pause();
  signal?.throwIfAborted();
}
