import type { Progress } from "./carried.ts";
import type { Known, Wanted } from "./known.ts";

/** A task, understood. What it does next is asked anew for each request, by what is known then. */
export interface Job {
  /** On one line. */
  readonly title: string;
  /**
   * `from`: calls before this index belong to earlier tasks. `before`: what a summary carried over.
   */
  next(known: Known, from: number, before: Progress): Step;
}

export type Step = (
  | {
      readonly kind: "call";
      readonly calls: readonly Wanted[];
      readonly thought: string;
      /** Said before the calls. */
      readonly text?: string;
    }
  | {
      readonly kind: "answer";
      readonly text: string;
      readonly thought?: string;
      /** The calls before this index are done with. */
      readonly to: number;
    }
) & {
  /** For a summary: enough to go on behind it. */
  readonly progress: Progress;
};

/** So many calls at once. */
export const PARALLEL_MAX = 8;

export function batch(calls: readonly Wanted[]): Wanted[] {
  const seen = new Set<string>();
  return calls
    .filter((call) => {
      const key = JSON.stringify(call);
      return !seen.has(key) && seen.add(key);
    })
    .slice(0, PARALLEL_MAX);
}

export function several(count: number, thing: string): string {
  return `${count} ${thing}${count === 1 ? "" : "s"}`;
}

export function stringsIn(value: unknown): string[] {
  return Array.isArray(value) ? value.filter((one) => typeof one === "string") : [];
}
