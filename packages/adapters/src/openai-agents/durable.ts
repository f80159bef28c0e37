import { AsyncLocalStorage } from "node:async_hooks";
import {
  type AgentInputItem,
  type CallModelInputFilter,
  type Model,
  RunContext,
  Runner,
  type RunResult,
  RunState,
  StreamedRunResult,
} from "@openai/agents";
import { type CallPolicy, isHoldfastError, type Session, type Turn } from "holdfast";
import { openaiAgents, type RecordedItem } from "../dialects/openai-agents.ts";
import { isOfHandOver, unlessHandedOver } from "../hand-over.ts";
import { LACKS_TOOL, rulesFor, settle, settledCalls, type ToolRules } from "../tool-rules.ts";
import { UnwrittenOutcomes } from "../unwritten-outcomes.ts";
import { agentNamed, RecordedAgents } from "./agents.ts";
import { approvalsIn, decisionsOf, NOTE, waitingIn } from "./decisions.ts";
import { sentCopy } from "./items.ts";
import { recordModel, recordProvider } from "./model.ts";
import { endAs, outcomeOf, outcomeOfError } from "./outcome.ts";
import { replayOf } from "./replay.ts";
import { AgentRunLog, type RunScope } from "./run-log.ts";
import type {
  AnyAgent,
  AnyState,
  Durable,
  DurableOptions,
  ResumeRunOptions,
  RunOptions,
  RunOutcome,
} from "./surface.ts";

/** By session, because an application may call `durable` for each turn. */
const UNWRITTEN = new WeakMap<Session<AgentInputItem>, UnwrittenOutcomes>();

/** The SDK's default. */
const MAX_TURNS = 10;

type Settings = RunOptions & { readonly signal: AbortSignal };
type AnyResult = RunResult<unknown, AnyAgent> | StreamedRunResult<unknown, AnyAgent>;

/**
 * Makes the runs of agents durable in this session. The session's dialect is `openaiAgents`. Open its store with
 * `recordsToolStarts: true`, since every start is recorded.
 */
export function durable(session: Session<AgentInputItem>, options: DurableOptions = {}): Durable {
  const { dialect } = session.attributes;
  if (dialect !== "openai-agents") {
    throw new TypeError(
      `The session has the dialect "${dialect}", but items of the Agents SDK need "openai-agents". Create the session with the dialect openaiAgents.`,
    );
  }
  return new DurableRuns(session as Session<RecordedItem>, options) as unknown as Durable;
}

class DurableRuns {
  readonly runner: Runner;
  readonly #session: Session<RecordedItem>;
  readonly #rules: ToolRules;
  readonly #agents: RecordedAgents;
  readonly #unwritten: UnwrittenOutcomes;
  readonly #runLogs = new WeakMap<AnyState, AgentRunLog>();
  readonly #ended = new WeakMap<AnyResult, Promise<RunOutcome>>();
  #runLog: AgentRunLog | null = null;
  /** A turn whose end could not be written, for lack of space. */
  #unended: { readonly turn: Turn<RecordedItem>; readonly error: unknown } | null = null;

  constructor(session: Session<RecordedItem>, options: DurableOptions) {
    this.#session = session;
    this.#rules = options;
    this.#unwritten = UNWRITTEN.get(session) ?? new UnwrittenOutcomes();
    UNWRITTEN.set(session, this.#unwritten);
    const inTool = new AsyncLocalStorage<true>();
    const recording = (): AgentRunLog | null => (inTool.getStore() ? null : this.#runLog);
    this.#agents = new RecordedAgents({ options, inTool, runLog: () => this.#runLog });
    const { config } = new Runner(options.runner);
    const { model, handoffInputFilter } = config;
    this.runner = new Runner({
      ...options.runner,
      modelProvider: recordProvider(config.modelProvider, recording),
      ...(typeof model === "object" ? { model: recordModel(model as Model, recording) } : {}),
      ...(handoffInputFilter ? { handoffInputFilter: this.#agents.filter(handoffInputFilter) } : {}),
    });
  }

  async run(
    agent: AnyAgent,
    input: string | AgentInputItem[] | AnyState,
    options: RunOptions = {},
  ): Promise<AnyResult> {
    refuseOtherHistory(options);
    await this.#catchUp();
    if (input instanceof RunState) return this.#goOn(agent, input, options);
    // As the SDK itself turns text into an item.
    const prompt =
      typeof input === "string" ? [{ type: "message" as const, role: "user" as const, content: input }] : input;
    // It takes the place of a turn that was cut off.
    await settle(this.#session, this.#rules);
    const turn = await this.#session.startTurn(prompt, { metadata: { agent: agent.name } });
    return this.#drive(agent, this.#session.messages.map(sentCopy), this.#scope(options, { turn }), options);
  }

  async resume(agent: AnyAgent, { calls, draft, ...options }: ResumeRunOptions = {}): Promise<AnyResult> {
    refuseOtherHistory(options);
    const session = this.#session;
    await this.#catchUp();
    const { interruption } = session;
    const isAnswered = interruption?.answered === true;
    const { decisions, waiting } = approvalsIn(session.attributes.notes, interruption?.turn ?? 0);
    const policy = this.#policy(Object.keys(waiting));
    const decided = await settledCalls(session, calls, policy, this.#rules);
    const again = { calls: decided, ...(draft ? { draft } : {}) };
    const turn = isAnswered ? null : await session.resumeTurn(again);
    const { number, prompt } = turn ?? { number: interruption!.turn, prompt: interruption!.prompt };
    // A context of the application's own may hold approvals already: then agents that wait go on at once.
    if (options.context instanceof RunContext && Object.keys(waiting).length > 0)
      await session.note(NOTE, { turn: number, decisions } as never);
    const replay = replayOf(session.entries, number, prompt.id);
    const reopen = (): Promise<Turn<RecordedItem>> => session.resumeTurn(again);
    const scope = this.#scope(options, { turn, replay, decisions, waiting, reopen });
    const first = agentNamed(agent, String(prompt.metadata["agent"] ?? "")) ?? agent;
    // A run that was out of turns has as many again. Otherwise it would be out of turns at once, each time.
    const { maxTurns = MAX_TURNS } = options;
    const isMore = interruption?.how.kind === "failed" && maxTurns !== null;
    const more = isMore ? { maxTurns: maxTurns + replay.responses.length } : {};
    return this.#drive(first, replay.input, scope, { ...options, ...more });
  }

  /** After a person has decided. */
  async #goOn(agent: AnyAgent, state: AnyState, options: RunOptions): Promise<AnyResult> {
    const runLog = this.#runLogs.get(state);
    if (!runLog) {
      throw new TypeError(
        "This state does not come from a run of this durable object, so nothing of it would be recorded. Call resume(), which restores the state of an interrupted run.",
      );
    }
    if (runLog !== this.#runLog)
      throw new TypeError("A later run has taken the place of this state. Decide in the state of the latest result.");
    const session = this.#session;
    const decided = decisionsOf(state, runLog.context, (of) => this.#agents.isRecording(of));
    const calls = await settledCalls(session, undefined, this.#policy(runLog.running), this.#rules);
    const turn = await session.resumeTurn({ calls });
    runLog.continueIn(turn);
    const { decisions } = approvalsIn(session.attributes.notes, turn.number);
    // On disk before anything that was approved runs. In the same record, no agent that is a tool waits any more: what
    // it does from here on must not be done again from where it waited.
    await session.note(NOTE, { turn: turn.number, decisions: { ...decisions, ...decided } } as never);
    return this.#follow(runLog, this.#settings(runLog, options, undefined), agent, state);
  }

  /** Records what could not be written before. Known outcomes come before the model is told that a call has none. */
  async #catchUp(): Promise<void> {
    await this.#unwritten.record();
    await this.#unended?.turn.fail(this.#unended.error);
    this.#unended = null;
  }

  async finish(result: AnyResult): Promise<RunOutcome> {
    const ended = this.#ended.get(result);
    if (!ended) throw new TypeError("This result does not come from a run of this durable object.");
    return ended;
  }

  lastAgent<A extends AnyAgent>(agent: A): A {
    const last = this.#session.entries.findLast(({ message }) => openaiAgents.role(message) === "assistant");
    return (agentNamed(agent, String(last?.metadata["agent"] ?? "")) ?? agent) as A;
  }

  /**
   * What a run does with open calls. Those given are agents that run as tools: they have started, and wait inside.
   * Which tools there are, the agents know that the run comes to.
   */
  #policy(waiting: readonly string[]): CallPolicy & Pick<Required<CallPolicy>, "tools"> {
    const names = (this.#session.interruption?.calls ?? []).map(({ name }) => name);
    const facts = Object.fromEntries(waiting.map((id) => [id, { waits: true }]));
    return { runs: true, asks: true, facts, tools: rulesFor(names, this.#rules) };
  }

  #scope(
    { context, callModelInputFilter }: RunOptions,
    of: Pick<RunScope, "turn" | "replay" | "decisions" | "waiting" | "reopen">,
  ): RunScope {
    return {
      ...of,
      session: this.#session,
      unwritten: this.#unwritten,
      context: context instanceof RunContext ? context : new RunContext(context),
      filter: callModelInputFilter ?? this.runner.config.callModelInputFilter,
    };
  }

  #drive(agent: AnyAgent, input: AgentInputItem[], scope: RunScope, options: RunOptions): Promise<AnyResult> {
    const runLog = new AgentRunLog(scope);
    return this.#follow(runLog, this.#settings(runLog, options, scope.context), agent, input);
  }

  #settings(runLog: AgentRunLog, options: RunOptions, context: RunContext<unknown> | undefined): Settings {
    const signals = [runLog.stopped, runLog.turn?.signal, options.signal].filter((one) => one !== undefined);
    const callModelInputFilter: CallModelInputFilter = ({ modelData, agent }) => runLog.prepare(modelData, agent);
    return { ...options, ...(context ? { context } : {}), callModelInputFilter, signal: AbortSignal.any(signals) };
  }

  async #follow(
    runLog: AgentRunLog,
    settings: Settings,
    agent: AnyAgent,
    input: AgentInputItem[] | AnyState,
  ): Promise<AnyResult> {
    this.#runLog = runLog;
    const fail = (error: unknown): Promise<RunOutcome> =>
      unlessHandedOver(this.#session, () => this.#end(runLog, outcomeOfError(error, settings.signal)));
    const end = (of: AnyResult): Promise<RunOutcome> => unlessHandedOver(this.#session, () => this.#ending(runLog, of));
    let result: AnyResult;
    try {
      // The overloads depend on the literal of `stream`.
      result = await this.runner.run(this.#agents.of(agent), input as AgentInputItem[], settings as { stream: true });
    } catch (error) {
      const { kind } = await fail(error);
      throw kind === "handed-over" ? (runLog.turn?.handOver.reason ?? error) : error;
    }
    this.#runLogs.set(result.state, runLog);
    const ended = result instanceof StreamedRunResult ? result.completed.then(() => end(result), fail) : end(result);
    this.#ended.set(result, ended);
    if (!(result instanceof StreamedRunResult)) await ended;
    // `finish` reports it.
    ended.catch(() => {});
    return result;
  }

  async #ending(runLog: AgentRunLog, result: AnyResult): Promise<RunOutcome> {
    const outcome = outcomeOf(result);
    // What the SDK says about the calls of a stopped run is less than what is known of them.
    const isStopped = runLog.failure !== null || outcome.kind === "aborted";
    if (!isStopped) await runLog.recordResults(result.newItems.map(({ rawItem }) => rawItem as AgentInputItem));
    if (outcome.kind === "completed" && !isStopped) await runLog.recordHandled(result);
    if (outcome.kind === "waiting" && !isStopped) await this.#recordWaiting(runLog, result.state);
    return this.#end(runLog, outcome);
  }

  /** Agents that are tools, and wait for an approval inside: `resume` restores them from this, in any process. */
  async #recordWaiting(runLog: AgentRunLog, state: AnyState): Promise<void> {
    const waiting = waitingIn(state, runLog.callIds);
    const ids = Object.keys(waiting);
    if (ids.length === 0) return;
    const ended = ids.find((id) => !runLog.isRunning(id));
    if (ended !== undefined) return runLog.fail(endedTooEarly(ended));
    const { number } = runLog.turn!;
    const { decisions } = approvalsIn(this.#session.attributes.notes, number);
    await runLog.recordUnlessTooLarge(this.#session.note(NOTE, { turn: number, decisions, waiting } as never));
  }

  async #end(runLog: AgentRunLog, outcome: RunOutcome): Promise<RunOutcome> {
    if (runLog.failure) {
      const { error } = runLog.failure;
      const { turn } = runLog;
      if (isOfHandOver(error)) throw error;
      if (isHoldfastError(error, "TOOL_MISSING")) {
        await turn?.suspend({ reason: LACKS_TOOL });
        throw error;
      }
      await turn?.fail(error).catch(() => {
        this.#unended = { turn, error };
      });
      throw error;
    }
    await endAs(outcome, runLog, this.#session);
    return outcome;
  }
}

function endedTooEarly(callId: string): TypeError {
  return new TypeError(
    `The customOutputExtractor of the agent that ran as the call ${JSON.stringify(callId)} returned an output although the agent waits for an approval, and this output is recorded as the call's outcome. Let the extractor return "" when result.interruptions is not empty.`,
  );
}

function refuseOtherHistory(options: object): void {
  for (const name of ["session", "conversationId", "previousResponseId"] as const) {
    if ((options as Record<string, unknown>)[name] == null) continue;
    throw new TypeError(
      `The option "${name}" names another place for the history, but a durable run takes it from the Holdfast session. Leave it out.`,
    );
  }
}
