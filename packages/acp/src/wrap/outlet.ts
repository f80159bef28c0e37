import { once } from "node:events";
import type { Writable } from "node:stream";

/** Writes lines, and waits while the reader does not read: nothing piles up here. */
export class Outlet {
  readonly #stream: Writable;
  #isClosed = false;

  constructor(stream: Writable) {
    this.#stream = stream;
    stream.on("error", () => {
      this.#isClosed = true;
    });
    stream.on("close", () => {
      this.#isClosed = true;
    });
  }

  /** Resolves when there is room for more. What is written to a reader that is gone is dropped. */
  async write(line: Buffer): Promise<void> {
    if (this.#isClosed || this.#stream.destroyed || this.#stream.writableEnded) return;
    if (this.#stream.write(line)) return;
    await Promise.race([once(this.#stream, "drain"), once(this.#stream, "close")]).catch(() => undefined);
  }
}
