/** How many requests of one read-only token are worked on at the same time. */
const LANES = 4;

interface Lanes {
  busy: number;
  readonly waiting: (() => void)[];
}

/**
 * Lets the requests of each read-only token through a few at a time. Some of them take long on a large session, and
 * anybody with the link can send many: the owner's requests wait for a few of them at most.
 */
export class ReaderLanes {
  readonly #lanes = new Map<string, Lanes>();

  /** Resolves when it is the request's turn. Call the returned function when it has been answered. */
  async enter(share: string): Promise<() => void> {
    const lanes = this.#lanes.get(share) ?? { busy: 0, waiting: [] };
    this.#lanes.set(share, lanes);
    if (lanes.busy < LANES) lanes.busy++;
    else await new Promise<void>((resolve) => lanes.waiting.push(resolve));
    return () => {
      const next = lanes.waiting.shift();
      // Not at once: what others have sent meanwhile is read first.
      if (next) return void setImmediate(next);
      lanes.busy--;
      if (lanes.busy === 0) this.#lanes.delete(share);
    };
  }
}
