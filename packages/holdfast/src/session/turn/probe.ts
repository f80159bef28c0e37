import { wordsOf } from "../../admit/admit.ts";
import { invalid } from "../../admit/refusals.ts";
import type { ToolProcess } from "../../conversation/records/records.ts";
import type { Outcome } from "../../dialects/dialect.ts";
import type { Json } from "../../journal/record.ts";
import { oneLine } from "../../text/one-line.ts";
import type { CallPolicy } from "../../view/decide-call.ts";

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
  /** Where it was recorded as running. While that process may live, do not answer "did-not-happen". */
  readonly process?: ToolProcess;
  /** Fires when the answer no longer counts: after the time limit, and when the turn or the session is stopped. */
  readonly signal: AbortSignal;
}

/**
 * What a probe found: the outcome; that the call has not taken effect and no longer can, so that it may run; or that
 * nobody can tell, as if it had not been asked. A service that may still be working on the request has not answered
 * yet: "unknown".
 */
export type ProbeAnswer<T = unknown> = Outcome<T> | "did-not-happen" | "unknown";

/** Finds out what happened to a call, for example by asking a service for its idempotency key. Must change nothing. */
export type Probe<T = unknown> = (call: ProbedCall) => ProbeAnswer<T> | Promise<ProbeAnswer<T>>;

export interface ProbeOptions {
  /** How long to wait for a probe, in milliseconds. Default 10,000. */
  readonly probeMs?: number;
}

export interface SettleOptions extends ProbeOptions {
  /** What the program does with open calls: only those that are to be asked about are (`decideCall`). Default: all. */
  readonly calls?: CallPolicy;
}

const PROBE_MS = 10_000;
// A warning is a line for people, and names may come from the model.
export const NAME_CHARS = 80;
const WHAT_CHARS = 300;
export const WHY_CHARS = 300;
/** The longest time that a timer can wait. */
const TIMER_MS_MAX = 2 ** 31 - 1;

/** Throws RECORD_INVALID. */
export function assertProbe(probe: unknown, { probeMs = PROBE_MS }: ProbeOptions): void {
  if (probe !== undefined && typeof probe !== "function") throw invalid("a probe must be a function");
  if (!(probeMs > 0 && probeMs <= TIMER_MS_MAX)) throw invalid("`probeMs` must be a number of milliseconds above 0");
}

/**
 * A probe that throws, hangs or answers something else leaves the call as it was, with a warning. Throws only the
 * reason of `stopped`, once that has fired.
 */
export async function askProbe<A extends object>(
  probe: (asked: A & { readonly signal: AbortSignal }) => ProbeAnswer | Promise<ProbeAnswer>,
  asked: A,
  [tool, what]: readonly [tool: string, what: string],
  { probeMs = PROBE_MS }: ProbeOptions,
  stopped: AbortSignal,
): Promise<ProbeAnswer> {
  stopped.throwIfAborted();
  const limit = new AbortController();
  const timer = setTimeout(() => limit.abort(new Error(`no answer after ${probeMs} ms`)), probeMs);
  const signal = AbortSignal.any([limit.signal, stopped]);
  const { promise: over, reject } = Promise.withResolvers<never>();
  // A probe may close the session and then throw, before anybody waits.
  over.catch(() => {});
  const stop = (): void => reject(signal.reason);
  signal.addEventListener("abort", stop, { once: true });
  try {
    return answerOf(await Promise.race([probe({ ...asked, signal }), over]));
  } catch (error) {
    stopped.throwIfAborted();
    const [of, to, why] = [oneLine(tool, NAME_CHARS), oneLine(what, WHAT_CHARS), oneLine(wordsOf(error), WHY_CHARS)];
    const words = `The probe of ${of} could not tell what happened to ${to}: ${why}`;
    process.emitWarning(words, { type: "HoldfastWarning", code: "HOLDFAST_PROBE" });
    return "unknown";
  } finally {
    clearTimeout(timer);
    signal.removeEventListener("abort", stop);
  }
}

/** Reads the answer once. */
function answerOf(answer: unknown): ProbeAnswer {
  if (answer === "did-not-happen" || answer === "unknown") return answer;
  if (typeof answer === "object" && answer !== null) {
    const { value, error } = answer as { readonly value?: unknown; readonly error?: unknown };
    // Some clients answer { value, error: null } for success: that is no failure, and not clearly an outcome.
    if (error !== undefined && error !== null && value === undefined) return { error };
    if (error === undefined && "value" in answer) return { value };
  }
  throw new Error('the answer must be { value }, { error }, "did-not-happen" or "unknown"');
}
