interface Waiter {
  readonly last: number;
  readonly resolve: () => void;
  readonly reject: (error: Error) => void;
}

/** Those who wait until a seq is durable. */
export class Waiters {
  #waiting: Waiter[] = [];

  get none(): boolean {
    return this.#waiting.length === 0;
  }

  waitFor(last: number): Promise<void> {
    return new Promise((resolve, reject) => {
      this.#waiting.push({ last, resolve, reject });
    });
  }

  /** Not in the order of their seqs: the same key again waits for an older one. */
  settle(durable: number): void {
    const waiting = this.#waiting;
    this.#waiting = waiting.filter((waiter) => waiter.last > durable);
    for (const waiter of waiting) if (waiter.last <= durable) waiter.resolve();
  }

  /** Returns whether anybody was told. */
  rejectAll(error: Error): boolean {
    const waiting = this.#waiting;
    this.#waiting = [];
    for (const waiter of waiting) waiter.reject(error);
    return waiting.length > 0;
  }
}
