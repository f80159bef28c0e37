import type { Caller, Credentials } from "../access/credentials.ts";
import { refuse } from "../access/request-error.ts";
import type { EventStream } from "../events/event-stream.ts";

type Stream = Pick<EventStream, "signal" | "waitingBytes" | "end">;

function tooMany(who: string, max: number): Error {
  const message = `${who} ${max} open event streams, and no more are accepted. Nothing was lost: try again, or close some clients.`;
  return refuse("TOO_MANY_STREAMS", message, { max });
}

/** The open event streams, who reads them, and how many there may be. */
export class Streams {
  readonly #max: number;
  readonly #perShare: number;
  readonly #open = new Map<Stream, Caller>();
  readonly #reserved = new Set<{ readonly caller: Caller }>();

  /** `perShare`: how many a read-only token may have. All of them together may have half. */
  constructor(max: number, perShare: number) {
    this.#max = max;
    this.#perShare = perShare;
  }

  get count(): number {
    return this.#open.size;
  }

  /** How many bytes wait for clients to read them. */
  get waitingBytes(): number {
    return [...this.#open.keys()].reduce((sum, stream) => sum + stream.waitingBytes, 0);
  }

  /** Throws TOO_MANY_STREAMS. Call the returned function when the stream is open, or never will be. */
  reserve(caller: Caller): () => void {
    const callers = [...this.#open.values(), ...[...this.#reserved].map((one) => one.caller)];
    if (callers.length >= this.#max) throw tooMany("The server has", this.#max);
    if (caller.access === "read") {
      const readers = callers.filter(({ access }) => access === "read");
      const own = readers.filter((one) => one.access === "read" && one.share === caller.share);
      if (own.length >= this.#perShare) throw tooMany("This read-only token has", this.#perShare);
      // A reader must not keep the owner out.
      const half = Math.floor(this.#max / 2);
      if (readers.length >= half) throw tooMany("Read-only tokens have", half);
    }
    const reserved = { caller };
    this.#reserved.add(reserved);
    return () => this.#reserved.delete(reserved);
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
