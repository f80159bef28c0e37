interface Waiter {
  readonly last: number;
  readonly resolve: () => void;
  readonly reject: (error: Error) => void;
}

/** Callers that wait until a seq is durable. */
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

  /** Not in seq order: a repeated key waits for an older seq. */
  settle(durable: number): void {
    const waiting = this.#waiting;
    this.#waiting = waiting.filter((waiter) => waiter.last > durable);
    for (const waiter of waiting) if (waiter.last <= durable) waiter.resolve();
  }

  /** Returns whether anyone was waiting. */
  rejectAll(error: Error): boolean {
    const waiting = this.#waiting;
    this.#waiting = [];
    for (const waiter of waiting) waiter.reject(error);
    return waiting.length > 0;
  }
}
