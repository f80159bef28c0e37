import type { UIMessageChunk } from "ai";

/** A chunk, and the id by which a reader can ask for what follows it. */
export interface Numbered {
  readonly id: string | null;
  readonly chunk: UIMessageChunk;
}

/** Where a response takes its chunks from. `next` waits for the next ones; null at the end. */
export interface ChunkSource {
  next(): Promise<readonly Numbered[] | null>;
  /** Nobody reads it any more. */
  cancel(): void;
}

/** At most this many chunks are handed out at once. */
const BATCH = 256;

/**
 * The chunks of one answer, for any number of readers. Each reader has only a position, so a slow one costs no memory
 * beyond the answer itself, which all readers share.
 */
export class ChunkLog {
  readonly #name: string;
  readonly #chunks: UIMessageChunk[] = [];
  #isOver = false;
  /** Readers that have everything there is. */
  readonly #waiting = new Set<() => void>();

  constructor(name: string) {
    this.#name = name;
  }

  get length(): number {
    return this.#chunks.length;
  }

  push(...chunks: readonly UIMessageChunk[]): void {
    this.#chunks.push(...chunks);
    this.#wake();
  }

  end(): void {
    this.#isOver = true;
    this.#wake();
  }

  /** The position after the chunk with this id; null if it is not a chunk of this log. */
  after(id: string): number | null {
    const at = id.lastIndexOf("-");
    const n = Number(id.slice(at + 1));
    const isOwn = id.slice(0, at) === this.#name && Number.isInteger(n) && n >= 0 && n < this.#chunks.length;
    return isOwn ? n + 1 : null;
  }

  /** Reads from this position on, also what is not there yet. */
  from(position: number): ChunkSource {
    let at = position;
    let isCancelled = false;
    let wake: (() => void) | null = null;
    return {
      next: async () => {
        while (!isCancelled && at >= this.#chunks.length && !this.#isOver) {
          const { promise, resolve } = Promise.withResolvers<void>();
          this.#waiting.add(resolve);
          wake = resolve;
          await promise;
        }
        if (isCancelled) return null;
        const found = this.#chunks.slice(at, at + BATCH).map((chunk, n) => ({ id: `${this.#name}-${at + n}`, chunk }));
        at += found.length;
        return found.length > 0 ? found : null;
      },
      cancel: () => {
        isCancelled = true;
        if (wake) this.#waiting.delete(wake);
        wake?.();
      },
    };
  }

  #wake(): void {
    const waiting = [...this.#waiting];
    this.#waiting.clear();
    for (const wake of waiting) wake();
  }
}

/** First these, then the rest. */
export function startingWith(chunks: readonly UIMessageChunk[], rest: ChunkSource | null): ChunkSource {
  let isFirst = chunks.length > 0;
  return {
    next: async () => {
      if (!isFirst) return (await rest?.next()) ?? null;
      isFirst = false;
      return chunks.map((chunk) => ({ id: null, chunk }));
    },
    cancel: () => rest?.cancel(),
  };
}
