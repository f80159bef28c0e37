import type { KnownFacts, WantedCall } from "./known.ts";
import type { Progress } from "./progress.ts";

/** A task that was understood. Each request computes its next step from what is known then. */
export interface Job {
  /** On one line. */
  readonly title: string;
  /** `from`: calls before this index belong to earlier tasks. `before`: progress from a summary. */
  next(known: KnownFacts, from: number, before: Progress): Step;
}

export type Step = (
  | {
      readonly kind: "call";
      readonly calls: readonly WantedCall[];
      readonly thought: string;
      /** Text before the calls. */
      readonly text?: string;
    }
  | {
      readonly kind: "answer";
      readonly text: string;
      readonly thought?: string;
      /** Calls before this index are finished with. */
      readonly to: number;
    }
) & {
  /** For a summary: enough to continue after it. */
  readonly progress: Progress;
};

/** The state of a task that others follow: it was done as soon as it had an answer, whatever was called later. */
export function settle(job: Job, known: KnownFacts, from: number, before: Progress): Step {
  for (let end = from; end < known.calls.length; end++) {
    const then = job.next({ ...known, calls: known.calls.slice(0, end) }, from, before);
    if (then.kind === "answer") return { ...then, to: end };
  }
  return job.next(known, from, before);
}

/** The distinct calls, as many as may be made at once. */
export function batch(known: KnownFacts, calls: readonly WantedCall[]): WantedCall[] {
  const seen = new Set<string>();
  return calls
    .filter((call) => {
      const key = JSON.stringify(call);
      return !seen.has(key) && seen.add(key);
    })
    .slice(0, known.parallelMax);
}

export function several(count: number, thing: string): string {
  return `${count} ${thing}${count === 1 ? "" : "s"}`;
}

export function stringsIn(value: unknown): string[] {
  return Array.isArray(value) ? value.filter((one) => typeof one === "string") : [];
}
