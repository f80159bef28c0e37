import type { ModelMessage } from "ai";
import { isHoldfastError, type OpenCall, type Turn } from "holdfast";
import { isOfHandOver } from "../hand-over.ts";
import { mutableCopy } from "./mutable-copy.ts";
import type { RunState } from "./run.ts";
import type { RunRegistry } from "./run-registry.ts";
import type { Run, RunOutcome, WaitingCall } from "./surface.ts";

interface SdkStream {
  consumeStream(options?: { onError?: (error: unknown) => void }): PromiseLike<void>;
  readonly stream?: AsyncIterable<{ readonly type: string; readonly error?: unknown; readonly reason?: unknown }>;
  readonly finalStep?: PromiseLike<unknown>;
}

interface EndOfRun {
  readonly step?: unknown;
  readonly thrown?: { readonly error: unknown } | null;
}

/** How a run ended. Rejects with the store's error, or with what Holdfast refused. */
export async function outcomeOf(run: Run, turn: Turn<ModelMessage> | null, runs: RunRegistry): Promise<RunOutcome> {
  const stateOf = runs.claim(run, turn);
  const { step, thrown } = await waitForEnd(run, stateOf, runs);
  const state = stateOf();
  const stopped = stoppedBy(state, thrown?.error);
  const errors = [state?.failure?.error, stopped?.reason, state?.asked?.error, thrown?.error];
  if (errors.some(isOfHandOver)) return { kind: "handed-over" };
  if (state?.failure) throw state.failure.error;
  if (stopped) {
    if (isHoldfastError(stopped.reason)) throw stopped.reason;
    return isTimeout(stopped.reason) ? { kind: "failed", error: stopped.reason } : { kind: "aborted" };
  }
  const asked = state?.asked;
  if (asked && !asked.isAnswered) {
    const error = asked.error ?? thrown?.error ?? new Error("The model's answer ended before it was complete.");
    return { kind: "failed", error };
  }
  if (thrown) return { kind: "failed", error: thrown.error };
  const approvals = requestsIn(step);
  const calls = state && isWhole(step) ? state.unanswered.map(waitingCall) : [];
  return approvals.length + calls.length > 0 ? { kind: "waiting", approvals, calls } : { kind: "completed" };
}

/** Ends the turn the way the run ended. The turn may have been handed over since, which is the result then. */
export async function finishAs(outcome: RunOutcome, turn: Turn<ModelMessage>): Promise<RunOutcome> {
  try {
    await endAs(outcome, turn);
    return outcome;
  } catch (error) {
    if (isOfHandOver(error)) return { kind: "handed-over" };
    throw error;
  }
}

async function endAs(outcome: RunOutcome, turn: Turn<ModelMessage>): Promise<void> {
  switch (outcome.kind) {
    case "handed-over":
      return;
    case "completed":
      return turn.end();
    case "aborted":
      return turn.abort({ by: "the application" });
    case "failed":
      return turn.fail(outcome.error);
    case "waiting": {
      const { approvals } = outcome;
      // Calls that the application runs itself are not listed: they need no approval, and it records their starts.
      const calls = approvals.map(({ toolCallId }) => toolCallId);
      return turn.suspend(calls.length > 0 ? { reason: "approval", calls } : { reason: "result" });
    }
  }
}

/** Does not wait for a failed run: a tool that never ends would block the SDK and hide the failure. */
async function waitForEnd(run: Run, stateOf: () => RunState | null, runs: RunRegistry): Promise<EndOfRun> {
  const { promise: failed, resolve } = Promise.withResolvers<EndOfRun>();
  const unwatch = runs.watch(() => {
    if (stateOf()?.failure) resolve({});
  });
  try {
    return await Promise.race([readToEnd(run), failed]);
  } finally {
    unwatch();
  }
}

/**
 * Reads the stream here, because a reader's cancel is not reported to anyone. Most errors are parts of the stream and
 * are never thrown.
 */
async function readToEnd(run: Run): Promise<EndOfRun> {
  let thrown: EndOfRun["thrown"] = null;
  try {
    if (!isStreamed(run)) {
      const result = await run;
      return isStreamed(result)
        ? await readToEnd(result)
        : { step: (result as { finalStep?: unknown } | null)?.finalStep };
    }
    if (run.stream) for await (const { type, error } of run.stream) if (type === "error") thrown ??= { error };
    await run.consumeStream();
    return { step: await run.finalStep, thrown };
  } catch (error) {
    return { thrown: thrown ?? { error } };
  }
}

function isStreamed(run: unknown): run is SdkStream {
  return typeof (run as Partial<SdkStream> | null)?.consumeStream === "function";
}

function stoppedBy(state: RunState | null, error: unknown): { readonly reason: unknown } | null {
  const signals = [state?.turn?.signal, state?.asked?.params.abortSignal];
  const fired = signals.find((signal) => signal?.aborted === true);
  if (fired) return { reason: fired.reason };
  const isAbort = error instanceof Error && (error.name === "AbortError" || isTimeout(error));
  return isAbort && !state?.asked?.isAnswered ? { reason: error } : null;
}

function isTimeout(reason: unknown): boolean {
  return reason instanceof Error && reason.name === "TimeoutError";
}

/** Nobody runs the calls of an answer that was cut off. */
function isWhole(step: unknown): boolean {
  const { finishReason } = (step ?? {}) as { readonly finishReason?: unknown };
  return finishReason === "stop" || finishReason === "tool-calls";
}

function waitingCall({ id, name, input }: OpenCall): WaitingCall {
  return { toolCallId: id, toolName: name, input: mutableCopy(input) };
}

function requestsIn(step: unknown): Extract<RunOutcome, { kind: "waiting" }>["approvals"] {
  const content = (step as { readonly content?: readonly Request[] } | null | undefined)?.content ?? [];
  return content.flatMap(({ type, approvalId, toolCall, isAutomatic }) => {
    if (type !== "tool-approval-request" || isAutomatic === true) return [];
    const { toolCallId, toolName, input } = toolCall;
    return [{ approvalId, toolCallId, toolName, input }];
  });
}

interface Request {
  readonly type: string;
  readonly approvalId: string;
  readonly isAutomatic?: boolean;
  readonly toolCall: { readonly toolCallId: string; readonly toolName: string; readonly input: unknown };
}
