/**
 * The calls of sub-agents that were waiting for a person when their turn was stopped. They get no outcome, so that the
 * question is asked again when the turn is resumed; nobody waits for them.
 */
export class ParkedCalls {
  readonly #ids = new Set<string>();
  #next = Promise.withResolvers<void>();

  /** Resolves when the next call is parked. */
  get next(): Promise<void> {
    return this.#next.promise;
  }

  has(call: string): boolean {
    return this.#ids.has(call);
  }

  /** Never settles. */
  park(call: string): Promise<never> {
    this.#ids.add(call);
    this.#next.resolve();
    this.#next = Promise.withResolvers();
    return new Promise(() => {});
  }
}
