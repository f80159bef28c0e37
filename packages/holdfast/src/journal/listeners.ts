/** A listener that throws does not stop the others. Its error surfaces as uncaught. */
export function tellAll<T>(listeners: Iterable<(told: T) => void>, told: T): void {
  for (const listener of listeners) {
    try {
      listener(told);
    } catch (error) {
      queueMicrotask(() => {
        throw error;
      });
    }
  }
}
