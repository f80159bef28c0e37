import type { HoldfastError } from "../errors.ts";

/** One that throws keeps nobody from being told. Its error is its own, and comes up as such. */
export function tellAll(listeners: Iterable<(failure: HoldfastError) => void>, failure: HoldfastError): void {
  for (const listener of [...listeners]) {
    try {
      listener(failure);
    } catch (error) {
      queueMicrotask(() => {
        throw error;
      });
    }
  }
}
