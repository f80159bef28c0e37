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
  async write(...parts: Buffer[]): Promise<void> {
    const stream = this.#stream;
    if (this.#isClosed || stream.destroyed || stream.writableEnded) return;
    if (parts.length > 1) stream.cork();
    for (const part of parts) stream.write(part);
    if (parts.length > 1) stream.uncork();
    if (!stream.writableNeedDrain) return;
    await new Promise<void>((resolve) => {
      const done = (): void => {
        stream.off("drain", done).off("close", done);
        resolve();
      };
      stream.on("drain", done).on("close", done);
    });
  }
}
