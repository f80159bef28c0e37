import { refuse } from "../access/request-error.ts";
import type { EventStream } from "../events/event-stream.ts";

/** The open event streams, and how many there may be. */
export class Streams {
  readonly #max: number;
  readonly #open = new Set<EventStream>();
  #reserved = 0;

  constructor(max: number) {
    this.#max = max;
  }

  get count(): number {
    return this.#open.size;
  }

  /** How many bytes wait for clients to read them. */
  get waitingBytes(): number {
    return [...this.#open].reduce((sum, stream) => sum + stream.waitingBytes, 0);
  }

  /** Throws TOO_MANY_STREAMS. Call the returned function when the stream is open, or never will be. */
  reserve(): () => void {
    if (this.#open.size + this.#reserved >= this.#max)
      throw refuse(
        "TOO_MANY_STREAMS",
        `The server has ${this.#max} open event streams and accepts no more. Nothing was lost: try again, or close some clients.`,
        { max: this.#max },
      );
    this.#reserved++;
    let isHeld = true;
    return () => {
      if (isHeld) this.#reserved--;
      isHeld = false;
    };
  }

  add(stream: EventStream): void {
    this.#open.add(stream);
    stream.signal.addEventListener("abort", () => this.#open.delete(stream), { once: true });
  }

  end(): void {
    for (const stream of [...this.#open]) stream.end();
  }
}
