import { type Job, type Step, settle } from "../evidence/job.ts";
import type { Progress } from "../evidence/progress.ts";

/** "1. write a.txt: x 2. run …": one after the other, with a list of what was done. */
export function stepsJob(steps: readonly Job[]): Job {
  return {
    title: `work through ${steps.length} steps`,
    next(known, from, before): Step {
      const told = Array.isArray(before["told"]) ? (before["told"] as string[]) : [];
      let inner = (before["inner"] ?? {}) as Progress;
      const answers = [...told];
      let at = from;
      for (const [index, step] of steps.entries()) {
        if (index < told.length) continue;
        const isLast = index === steps.length - 1;
        const now = isLast ? step.next(known, at, inner) : settle(step, known, at, inner);
        if (now.kind === "call") {
          return {
            kind: "call",
            calls: now.calls,
            thought: `Step ${index + 1} of ${steps.length}: ${step.title}. ${now.thought}`,
            ...(at === from && index === 0 && known.calls.length === from ? { text: planOf(steps) } : {}),
            progress: { told: answers, inner: now.progress },
          };
        }
        inner = {};
        answers.push(now.text.slice(0, 600));
        at = now.to;
      }
      const text = ["All steps are through:", "", ...answers.map((answer, index) => `${index + 1}. ${answer}`)].join(
        "\n",
      );
      return { kind: "answer", text, to: at, progress: { told: answers } };
    },
  };
}

function planOf(steps: readonly Job[]): string {
  return ["The plan:", "", ...steps.map((step, index) => `${index + 1}. [ ] ${step.title}`), ""].join("\n");
}
