/** Results for the model, in the words that the library uses for calls that were interrupted. */

export function outcomeUnknownText(because: string): string {
  return `Started, then ${because}: outcome unknown. It may have taken effect: check before repeating it.`;
}

export function outcomeUnknown(because: string): Error {
  return new Error(outcomeUnknownText(because));
}

export function wasStopped(): Error {
  return new Error("Was running when it was stopped: it may have taken effect. Check before repeating it.");
}
