import { isDeepStrictEqual } from "node:util";
import type { ModelMessage } from "ai";
import type { Session } from "holdfast";
import { type CallPart, TAKEN } from "./content.ts";

/** A condition of `stopWhen`. */
export type StopCondition = (options: { readonly steps: readonly unknown[] }) => boolean | PromiseLike<boolean>;

/**
 * Of these calls, which nobody runs by itself, the names of tools that end the run by being called: `hasToolCall`, or a
 * condition of the application's own. A step with only such calls would end it, and one without any would not. (The
 * number of steps ends a run whatever is called.)
 */
export async function finalTools(
  calls: readonly CallPart[],
  stopWhen: StopCondition | readonly StopCondition[] | undefined,
  before: readonly unknown[],
  step: object,
): Promise<Set<string>> {
  const conditions = stopWhen === undefined ? [] : [stopWhen].flat();
  const isEnded = async (toolCalls: readonly CallPart[]): Promise<boolean> => {
    const steps = [...before, { ...step, toolCalls, toolResults: [] }];
    for (const condition of conditions) {
      // This is not a whole step yet, and a condition may need more of it: that one does not depend on the calls alone.
      const met = await new Promise((done) => done(condition({ steps }))).catch(() => false);
      if (met === true) return true;
    }
    return false;
  };
  const found = new Set<string>();
  if (conditions.length === 0 || calls.length === 0 || (await isEnded([]))) return found;
  for (const name of new Set(calls.map(({ toolName }) => toolName)))
    if (await isEnded(calls.filter(({ toolName }) => toolName === name))) found.add(name);
  return found;
}

/** The model's last response was its answer, by calling such a tool, and the calls beside it have their results. */
export function hasFinalAnswer({ entries, turn }: Pick<Session<ModelMessage>, "entries" | "turn">): boolean {
  if (!turn || turn.open.length > 0) return false;
  const at = entries.findLastIndex(({ message }) => message.role === "assistant");
  const results = entries.slice(at + 1).map(({ message }) => (message.role === "tool" ? message.content : null));
  // A person may have said more since.
  if (results.includes(null)) return false;
  return results.some((parts) =>
    parts!.some((part) => part.type === "tool-result" && isDeepStrictEqual(part.output, TAKEN)),
  );
}
