import { isHoldfastError } from "holdfast";

/**
 * Outcomes that could not be written when their tools returned, because there was no space. Only this process knows
 * what those tools did, so they wait here and are recorded before the model is asked again (C19).
 */
export class UnwrittenOutcomes {
  #left: (() => Promise<void>)[] = [];

  keep(record: () => Promise<void>): void {
    this.#left.push(record);
  }

  /** Returns whether there was anything to record. Rejects if there is still no space: try again later. */
  async record(): Promise<boolean> {
    const left = this.#left.splice(0);
    for (const [at, record] of left.entries()) {
      try {
        await record();
      } catch (error) {
        // The session was closed in the meantime, or the call disappeared with an epoch: it can no longer be recorded.
        if (isHoldfastError(error, "SESSION_CLOSED", "CALL_UNKNOWN")) continue;
        this.#left.unshift(...left.slice(at));
        throw error;
      }
    }
    return left.length > 0;
  }
}
