const WIDTH = 30;

/** A progress bar on a terminal; nothing elsewhere. */
export class Progress {
  readonly #stream: NodeJS.WriteStream;
  readonly #total: number;
  #drawnAt = 0;

  constructor(total: number, stream: NodeJS.WriteStream = process.stderr) {
    this.#total = total;
    this.#stream = stream;
  }

  show(done: number, words: string): void {
    const now = performance.now();
    if (!this.#stream.isTTY || now - this.#drawnAt < 100) return;
    this.#drawnAt = now;
    const full = Math.round((Math.min(done, this.#total) / this.#total) * WIDTH);
    const line = `[${"#".repeat(full)}${".".repeat(WIDTH - full)}] ${done}/${this.#total} ${words}`;
    this.#stream.write(`\r\x1b[2K${line.slice(0, (this.#stream.columns ?? 80) - 1)}`);
  }

  clear(): void {
    if (this.#stream.isTTY) this.#stream.write("\r\x1b[2K");
  }
}
