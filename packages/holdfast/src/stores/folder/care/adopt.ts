import { join } from "node:path";
import type { Disk, DiskFile } from "../../../disk/disk.ts";
import { tolerate } from "../../../disk/failure.ts";
import { putAll } from "../../../disk/put-all.ts";
import { HoldfastError } from "../../../errors.ts";
import type { VerbatimLine } from "../../../journal/contract.ts";
import { placeBefore } from "../../../journal/lifecycle.ts";
import type { Segment } from "../../../journal/lines/account.ts";
import { assertFollows, nothingToAdopt, segmentAt } from "../../../journal/lines/verbatim.ts";
import { SEGMENT_BYTES_MAX } from "../../../journal/record.ts";
import { segmentName, tailName } from "../files/segment.ts";
import { moveIntoPlace, removeTree } from "./trash.ts";

const NEWLINE = Buffer.from("\n");
/** Lines are written in chunks of about this size. */
const PIECE_BYTES = 1024 * 1024;

/**
 * Creates a session with exactly these lines, each segment in a separate file. It is built in `incoming`, synced, and
 * moved into place by one rename: it is there as a whole or not at all. Runs under the lease, and replaces what an
 * earlier attempt left in `incoming`. Throws the disk's errors.
 */
export async function adoptSession(
  place: { readonly disk: Disk; readonly incoming: string; readonly sessions: string; readonly id: string },
  lines: AsyncIterable<readonly VerbatimLine[]>,
  segmentBytesMax: number = SEGMENT_BYTES_MAX,
): Promise<void> {
  const { disk, incoming, sessions, id } = place;
  const folder = join(incoming, id);
  disk.makeFolder(incoming);
  if (disk.stat(folder)) removeTree(disk, folder);
  disk.makeFolder(folder);
  const files = new SegmentFiles(disk, folder, segmentBytesMax);
  try {
    let last = 0;
    for await (const some of lines) {
      for (const line of some) {
        assertFollows(line, id, last);
        last = line.record.seq;
        files.put(line);
      }
    }
    if (last === 0) throw nothingToAdopt(id);
    files.end();
    disk.syncFolder(folder);
    disk.syncFolder(incoming);
    moveIntoPlace(disk, folder, sessions, id);
  } catch (error) {
    files.abandon();
    // The caller must see this failure: what is left is replaced by the next attempt, or collected.
    tolerate(() => removeTree(disk, folder), undefined);
    throw error;
  }
  // The new folder before the old one: after a power cut between the two syncs, the session may be in both, never in
  // neither.
  disk.syncFolder(sessions);
  disk.syncFolder(incoming);
}

class SegmentFiles {
  readonly #disk: Disk;
  readonly #folder: string;
  readonly #bytesMax: number;
  #segment: Segment | null = null;
  #file: DiskFile | null = null;
  #pieces: Buffer[] = [];
  #bytes = 0;
  /** Size of the current segment. */
  #size = 0;

  constructor(disk: Disk, folder: string, bytesMax: number) {
    this.#disk = disk;
    this.#folder = folder;
    this.#bytesMax = bytesMax;
  }

  put({ record, bytes }: VerbatimLine): void {
    const begins = segmentAt(record, this.#segment);
    if (begins) {
      const place = placeBefore(record, begins.number);
      if (place && place.segment === this.#segment?.number) this.#splitAt(place.bytes);
      this.end();
      this.#segment = begins;
      this.#size = 0;
      this.#file = this.#disk.open(join(this.#folder, segmentName(begins.number)), "create");
    }
    this.#size += bytes.length + 1;
    // Stores other than folders do not limit the size of a segment.
    if (this.#size > this.#bytesMax) throw tooLarge(this.#segment!.number);
    this.#pieces.push(bytes, NEWLINE);
    this.#bytes += bytes.length + 1;
    if (this.#bytes >= PIECE_BYTES) this.#flush();
  }

  /** Completes the file and makes it durable. */
  end(): void {
    if (!this.#file) return;
    this.#flush();
    this.#file.syncNow();
    this.abandon();
  }

  /**
   * The next segment continues from an offset in this one: what follows it counts only as its tail, as in the
   * original.
   */
  #splitAt(offset: number): void {
    if (this.#size <= offset) return;
    this.#flush();
    const { number } = this.#segment!;
    const name = segmentName(number);
    const segment = this.#disk.open(join(this.#folder, name), "read");
    try {
      const tail = this.#disk.open(join(this.#folder, tailName(name, offset)), "create");
      try {
        const piece = Buffer.allocUnsafe(Math.min(PIECE_BYTES, this.#size - offset));
        for (let at = offset; at < this.#size; ) {
          const read = segment.read(piece, 0, Math.min(piece.length, this.#size - at), at);
          if (read === 0) throw shrunk(segment.path);
          putAll(piece.subarray(0, read), (rest) => tail.write(rest));
          at += read;
        }
        tail.syncNow();
      } finally {
        tail.close();
      }
    } finally {
      segment.close();
    }
  }

  abandon(): void {
    this.#file?.close();
    this.#file = null;
  }

  #flush(): void {
    const file = this.#file!;
    putAll(Buffer.concat(this.#pieces), (rest) => file.write(rest));
    this.#pieces = [];
    this.#bytes = 0;
  }
}

function shrunk(path: string): HoldfastError {
  const message = `The session was not adopted: another program has changed ${path}. Nothing was created. Try again.`;
  return new HoldfastError("FILE_REPLACED", message, { path });
}

function tooLarge(segment: number): HoldfastError {
  const message =
    `The session was not adopted: its segment ${segment} is larger than ${SEGMENT_BYTES_MAX} bytes (2 GiB), the most that is read from a file. ` +
    "Nothing was written. Start a new epoch in the original (compact it), and copy it again.";
  return new HoldfastError("RECORD_TOO_LARGE", message, { segment, limitBytes: SEGMENT_BYTES_MAX, bytes: null });
}
