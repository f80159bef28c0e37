import { once } from "node:events";
import { isHoldfastError } from "holdfast";

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
