import { isHoldfastError } from "holdfast";

/** Outcomes that found no space when their tools returned. Nobody else knows what those tools did: they are kept here, and recorded before the model is asked again (C19). */
export class Unrecorded {
  #left: (() => Promise<void>)[] = [];

  keep(record: () => Promise<void>): void {
    this.#left.push(record);
  }

  /** Whether there was anything to record. Rejects if there still is no space: then it can be tried again. */
  async record(): Promise<boolean> {
    const left = this.#left.splice(0);
    for (const [at, record] of left.entries()) {
      try {
        await record();
      } catch (error) {
        // Meanwhile its session was closed, or the call is gone with an epoch: there is no place for it any more.
        if (isHoldfastError(error, "SESSION_CLOSED", "CALL_UNKNOWN")) continue;
        this.#left.unshift(...left.slice(at));
        throw error;
      }
    }
    return left.length > 0;
  }
}
