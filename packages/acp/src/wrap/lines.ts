const NEWLINE = 0x0a;

/** Splits a stream of bytes into lines, before anything is decoded. Each line keeps its bytes, with its newline. */
export class LineSplitter {
  #parts: Buffer[] = [];

  push(chunk: Buffer): Buffer[] {
    const lines: Buffer[] = [];
    let start = 0;
    for (let end = chunk.indexOf(NEWLINE); end !== -1; end = chunk.indexOf(NEWLINE, start)) {
      const part = chunk.subarray(start, end + 1);
      lines.push(this.#parts.length === 0 ? part : Buffer.concat([...this.#parts, part]));
      this.#parts = [];
      start = end + 1;
    }
    if (start < chunk.length) this.#parts.push(chunk.subarray(start));
    return lines;
  }

  /** What came after the last newline; null if nothing did. */
  end(): Buffer | null {
    const rest = this.#parts.length === 0 ? null : Buffer.concat(this.#parts);
    this.#parts = [];
    return rest;
  }
}
