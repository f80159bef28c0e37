import type { Item } from "../conversation/item.ts";
import type { Dialect } from "../dialects/dialect.ts";

/** Why some recorded content will be in no request, for developers: each reason once, in recorded order. */
export function unsentIn<M>(items: readonly Item<M>[], { unsent }: Dialect<M>): readonly string[] {
  if (!unsent) return [];
  const found = new Set<string>();
  for (let from = 0, to = 0; from < items.length; from = to) {
    const { step } = items[from]!.entry;
    const messages: M[] = [];
    for (; items[to]?.entry.step === step; to++) messages.push(items[to]!.entry.message);
    const why = items[from]!.role === "assistant" ? unsent(messages) : null;
    if (why !== null) found.add(why);
  }
  return [...found];
}

/**
 * The step of each message in a list that the application would send. Consecutive assistant messages are one response
 * if the first of them is not sent without another, because nothing else shows what it led to. Any other message is a
 * step of its own.
 */
export function stepsIn<M>(
  messages: readonly M[],
  { role, unsent }: Dialect<M>,
  idOf: (at: number) => string,
): string[] {
  let step: string | null = null;
  return messages.map((message, at) => {
    const isAssistants = role(message) === "assistant";
    if (!isAssistants) step = null;
    else if (step === null && unsent && unsent([message]) !== null) step = idOf(at);
    return step ?? idOf(at);
  });
}
