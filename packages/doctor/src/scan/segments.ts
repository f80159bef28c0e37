/** Bytes between two breaks: line feeds, runs of NUL, and the ends of the file. */
export interface Segment {
  readonly line: number;
  readonly offset: number;
  readonly bytes: Uint8Array;
  /** Of all its bytes: more than `bytes` has if the segment is longer than any record may be. */
  readonly length: number;
  readonly end: "line" | "nul" | "file";
  /** Of the bytes that end it. */
  readonly endLength: number;
}

const LF = 0x0a;

/** Splits chunks of a file at line feeds and runs of NUL. At most `bytesMax` of one segment are held. */
export function* segmentsOf(chunks: Iterable<Uint8Array>, bytesMax: number): Generator<Segment> {
  const gather = new Gather(bytesMax);
  let line = 1;
  let offset = 0;
  /** The run of NUL that the last chunk ended in. */
  let nuls = 0;
  for (const bytes of chunks) {
    const chunk = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
    let at = 0;
    let nextNul = chunk.indexOf(0);
    while (at < chunk.length) {
      if (nuls > 0 || nextNul === at) {
        const end = endOfNuls(chunk, at);
        nuls += end - at;
        at = end;
        nextNul = at < chunk.length ? chunk.indexOf(0, at) : -1;
        if (at === chunk.length) break;
        yield gather.take({ line, offset, end: "nul", endLength: nuls });
        offset += gather.taken + nuls;
        nuls = 0;
        continue;
      }
      const newline = chunk.indexOf(LF, at);
      const stop = nextNul >= 0 && (newline < 0 || nextNul < newline) ? nextNul : newline;
      if (stop < 0) {
        gather.add(chunk.subarray(at));
        at = chunk.length;
      } else {
        gather.add(chunk.subarray(at, stop));
        at = stop;
        if (stop !== nextNul) {
          yield gather.take({ line, offset, end: "line", endLength: 1 });
          offset += gather.taken + 1;
          line++;
          at++;
        }
      }
    }
  }
  if (nuls > 0) yield gather.take({ line, offset, end: "nul", endLength: nuls });
  else if (!gather.isEmpty) yield gather.take({ line, offset, end: "file", endLength: 0 });
}

function endOfNuls(chunk: Buffer, from: number): number {
  let at = from;
  while (at < chunk.length && chunk[at] === 0) at++;
  return at;
}

/** The bytes of one segment, which may come from several chunks. */
class Gather {
  readonly #bytesMax: number;
  #parts: Uint8Array[] = [];
  #held = 0;
  #length = 0;
  /** The length of the segment that was taken last. */
  taken = 0;

  constructor(bytesMax: number) {
    this.#bytesMax = bytesMax;
  }

  get isEmpty(): boolean {
    return this.#length === 0;
  }

  add(bytes: Uint8Array): void {
    this.#length += bytes.length;
    const part = bytes.subarray(0, this.#bytesMax - this.#held);
    if (part.length === 0) return;
    this.#held += part.length;
    this.#parts.push(part);
  }

  take(place: Omit<Segment, "bytes" | "length">): Segment {
    const bytes = this.#parts.length === 1 ? this.#parts[0]! : Buffer.concat(this.#parts);
    const segment = { ...place, bytes, length: this.#length };
    this.taken = this.#length;
    this.#parts = [];
    this.#held = 0;
    this.#length = 0;
    return segment;
  }
}
