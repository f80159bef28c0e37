import type { HoldfastError } from "../errors.ts";

/** A listener that throws does not stop the others. Its error surfaces as uncaught. */
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
