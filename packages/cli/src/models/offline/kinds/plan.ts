import type { Job, Step } from "../evidence/job.ts";
import { has } from "../evidence/known.ts";

/** "plan: 1. a 2. b": sets a plan whose first step is under way. */
export function planJob(steps: readonly string[]): Job {
  const input = {
    steps: steps.map((content, at) => ({ content, status: at === 0 ? "in_progress" : "pending" })),
  };
  return {
    title: "plan",
    next(known, from, before): Step {
      const at = known.calls.findIndex(({ name }, index) => index >= from && name === "plan");
      const isMade = before["done"] === true || at >= 0;
      if (!isMade && has(known, "plan"))
        return { kind: "call", calls: [{ name: "plan", input }], thought: "I make a plan.", progress: {} };
      const text = isMade ? `The plan has ${steps.length} steps.` : 'There is no tool "plan".';
      return { kind: "answer", text, to: at >= 0 ? at + 1 : from, progress: { done: true } };
    },
  };
}
