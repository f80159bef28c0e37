import { once } from "node:events";
import { setTimeout as passed } from "node:timers/promises";
import type { Durable, RunOutcome } from "@holdfast/adapters/ai-sdk";
import { type ModelMessage, streamText, type TextStreamPart, type ToolSet } from "ai";
import { isHoldfastError, type Session } from "holdfast";
import { defined } from "../defined.ts";
import { CommandError, EXIT } from "../exit.ts";
import { isWindowError } from "../models/explain.ts";
import type { ResolvedModel } from "../models/resolve.ts";
import { compact, estimateTokens, isNearlyFull } from "./compaction.ts";
import type { ParkedCalls } from "./parked-calls.ts";
import { RETRIES_MAX, withRetryNotices } from "./retry-notices.ts";

/** A turn is stopped after this many steps: it is probably going in circles. */
const STEPS_MAX = 200;

/** Everything the loop needs to run a turn, for a chat's agent or a sub-agent. */
export interface TurnRun {
  readonly session: Session<ModelMessage>;
  readonly durable: Durable;
  readonly model: ResolvedModel;
  /** Fires when the turn is stopped, or the process is told to end. */
  readonly signal: AbortSignal;
  /** Fires when the next process is to continue the turn: it begins nothing more here. */
  readonly handOver: AbortSignal;
  readonly tools: ToolSet;
  /** Calls that nobody waits for when the turn is stopped. */
  readonly parked: ParkedCalls;
  readonly instructions: string;
  /** Decides on a call before it starts (R7). */
  readonly approve: (call: { readonly toolName: string; readonly input: unknown }) => Verdict;
  /** Receives each part of the SDK's stream. */
  readonly show: (part: TextStreamPart<ToolSet>) => void;
  /** A request failed and is about to be retried. */
  readonly retrying: (reason: string) => void;
  /** The window is nearly full: requesting a summary, which takes a while. */
  readonly compacting: () => void;
  readonly compacted: (change: { readonly before: number; readonly after: number }) => void;
  /** The model reached its output limit in mid-answer. */
  readonly cutOff: () => void;
  /** Tokens used by the last request and its answer. */
  readonly used: (tokens: number) => void;
}

export type Verdict =
  | { readonly type: "not-applicable" }
  | { readonly type: "denied"; readonly reason: string }
  | { readonly type: "user-approval" };

export type TurnResult = RunOutcome | { readonly kind: "limit"; readonly steps: number };

/**
 * Runs a turn until the model is done, a person stops it, it fails, it waits for a person, or it is handed over to the
 * next process: then what is under way comes to its end, and nothing more begins. Keeps no state that a
 * kill could destroy: the answer is recorded before any tool starts, each start before its tool runs, each result as
 * soon as it arrives, and each request is built from what is recorded.
 */
export async function runTurn(run: TurnRun): Promise<TurnResult> {
  const { session, durable, model, tools, signal } = run;
  if (signal.aborted) return { kind: "aborted" };
  const left = new UnderWay(run.parked);
  try {
    await Promise.race([durable.runOpen(left.watched(tools)), left.parked(signal)]);
  } catch (error) {
    if (!isHoldfastError(error, "TURN_HANDED_OVER")) throw error;
    await left.over();
    return { kind: "handed-over" };
  }
  let usedTokens = estimateTokens([run.instructions, ...session.messages]);
  let isCompacted = false;
  /** No request has been answered since the compaction: if this one is too long, compacting again would not help. */
  let isFresh = false;
  for (let step = 0; step < STEPS_MAX; step++) {
    if (signal.aborted) return { kind: "aborted" };
    if (run.handOver.aborted) return { kind: "handed-over" };
    // Approved calls must run first: a compaction would drop their approvals.
    const isSettled = (session.turn?.open.length ?? 0) === 0;
    if (isNearlyFull(usedTokens, model.windowTokens) && !isCompacted && isSettled) {
      const failed = await compactBeforeStep(run);
      if (failed) return failed;
      usedTokens = estimateTokens([run.instructions, ...session.messages]);
      isCompacted = true;
      isFresh = true;
    }
    const underWay = new UnderWay(run.parked);
    const settings = durable.wrap({
      model: withRetryNotices(model.model, run.retrying),
      tools,
      instructions: run.instructions,
      messages: durable.messages(),
      toolApproval: ({ toolCall }: { toolCall: Parameters<TurnRun["approve"]>[0] }) => run.approve(toolCall),
      maxRetries: RETRIES_MAX,
      abortSignal: signal,
      ...defined({ providerOptions: model.providerOptions }),
      // `outcome` reports failures; without this handler the SDK prints them.
      onError: () => {},
    });
    const response = streamText({ ...settings, tools: underWay.watched(settings.tools) });
    const [outcome] = await Promise.all([durable.outcome(response), showAll(response.stream, run.show)]);
    if (outcome.kind === "failed" && isWindowError(outcome.error) && !isFresh) {
      isCompacted = false;
      usedTokens = Number.POSITIVE_INFINITY;
      continue;
    }
    if (outcome.kind === "aborted" || outcome.kind === "handed-over") await underWay.over();
    if (outcome.kind !== "completed") return outcome;
    isFresh = false;
    const { inputTokens = 0, outputTokens = 0 } = await response.usage;
    usedTokens = inputTokens + outputTokens || estimateTokens([run.instructions, ...session.messages]);
    run.used(usedTokens);
    const reason = await response.finishReason;
    if (reason === "length") {
      run.cutOff();
      await closeCut(session);
    }
    if (reason === "content-filter") return { kind: "failed", error: refusedToAnswer(model.name) };
    // Checks the calls, not the last message: an empty answer leaves no message.
    const { toolCalls } = await response.finalStep;
    if (!toolCalls.some((call) => !call.providerExecuted)) return outcome;
    isCompacted &&= isNearlyFull(usedTokens, model.windowTokens);
    // That request did not include the tool results; the next one will.
    usedTokens += estimateTokens(
      session.messages.slice(session.messages.findLastIndex(({ role }) => role !== "tool") + 1),
    );
  }
  return { kind: "limit", steps: STEPS_MAX };
}

/** How long a stopped turn waits for its tools: longer than it takes to kill a command that ignores SIGTERM. */
const STOPPING_MS = 10_000;

/**
 * The running tools of a request. The SDK does not wait for them when it is stopped, but what they did must be recorded
 * before the session is closed or the next request is made.
 */
class UnderWay {
  readonly #running = new Map<Promise<unknown>, string>();
  readonly #parked: ParkedCalls;

  constructor(parked: ParkedCalls) {
    this.#parked = parked;
  }

  /** Resolves when the turn was stopped, a call is parked and the others have ended. */
  async parked(stopped: AbortSignal): Promise<void> {
    await this.#parked.next;
    if (!stopped.aborted) await once(stopped, "abort");
    await this.over();
  }

  /** Wraps the recording tools, so that a result is on disk when its promise settles. */
  watched(tools: ToolSet): ToolSet {
    return Object.fromEntries(Object.entries(tools).map(([name, tool]) => [name, this.#watched(tool)]));
  }

  /** Does not wait forever for a tool that ignores the signal: its outcome is recorded when it arrives (C14). */
  async over(): Promise<void> {
    const late = new AbortController();
    const patience = passed(STOPPING_MS, undefined, { signal: late.signal }).catch(() => {});
    await Promise.race([this.#ended(), patience]);
    late.abort();
  }

  async #ended(): Promise<void> {
    for (;;) {
      const rest = [...this.#running].flatMap(([one, call]) => (this.#parked.has(call) ? [] : [one]));
      if (rest.length === 0) return;
      await Promise.race([Promise.allSettled(rest), this.#parked.next]);
    }
  }

  #watched(tool: ToolSet[string]): ToolSet[string] {
    const execute = tool.execute as ((...given: unknown[]) => unknown) | undefined;
    if (!execute) return tool;
    const watched = (...given: unknown[]): unknown => {
      const made = execute(...given);
      const answer = Promise.resolve(made);
      this.#running.set(answer, (given[1] as { readonly toolCallId: string }).toolCallId);
      const done = (): boolean => this.#running.delete(answer);
      answer.then(done, done);
      return made;
    };
    return { ...tool, execute: watched } as ToolSet[string];
  }
}

/**
 * The SDK does not run the calls of an answer cut off at the output limit: their input may be incomplete. Tells the
 * model, so that it can repeat them.
 */
async function closeCut({ turn }: Session<ModelMessage>): Promise<void> {
  const error = "Not run: the answer reached the output limit before it was complete. Repeat the call, in fewer words.";
  for (const { id, state } of turn?.open ?? []) if (state !== "awaiting") await turn!.toolEnded(id, { error });
}

function refusedToAnswer(model: string): CommandError {
  const message = `${model} refused to answer. Everything so far is recorded. Change the prompt or use another model.`;
  return new CommandError(EXIT.model, "MODEL_REFUSED", message);
}

async function compactBeforeStep(run: TurnRun): Promise<TurnResult | null> {
  try {
    run.compacting();
    run.compacted(await compact(run.session, run.model, AbortSignal.any([run.signal, run.handOver])));
    return null;
  } catch (error) {
    if (run.handOver.aborted) return { kind: "handed-over" };
    return run.signal.aborted ? { kind: "aborted" } : { kind: "failed", error };
  }
}

/** `outcome` also reports a broken stream, so this just ends. */
async function showAll(stream: AsyncIterable<TextStreamPart<ToolSet>>, show: TurnRun["show"]): Promise<void> {
  try {
    for await (const part of stream) show(part);
  } catch {
    return;
  }
}
