import type { PlanStep } from "@holdfast/acp";
import { shapeOf } from "./shape.ts";
import { SUMMARY_HEAD } from "./summary.ts";

export type { PlanStep };

/** The tool with which the model sets its plan. */
export const PLAN = "plan";

const MARKS: readonly [PlanStep["status"], string][] = [
  ["completed", "[x]"],
  ["in_progress", "[>]"],
  ["pending", "[ ]"],
];

/** The plan that a call sets; null if it is another call, or not a plan. */
export function planOf({ name, input }: { readonly name: string; readonly input: unknown }): PlanStep[] | null {
  const steps = name === PLAN ? shapeOf(input)?.["steps"] : undefined;
  if (!Array.isArray(steps)) return null;
  const plan = steps.map(stepIn);
  return plan.every((step) => step !== null) ? plan : null;
}

function stepIn(given: unknown): PlanStep | null {
  const { content, status, priority = "medium" } = shapeOf(given) ?? {};
  const isPriority = priority === "high" || priority === "medium" || priority === "low";
  const isStatus = status === "pending" || status === "in_progress" || status === "completed";
  return typeof content === "string" && isStatus && isPriority ? { content, status, priority } : null;
}

/** One line for each step. */
export function planWords(steps: readonly Pick<PlanStep, "content" | "status">[]): string {
  const mark = new Map(MARKS);
  return steps.map(({ content, status }) => `${mark.get(status)} ${content.replaceAll(/\s+/g, " ").trim()}`).join("\n");
}

const IN_SUMMARY = "The plan at that point:";

/** What a summary says of the plan, so that it survives the conversation in which it was made. */
export function withPlan(summary: string, steps: readonly PlanStep[] | null): string {
  return steps && steps.length > 0 ? `${summary}\n\n${IN_SUMMARY}\n${planWords(steps)}` : summary;
}

/** The plan in a summary; null if there is none. */
export function planInSummary(text: string): PlanStep[] | null {
  const at = text.startsWith(SUMMARY_HEAD) ? text.lastIndexOf(`\n\n${IN_SUMMARY}\n`) : -1;
  if (at < 0) return null;
  const steps = text
    .slice(at + IN_SUMMARY.length + 3)
    .split("\n")
    .flatMap((line): PlanStep[] => {
      const status = MARKS.find(([, mark]) => line.startsWith(`${mark} `))?.[0];
      return status ? [{ content: line.slice(4), status, priority: "medium" }] : [];
    });
  return steps.length > 0 ? steps : null;
}
