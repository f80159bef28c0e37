import type { Caller, Credentials } from "../access/credentials.ts";
import { refuse } from "../access/request-error.ts";
import type { EventStream } from "../events/event-stream.ts";

type Stream = Pick<EventStream, "signal" | "waitingBytes" | "end">;

/** The open event streams, who reads them, and how many there may be. */
export class Streams {
  readonly #max: number;
  readonly #open = new Map<Stream, Caller>();
  #reserved = 0;

  constructor(max: number) {
    this.#max = max;
  }

  get count(): number {
    return this.#open.size;
  }

  /** How many bytes wait for clients to read them. */
  get waitingBytes(): number {
    return [...this.#open.keys()].reduce((sum, stream) => sum + stream.waitingBytes, 0);
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

  add(stream: Stream, caller: Caller): void {
    this.#open.set(stream, caller);
    stream.signal.addEventListener("abort", () => this.#open.delete(stream), { once: true });
  }

  /** Ends the streams of read-only tokens that have expired or were removed. */
  endInvalid(credentials: Credentials): void {
    const invalid = new Set<Caller>(credentials.invalidAmong([...this.#open.values()]));
    for (const [stream, caller] of [...this.#open]) if (invalid.has(caller)) stream.end();
  }

  end(): void {
    for (const stream of [...this.#open.keys()]) stream.end();
  }
}
