import { wordsOf } from "../../admit/admit.ts";
import type { ToolProcess } from "../../conversation/records/records.ts";
import type { Outcome } from "../../dialects/dialect.ts";
import type { Json } from "../../journal/record.ts";

/** A call whose outcome is unknown: an earlier process started it. */
export interface ProbedCall {
  readonly id: string;
  readonly name: string;
  readonly input: unknown;
  /** The idempotency key that its tool was given; null in journals of versions without. */
  readonly key: string | null;
  readonly startedAt: string;
  /** What was noted before it started (`ToolOptions.before`). */
  readonly before?: Json;
  /** Where it was recorded as running. */
  readonly process?: ToolProcess;
  /** Fires when the answer no longer counts: after the time limit, or when the turn is stopped. */
  readonly signal: AbortSignal;
}

/**
 * What a probe found: the outcome; that the call has not taken effect, and may run; or that nobody can tell, as if it
 * had not been asked.
 */
export type ProbeAnswer<T = unknown> = Outcome<T> | "did-not-happen" | "unknown";

/** Finds out what happened to a call, for example by asking a service for its idempotency key. Must change nothing. */
export type Probe<T = unknown> = (call: ProbedCall) => ProbeAnswer<T> | Promise<ProbeAnswer<T>>;

export interface ProbeOptions {
  /** How long to wait for a probe, in milliseconds. Default 10,000. */
  readonly probeMs?: number;
}

const PROBE_MS = 10_000;

/** Never throws: a probe that throws, hangs or answers something else leaves the call as it was, with a warning. */
export async function askProbe<A extends object>(
  probe: (asked: A & { readonly signal: AbortSignal }) => ProbeAnswer | Promise<ProbeAnswer>,
  asked: A,
  [tool, what]: readonly [tool: string, what: string],
  { probeMs = PROBE_MS }: ProbeOptions,
  stopped?: AbortSignal,
): Promise<ProbeAnswer> {
  const limit = new AbortController();
  const timer = setTimeout(() => limit.abort(new Error(`no answer after ${probeMs} ms`)), probeMs);
  const signal = stopped ? AbortSignal.any([limit.signal, stopped]) : limit.signal;
  const { promise: over, reject } = Promise.withResolvers<never>();
  const stop = (): void => reject(signal.reason);
  signal.addEventListener("abort", stop, { once: true });
  try {
    signal.throwIfAborted();
    const answer = await Promise.race([probe({ ...asked, signal }), over]);
    if (isAnswer(answer)) return answer;
    throw new Error('the answer must be { value }, { error }, "did-not-happen" or "unknown"');
  } catch (error) {
    const words = `The probe of ${tool} could not tell what happened to ${what}: ${wordsOf(error)}`;
    process.emitWarning(words, { type: "HoldfastWarning", code: "HOLDFAST_PROBE" });
    return "unknown";
  } finally {
    clearTimeout(timer);
    signal.removeEventListener("abort", stop);
  }
}

function isAnswer(answer: unknown): answer is ProbeAnswer {
  if (answer === "did-not-happen" || answer === "unknown") return true;
  return typeof answer === "object" && answer !== null && ("value" in answer || "error" in answer);
}
