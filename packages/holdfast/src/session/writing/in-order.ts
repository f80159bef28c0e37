/** Runs calls one after another: each starts when the earlier ones are done, synchronously if there are none. */
export class InOrder {
  #last: Promise<void> = Promise.resolve();
  #underWay = 0;

  get isBusy(): boolean {
    return this.#underWay > 0;
  }

  /** Resolves when all earlier calls are done. Never rejects. */
  get over(): Promise<void> {
    return this.#last;
  }

  async run<T>(run: () => Promise<T>): Promise<T> {
    const before = this.isBusy ? this.#last : null;
    const { promise, resolve } = Promise.withResolvers<void>();
    this.#last = promise;
    this.#underWay += 1;
    try {
      if (before) await before;
      return await run();
    } finally {
      this.#underWay -= 1;
      resolve();
    }
  }
}
