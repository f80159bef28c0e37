import { useEffect, useReducer } from "preact/hooks";

/** A value that changes, and those who want to know. */
export class Observable<T> {
  #value: T;
  readonly #listeners = new Set<() => void>();

  constructor(value: T) {
    this.#value = value;
  }

  get value(): T {
    return this.#value;
  }

  set(value: T): void {
    if (Object.is(value, this.#value)) return;
    this.#value = value;
    for (const listener of [...this.#listeners]) listener();
  }

  update(change: (value: T) => T): void {
    this.set(change(this.#value));
  }

  subscribe(listener: () => void): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }
}

/** Draws the component again when the value changes. */
export function useValue<T>(observable: Observable<T>): T {
  const [, redraw] = useReducer<number, void>((count) => count + 1, 0);
  const drawn = observable.value;
  useEffect(() => {
    const stop = observable.subscribe(() => redraw());
    // It may have changed between the drawing and the subscription.
    if (!Object.is(drawn, observable.value)) redraw();
    return stop;
  }, [observable]);
  return drawn;
}
