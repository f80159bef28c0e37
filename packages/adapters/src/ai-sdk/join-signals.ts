/** Fires when any of them does. */
export function joinSignals(own: AbortSignal, ...others: (AbortSignal | null | undefined)[]): AbortSignal {
  return AbortSignal.any([own, ...others.filter((signal) => signal != null)]);
}
