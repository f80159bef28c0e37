import type { ModelMessage } from "ai";
import type { Interruption } from "holdfast";
import type { Decision } from "../../tools/permission/decide.ts";
import type { Question } from "./approval-request.ts";
import { byRules } from "./permission-prompts.ts";

/** A turn that waits for a person, over a restart (R7). Pure. */

export const UNDECIDED =
  "The last turn is waiting for your answer. Go on with it to be asked again, or leave it: then its call does not run.";

/** A person was to decide on a call of this turn, and has not; nor has anybody stopped it. */
export function isWaiting({ how, calls }: Pick<Interruption<ModelMessage>, "how" | "calls">): boolean {
  if (how.kind === "suspended") return true;
  if (how.kind === "aborted" && how.by !== "close") return false;
  return calls.some(({ state }) => state === "awaiting");
}

/** The questions that can be put again at once. None if something else is open too: a person decides first how that is taken up. */
export function openQuestions(
  interruption: Pick<Interruption<ModelMessage>, "how" | "calls">,
  decide: (name: string, input: unknown) => Decision,
): readonly Question[] {
  const { calls } = interruption;
  if (!isWaiting(interruption) || !calls.every(({ state }) => state === "awaiting")) return [];
  const asked = calls.map(({ id, name, input }) => ({ toolCallId: id, toolName: name, input }));
  return byRules(asked, decide, "person").undecided;
}
