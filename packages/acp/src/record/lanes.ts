/** So many bytes may wait in all lanes together. */
const WAITING_BYTES_MAX = 64 * 1024 * 1024;

/**
 * What a client says about a session is handled in order. It does not wait for what it says about other sessions: an
 * agent may take long to open one, ask the client something meanwhile, or never answer.
 */
export class Lanes {
  readonly #last = new Map<string, Promise<void>>();
  #waitingBytes = 0;

  /** Something is being handled, or waits. */
  get isBusy(): boolean {
    return this.#last.size > 0;
  }

  /**
   * Resolves when the next message may be read: after `work`, unless that has to wait for something else first.
   * `bytes`: of its message, if those that wait are limited. `isLong`: `work` itself may take long. It must not reject.
   */
  async run(lane: string, bytes: number, isLong: boolean, work: () => Promise<void>): Promise<void> {
    const before = this.#last.get(lane);
    const done = before ? before.then(work) : work();
    this.#last.set(lane, done);
    this.#waitingBytes += bytes;
    const over = done.then(() => {
      this.#waitingBytes -= bytes;
      if (this.#last.get(lane) === done) this.#last.delete(lane);
    });
    if (!before && !isLong) return over;
    while (this.#waitingBytes > WAITING_BYTES_MAX) await Promise.race([...this.#last.values()]);
  }
}
