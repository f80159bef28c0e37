import type { Dialect } from "../dialects/dialect.ts";

/**
 * Caches the dialect's answers per message, so that passes over the whole conversation after a change of the past cost
 * only the new messages (P7). Recorded messages do not change.
 */
export function remembering<M>(dialect: Dialect<M>): Dialect<M> {
  return {
    ...dialect,
    role: memoize((message) => dialect.role(message)),
    text: memoize((message) => dialect.text(message)),
    calls: memoize((message) => dialect.calls(message)),
    results: memoize((message) => dialect.results(message)),
  };
}

function memoize<M, T>(ask: (message: M) => T): (message: M) => T {
  const answers = new WeakMap<object, { readonly answer: T }>();
  return (message) => {
    if (typeof message !== "object" || message === null) return ask(message);
    const known = answers.get(message);
    if (known) return known.answer;
    const answer = ask(message);
    answers.set(message, { answer });
    return answer;
  };
}
