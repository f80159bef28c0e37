import type { CallPart } from "./content.ts";

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
