import { useEffect, useState } from "preact/hooks";
import { get, Refusal } from "../api/http.ts";

export interface LoadState<T> {
  readonly value: T | null;
  readonly failure: string | null;
}

/** Loads something once, and again when `version` changes. What was there stays until the new answer comes. */
export function useLoaded<T>(path: string, version: unknown): LoadState<T> {
  const [loaded, setLoaded] = useState<LoadState<T>>({ value: null, failure: null });
  useEffect(() => {
    const controller = new AbortController();
    get<T>(path, {}, controller.signal).then(
      (value) => setLoaded({ value, failure: null }),
      (error: unknown) => {
        if (controller.signal.aborted) return;
        if (!(error instanceof Refusal)) throw error;
        setLoaded(({ value }) => ({ value, failure: error.message }));
      },
    );
    return () => controller.abort();
  }, [path, version]);
  return loaded;
}
