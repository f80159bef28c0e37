import { isDeepStrictEqual } from "node:util";
import {
  type AgentInputItem,
  type AgentOutputItem,
  type CallModelInputFilter,
  type ModelInputData,
  type ModelRequest,
  type RunResult,
  RunToolApprovalItem,
  type Usage as SdkUsage,
  type Tool,
} from "@openai/agents";
import {
  type Draft,
  isHoldfastError,
  type Json,
  type Outcome,
  type Session,
  type ToolRule,
  type Turn,
  type Usage,
} from "holdfast";
import { runInCall } from "holdfast/internal";
import { nextRequest, type RecordedRequest } from "../background-fetch.ts";
import type { RecordedItem } from "../dialects/openai-agents.ts";
import { handedOver, isOfHandOver } from "../hand-over.ts";
import { missingTools } from "../tool-rules.ts";
import type { UnwrittenOutcomes } from "../unwritten-outcomes.ts";
import type { Decision, WaitingAgents } from "./decisions.ts";
import { type CallItem, isCall, isResult, type ResultItem, sentCopy, withUniqueCallIds } from "./items.ts";
import { type RecordedOutcome, type Replay, replayable } from "./replay.ts";
import type { AnyAgent, AnyContext } from "./surface.ts";

/** What a run works with. */
export interface RunScope {
  readonly session: Session<RecordedItem>;
  readonly unwritten: UnwrittenOutcomes;
  readonly context: AnyContext;
  /** Null for a turn whose answer is recorded: `reopen` is called if the SDK asks the model nevertheless. */
  readonly turn: Turn<RecordedItem> | null;
  readonly reopen?: () => Promise<Turn<RecordedItem>>;
  readonly replay?: Replay;
  /** What a person has decided, by call id. */
  readonly decisions?: Readonly<Record<string, Decision>>;
  /** The states of agents that are tools and wait for an approval inside, by call id. */
  readonly waiting?: WaitingAgents;
  /** The application's own. */
  readonly filter?: CallModelInputFilter | undefined;
}

/** The draft of the answer. */
interface AskedDraft {
  draft: Draft<RecordedItem>;
  /** What the answer can be fetched by (`backgroundFetch`). */
  handle: Json | null;
  isAsked: boolean;
}

/** The answer of a model, and where it is from. */
interface Answer {
  readonly output: AgentOutputItem[];
  readonly usage: SdkUsage;
  readonly model: string | undefined;
}

/** Records one run of the SDK's loop. */
export class AgentRunLog {
  readonly #scope: RunScope;
  readonly #stop = new AbortController();
  readonly #replay: AgentOutputItem[][];
  readonly #outcomes: Map<string, RecordedOutcome>;
  readonly #started = new Set<string>();
  /** Started, and without an outcome. */
  readonly #running = new Set<string>();
  readonly #inCall = new Map<string, <T>(run: () => T) => T>();
  /** Agents that are tools, to be restored from these states. */
  readonly #waiting: Map<string, Json>;
  #turn: Turn<RecordedItem> | null;
  #draft: AskedDraft | null = null;
  #failure: { readonly error: unknown } | null = null;
  #agent: AnyAgent | null = null;
  #tools: readonly Tool<unknown>[] = [];
  #calls: readonly CallItem[] = [];
  #callIds: Set<string> | null = null;
  /** A hand-off has changed what the next agent sees: what the SDK sends is not the session's conversation any more. */
  isFiltered = false;

  constructor(scope: RunScope) {
    this.#scope = scope;
    this.#turn = scope.turn;
    this.#replay = [...(scope.replay?.responses ?? [])];
    this.#outcomes = new Map(scope.replay?.outcomes);
    const isOpen = ([callId]: [string, Json]): boolean => !this.#outcomes.has(callId);
    this.#waiting = new Map(Object.entries(scope.waiting ?? {}).filter(isOpen));
    for (const callId of this.#waiting.keys()) {
      this.#started.add(callId);
      this.#running.add(callId);
    }
  }

  get turn(): Turn<RecordedItem> | null {
    return this.#turn;
  }

  get context(): AnyContext {
    return this.#scope.context;
  }

  /** Why the run failed: the store's error, or a refusal. */
  get failure(): { readonly error: unknown } | null {
    return this.#failure;
  }

  /** Fires when nothing more can be recorded. */
  get stopped(): AbortSignal {
    return this.#stop.signal;
  }

  /** The run goes on after a person has decided. */
  continueIn(turn: Turn<RecordedItem>): void {
    this.#turn = turn;
  }

  /** The tools of the agent that is asked next. */
  offer(tools: readonly Tool<unknown>[]): void {
    this.#tools = tools;
  }

  /**
   * Before each request: records what the SDK has made of open calls (a rejection, a timeout, an unknown tool), and
   * returns what the model sees. The draft is taken here: records written from now on come after the answer (R1).
   */
  async prepare(data: ModelInputData, agent: AnyAgent): Promise<ModelInputData> {
    this.#agent = agent;
    if (this.#replay.length > 0) return data;
    const { unwritten, filter, context } = this.#scope;
    const turn = await this.#live();
    await this.#recording(unwritten.record());
    await this.recordResults(data.input);
    const { messages, draft, accepted } = this.#beginning(() => nextRequest(turn));
    this.#draft = { draft, handle: accepted?.handle ?? null, isAsked: false };
    const modelData = this.isFiltered ? data : { ...data, input: messages.map(sentCopy) };
    return filter ? filter({ modelData, agent, context: context.context }) : modelData;
  }

  /** The request, if the last recorded response turned out to need no processing: the SDK has not prepared one. */
  async prepareLate(request: ModelRequest): Promise<ModelRequest> {
    const { input, systemInstructions } = request;
    if (this.#draft || typeof input === "string") return request;
    const data = await this.prepare(
      { input, ...(systemInstructions ? { instructions: systemInstructions } : {}) },
      this.#agent!,
    );
    return { ...request, input: data.input, ...(data.instructions ? { systemInstructions: data.instructions } : {}) };
  }

  /** The next recorded response. Null if there is none: ask the model. */
  async replayed(request: ModelRequest): Promise<AgentOutputItem[] | null> {
    for (let response = this.#replay.shift(); response; response = this.#replay.shift()) {
      const { output, gone } = replayable(response, this.#outcomes, request);
      // The turn waits for them, so nothing else of the response runs either.
      if (gone.length > 0) await this.#recording(Promise.reject(missingTools(gone)));
      if (output === null) continue;
      this.#calls = output.filter(isCall);
      for (const call of this.#calls) this.#decide(call);
      return output;
    }
    return null;
  }

  /** A call that ran, or was decided about, is not put before a person again. */
  #decide(call: CallItem): void {
    const { decisions = {}, context } = this.#scope;
    const decision = Object.hasOwn(decisions, call.callId) ? decisions[call.callId] : undefined;
    const isDone = this.#outcomes.has(call.callId);
    const tool = this.#tools.find((one) => matches(one, call));
    if (!tool || (!isDone && !decision)) return;
    const item = new RunToolApprovalItem(call as never, this.#agent!, tool.name);
    if (isDone || decision!.approved) context.approveTool(item);
    else context.rejectTool(item, decision!.message === undefined ? {} : { message: decision!.message });
  }

  /** The draft of the answer. A request that is sent again keeps its place: the model has seen nothing else. */
  async ask(): Promise<Draft<RecordedItem>> {
    const turn = await this.#live();
    const known = this.#draft;
    if (known && !known.isAsked) {
      known.isAsked = true;
      return known.draft;
    }
    const draft = (known && restarted(known.draft)) ?? this.#beginning(() => turn.request()).draft;
    const asked: AskedDraft = { draft, handle: null, isAsked: true };
    this.#draft = asked;
    // The provider is answering it already.
    if (known?.handle != null) await this.#accepted(asked, known.handle);
    return draft;
  }

  /** The request that was asked last. */
  get asked(): RecordedRequest & { readonly draft: Draft<RecordedItem> } {
    const asked = this.#draft!;
    return {
      get draft() {
        return asked.draft;
      },
      get handle() {
        return asked.handle;
      },
      accepted: (handle) => this.#accepted(asked, handle),
      forget: () => {
        asked.draft = asked.draft.restart();
        asked.handle = null;
      },
    };
  }

  async #accepted(asked: AskedDraft, handle: Json): Promise<void> {
    await this.#recording(asked.draft.accepted(handle));
    asked.handle = handle;
  }

  /** Records the whole response, with what waits for approval in it. Returns what the SDK may process. */
  async answered(draft: Draft<RecordedItem>, { output: given, usage, model }: Answer): Promise<AgentOutputItem[]> {
    const output = withUniqueCallIds(given, (callId) => this.#isTaken(callId));
    this.#calls = output.filter(isCall);
    const items: RecordedItem[] = [];
    for (const item of output) {
      const recorded = JSON.parse(JSON.stringify(item)) as RecordedItem;
      items.push(isCall(item) && (await this.#needsApproval(item)) ? { ...recorded, needsApproval: true } : recorded);
    }
    const spent = usageOf(usage);
    if (items.length === 0) await this.#recording(draft.discard("the response was empty"));
    else {
      const metadata = { agent: this.#agent?.name ?? "" };
      const options = { metadata, ...(spent ? { usage: spent } : {}), ...(model === undefined ? {} : { model }) };
      await this.#recording(draft.commit(items, options));
    }
    this.#draft = null;
    await this.#startUnseen();
    return output;
  }

  /** Nothing tells when the actions on a computer begin, so they count as begun with the response. */
  async #startUnseen(): Promise<void> {
    const open = new Set((this.#turn?.open ?? []).flatMap(({ id, state }) => (state === "never-started" ? [id] : [])));
    for (const { type, callId } of this.#calls)
      if (type === "computer_call" && open.has(callId)) await this.start(callId, {});
  }

  #isTaken(callId: string): boolean {
    this.#callIds ??= new Set(
      this.#scope.session.entries.flatMap(({ message }) => (isCall(message) ? [message.callId] : [])),
    );
    const isTaken = this.#callIds.has(callId);
    this.#callIds.add(callId);
    return isTaken;
  }

  /** The SDK asks the same question later, when other tools of the response may be running. */
  async #needsApproval(call: CallItem): Promise<boolean> {
    const { context } = this.#scope;
    const tool = this.#tools.find((one) => matches(one, call));
    if (!tool || tool.type === "hosted_tool") return false;
    if (context.isToolApproved({ toolName: tool.name, callId: call.callId }) !== undefined) return false;
    try {
      const needs = tool.needsApproval as (context: AnyContext, input: unknown, callId: string) => Promise<boolean>;
      return await needs.call(tool, context, inputOf(call), call.callId);
    } catch {
      // The SDK will fail on it, too, and report it.
      return false;
    }
  }

  /** The recorded outcome of a call that must not run again. */
  outcomeOf(callId: string): RecordedOutcome | null {
    return this.#outcomes.get(callId) ?? null;
  }

  /** The open call that a tool is run for, where the SDK does not say. */
  callFor(fits: (call: CallItem) => boolean): CallItem | null {
    return this.#calls.find((call) => fits(call) && !this.#started.has(call.callId)) ?? null;
  }

  /** The calls of the last response. */
  get callIds(): string[] {
    return this.#calls.map(({ callId }) => callId);
  }

  /** The state of an agent that is a tool and waited when its process died. Null the second time: it is restored. */
  takeWaiting(callId: string): string | null {
    const state = this.#waiting.get(callId);
    this.#waiting.delete(callId);
    return state === undefined ? null : JSON.stringify(state);
  }

  isRunning(callId: string): boolean {
    return this.#running.has(callId);
  }

  /** The calls that have started and have no outcome. */
  get running(): string[] {
    return [...this.#running];
  }

  /** Durable when it resolves: run the tool only then, in the call that it returns. */
  async start(callId: string, rule: ToolRule): Promise<<T>(run: () => T) => T> {
    // An agent that runs as a tool goes on after an approval.
    if (this.#started.has(callId)) return this.#inCall.get(callId) ?? ((run) => run());
    this.#started.add(callId);
    try {
      const turn = await this.#live();
      const call = await this.#recording(turn.toolStarted(callId, rule));
      this.#running.add(callId);
      const inCall = <T>(run: () => T): T => runInCall(call, run);
      this.#inCall.set(callId, inCall);
      return inCall;
    } catch (error) {
      this.#started.delete(callId);
      if (isOfHandOver(error)) await handedOver(this.#turn!.signal);
      throw error;
    }
  }

  async end(callId: string, outcome: Outcome, shown?: ResultItem): Promise<void> {
    // The SDK has given up on it (a timeout), and the model was told so.
    if (!this.#running.delete(callId)) return;
    const turn = this.#turn!;
    const item = shown && (JSON.parse(JSON.stringify(shown)) as RecordedItem);
    const record = (): Promise<void> => turn.toolEnded(callId, outcome, item);
    try {
      await this.#recording(record());
    } catch (error) {
      if (isHoldfastError(error, "STORE_FULL")) this.#scope.unwritten.keep(record);
      throw error;
    }
  }

  /** Records the outcomes among these items that are still missing, as they are. */
  async recordResults(items: readonly AgentInputItem[]): Promise<void> {
    const turn = this.#turn;
    const open = new Set([...(turn?.open ?? []).map(({ id }) => id), ...this.#running]);
    if (!turn || open.size === 0) return;
    for (const item of items) {
      if (!isResult(item) || !open.delete(item.callId)) continue;
      this.#running.delete(item.callId);
      const copy = JSON.parse(JSON.stringify(item)) as RecordedItem;
      const value = item.type === "function_call_result" ? item.output : (copy as { output?: unknown }).output;
      await this.#recording(turn.toolEnded(item.callId, { value }, copy));
    }
  }

  /** Records the answer that one of the application's error handlers gave in place of the model's. */
  async recordHandled({ state, newItems }: Pick<RunResult<unknown, AnyAgent>, "state" | "newItems">): Promise<void> {
    const last = newItems.at(-1)?.rawItem as AgentInputItem | undefined;
    if (state._finalOutputSource !== "error_handler" || last?.type !== "message") return;
    const metadata = { agent: this.#agent?.name ?? "" };
    await this.#recording((await this.#live()).append(JSON.parse(JSON.stringify(last)) as RecordedItem, { metadata }));
  }

  /** A guardrail ends the run before the call starts: `resume` must not come to it again. */
  async refuse(callId: string, error: string): Promise<void> {
    await this.#recording((await this.#live()).toolEnded(callId, { error }));
  }

  /** What is too large is not recorded, and what it is about is in doubt after a crash. */
  async recordUnlessTooLarge(recorded: Promise<void>): Promise<void> {
    const isRecorded = recorded.catch((error: unknown) => {
      if (!isHoldfastError(error, "RECORD_TOO_LARGE")) throw error;
    });
    await this.#recording(isRecorded);
  }

  /** Ends the run with this error. What runs is stopped, except at a hand-over, which waits for it. */
  fail(error: unknown): void {
    this.#failure ??= { error };
    if (!isOfHandOver(error)) this.#stop.abort(error);
  }

  async #live(): Promise<Turn<RecordedItem>> {
    if (this.#failure) throw this.#failure.error;
    if (!this.#turn && this.#scope.reopen) this.#turn = await this.#scope.reopen();
    this.#turn!.signal.throwIfAborted();
    return this.#turn!;
  }

  #beginning<T>(begin: () => T): T {
    try {
      return begin();
    } catch (error) {
      if (isOfHandOver(error)) this.fail(error);
      throw error;
    }
  }

  /** The model must not take a failed record for an error of a tool: it ends the run (P8). */
  async #recording<T>(recorded: Promise<T>): Promise<T> {
    try {
      return await recorded;
    } catch (error) {
      this.fail(error);
      throw error;
    }
  }
}

/** Null if it is over. */
function restarted(draft: Draft<RecordedItem>): Draft<RecordedItem> | null {
  try {
    return draft.restart();
  } catch (error) {
    if (!isHoldfastError(error, "DRAFT_DISCARDED")) throw error;
    return null;
  }
}

function matches(tool: Tool<unknown>, call: CallItem): boolean {
  if (call.type === "function_call") return tool.type === "function" && tool.name === call.name;
  return `${tool.type}_call` === call.type;
}

function inputOf(call: CallItem): unknown {
  if (call.type === "function_call") return JSON.parse(call.arguments);
  if (call.type === "apply_patch_call") return call.operation;
  return call.action;
}

/** Whether a tool was called with this. The SDK copies what it passes on. */
export function isSame(a: unknown, b: unknown): boolean {
  return isDeepStrictEqual(a, b);
}

function usageOf(usage: SdkUsage | undefined): Usage | null {
  if (!usage) return null;
  const { inputTokens = 0, outputTokens = 0 } = usage;
  const detail = (list: unknown, name: string): number =>
    (Array.isArray(list) ? list : [list]).reduce(
      (sum: number, one) => sum + Number((one as Record<string, unknown> | undefined)?.[name] ?? 0),
      0,
    );
  const cacheReadTokens = detail(usage.inputTokensDetails, "cached_tokens");
  const reasoningTokens = detail(usage.outputTokensDetails, "reasoning_tokens");
  if (inputTokens + outputTokens === 0) return null;
  return {
    inputTokens,
    outputTokens,
    ...(cacheReadTokens > 0 ? { cacheReadTokens } : {}),
    ...(reasoningTokens > 0 ? { reasoningTokens } : {}),
  };
}
