import { once } from "node:events";
import { isHoldfastError, type Session } from "holdfast";

/** A run that meets it has not failed: the next process continues its turn. */
export function isOfHandOver(error: unknown): boolean {
  return isHoldfastError(error, "TURN_HANDED_OVER");
}

/**
 * A tool may not start. Waits until the turn is handed over: a framework that learns of the refusal stops the tools
 * that run beside it.
 */
export async function handedOver(signal: AbortSignal): Promise<void> {
  if (!signal.aborted) await once(signal, "abort");
}

/** How a run ended. What was to end its turn may find that it was handed over, which is the outcome then. */
export async function unlessHandedOver<M, O>(
  session: Session<M>,
  end: () => Promise<O>,
): Promise<O | { readonly kind: "handed-over" }> {
  try {
    const outcome = await end();
    if (session.interruption?.how.kind !== "handed-over") return outcome;
  } catch (error) {
    if (!isOfHandOver(error)) throw error;
  }
  return { kind: "handed-over" };
}
