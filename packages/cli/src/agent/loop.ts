import { setTimeout as passed } from "node:timers/promises";
import type { Durable, RunOutcome } from "@holdfast/adapters/ai-sdk";
import { type ModelMessage, streamText, type TextStreamPart, type ToolSet } from "ai";
import type { Session } from "holdfast";
import { defined } from "../defined.ts";
import { CommandError, EXIT } from "../exit.ts";
import { isWindowError } from "../models/explain.ts";
import type { ResolvedModel } from "../models/resolve.ts";
import { compact, estimateTokens, isNearlyFull } from "./compaction.ts";
import { RETRIES_MAX, withRetryNotices } from "./retry-notices.ts";

/** A turn that takes more steps than this is stopped: it is most probably going in circles. */
const STEPS_MAX = 200;

/** What the loop needs to work on a turn; the same for the agent of a chat and for a sub-agent. */
export interface TurnRun {
  readonly session: Session<ModelMessage>;
  readonly durable: Durable;
  readonly model: ResolvedModel;
  /** Fires when the turn is stopped, and when the process was told to end. */
  readonly signal: AbortSignal;
  readonly tools: ToolSet;
  readonly instructions: string;
  /** Judges a call before it may start (R7). */
  readonly approve: (call: { readonly toolName: string; readonly input: unknown }) => Verdict;
  /** Each part of the stream, as the SDK gives it out. */
  readonly show: (part: TextStreamPart<ToolSet>) => void;
  /** A request failed, and is about to be made again. */
  readonly retrying: (reason: string) => void;
  /** The window is nearly full: a summary is asked for, which takes a while. */
  readonly compacting: () => void;
  readonly compacted: (change: { readonly before: number; readonly after: number }) => void;
  /** The answer is not all that the model had to say. */
  readonly cutOff: () => void;
  /** What the last request and its answer cost. */
  readonly used: (tokens: number) => void;
}

export type Verdict =
  | { readonly type: "not-applicable" }
  | { readonly type: "denied"; readonly reason: string }
  | { readonly type: "user-approval" };

export type TurnResult = RunOutcome | { readonly kind: "limit"; readonly steps: number };

/**
 * Works on a turn until the model has nothing left to do, a person stops it, it fails, or it waits for a person. It
 * holds nothing that a kill could take: what the model said is recorded before a tool starts, each start before its
 * tool runs, each
 * result when it is there; and each request is made from what is recorded.
 */
export async function runTurn(run: TurnRun): Promise<TurnResult> {
  const { session, durable, model, tools, signal } = run;
  if (signal.aborted) return { kind: "aborted" };
  await durable.runOpen(tools);
  let usedTokens = estimateTokens([run.instructions, ...session.messages]);
  let isCompacted = false;
  /** No request has been answered since: if this one is too long, to sum up once more would not help. */
  let isFresh = false;
  for (let step = 0; step < STEPS_MAX; step++) {
    if (signal.aborted) return { kind: "aborted" };
    // Calls that were approved are still to be run: what says so must not be summed up before.
    const isSettled = (session.turn?.open.length ?? 0) === 0;
    if (isNearlyFull(usedTokens, model.windowTokens) && !isCompacted && isSettled) {
      const failed = await compactBeforeStep(run);
      if (failed) return failed;
      usedTokens = estimateTokens([run.instructions, ...session.messages]);
      isCompacted = true;
      isFresh = true;
    }
    const underWay = new UnderWay();
    const settings = durable.wrap({
      model: withRetryNotices(model.model, run.retrying),
      tools,
      instructions: run.instructions,
      messages: durable.messages(),
      toolApproval: ({ toolCall }: { toolCall: Parameters<TurnRun["approve"]>[0] }) => run.approve(toolCall),
      maxRetries: RETRIES_MAX,
      abortSignal: signal,
      ...defined({ providerOptions: model.providerOptions }),
      // Failures are told by `outcome`; without this the SDK prints them.
      onError: () => {},
    });
    const response = streamText({ ...settings, tools: underWay.watched(settings.tools) });
    const [outcome] = await Promise.all([durable.outcome(response), showAll(response.stream, run.show)]);
    if (outcome.kind === "failed" && isWindowError(outcome.error) && !isFresh) {
      isCompacted = false;
      usedTokens = Number.POSITIVE_INFINITY;
      continue;
    }
    if (outcome.kind === "aborted") await underWay.over();
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
    // By what it called, not by what stands last: an answer with nothing in it leaves no message.
    const { toolCalls } = await response.finalStep;
    if (!toolCalls.some((call) => !call.providerExecuted)) return outcome;
    isCompacted &&= isNearlyFull(usedTokens, model.windowTokens);
    // What the tools answered was not in that request, and will be in the next.
    usedTokens += estimateTokens(
      session.messages.slice(session.messages.findLastIndex(({ role }) => role !== "tool") + 1),
    );
  }
  return { kind: "limit", steps: STEPS_MAX };
}

/** How long a turn that was stopped waits for its tools: longer than it takes to end a command that does not listen. */
const STOPPING_MS = 10_000;

/**
 * The tools of a request that run. The SDK does not wait for them when it is stopped; but what they had done by then is
 * to be recorded, before the session is closed or the next request is made.
 */
class UnderWay {
  readonly #running = new Set<Promise<unknown>>();

  /** To be put around the tools that record: what they answer is on disk. */
  watched(tools: ToolSet): ToolSet {
    return Object.fromEntries(Object.entries(tools).map(([name, tool]) => [name, this.#watched(tool)]));
  }

  /** One that does not listen is not waited for without end: its outcome is recorded when it comes (C14). */
  async over(): Promise<void> {
    const late = new AbortController();
    const patience = passed(STOPPING_MS, undefined, { signal: late.signal }).catch(() => {});
    await Promise.race([Promise.allSettled(this.#running), patience]);
    late.abort();
  }

  #watched(tool: ToolSet[string]): ToolSet[string] {
    const execute = tool.execute as ((...given: unknown[]) => unknown) | undefined;
    if (!execute) return tool;
    const watched = (...given: unknown[]): unknown => {
      const made = execute(...given);
      const answer = Promise.resolve(made);
      this.#running.add(answer);
      const done = (): boolean => this.#running.delete(answer);
      answer.then(done, done);
      return made;
    };
    return { ...tool, execute: watched } as ToolSet[string];
  }
}

/**
 * The SDK runs no call of an answer that was cut off at the model's limit: its input may not be all that was meant. The
 * model is told so, and can make it again.
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
    run.compacted(await compact(run.session, run.model, run.signal));
    return null;
  } catch (error) {
    return run.signal.aborted ? { kind: "aborted" } : { kind: "failed", error };
  }
}

/** A stream that breaks tells so through `outcome` as well: here it only ends. */
async function showAll(stream: AsyncIterable<TextStreamPart<ToolSet>>, show: TurnRun["show"]): Promise<void> {
  try {
    for await (const part of stream) show(part);
  } catch {
    return;
  }
}
