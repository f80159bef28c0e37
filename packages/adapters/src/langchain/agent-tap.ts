import { AIMessage, type BaseMessage, ToolMessage, type UsageMetadata } from "@langchain/core/messages";
import type { RunnableConfig } from "@langchain/core/runnables";
import { errorKind, newId, type Session, type ToolCall, type Turn, type Usage } from "holdfast";
import { runInCall } from "holdfast/internal";
import { handedOver, isOfHandOver } from "../hand-over.ts";
import { missingTools, ruleOf, type ToolRules } from "../tool-rules.ts";
import { behindOpenAnswer, openAnswer, restoreAnswers } from "./resume.ts";
import { type AgentState, RunEvents, type StreamedRequest } from "./run-events.ts";

/** What is used of a request to the model. */
interface ModelRequest {
  readonly model: unknown;
  readonly tools: readonly object[];
  readonly messages: BaseMessage[];
}

interface ToolRequest {
  readonly toolCall: { readonly id?: string; readonly name: string; readonly args: unknown };
}

/** What a structured answer comes as. */
interface StructuredAnswer {
  readonly messages: readonly BaseMessage[];
}

/** The model's last answer. */
interface RecordedAnswer {
  readonly turn: number;
  readonly entry: string;
  readonly messageId: string | undefined;
  readonly hasCalls: boolean;
  readonly said: string;
}

/** Records what the agent of a session does. */
export class AgentTap {
  readonly #session: Session<BaseMessage>;
  readonly #rules: ToolRules;
  readonly #events = new RunEvents();
  /** Calls whose tools wait in an `interrupt()`: they are called again. */
  readonly #interrupted = new Map<string, ToolCall>();
  #answer: RecordedAnswer | null = null;
  #failure: unknown = null;

  constructor(session: Session<BaseMessage>, rules: ToolRules) {
    this.#session = session;
    this.#rules = rules;
  }

  /** The first failure of the store, or refusal; null if there is none. */
  get failure(): unknown {
    return this.#failure;
  }

  /** What the agent's last run ended with. Null if it was run without `config`. */
  get state(): AgentState | null {
    return this.#events.state;
  }

  config<C extends RunnableConfig>(config: C): C {
    const { callbacks } = config;
    this.#events.reset();
    const turn = this.#session.turn;
    const signals = [config.signal, turn?.signal].filter((signal) => signal !== undefined);
    const joined = Array.isArray(callbacks)
      ? [...callbacks, this.#events]
      : callbacks
        ? callbacks.copy([this.#events])
        : [this.#events];
    return { ...config, callbacks: joined, ...(signals.length > 0 ? { signal: AbortSignal.any(signals) } : {}) };
  }

  async model<R extends ModelRequest, A>(request: R, handler: (request: R) => A | Promise<A>): Promise<A> {
    const turn = this.#live();
    // The agent has results that no tool gave: of a call that was rejected, or that has no tool.
    await this.recordResults(request.messages);
    await this.#endStructured(turn);
    const isLacking = behindOpenAnswer(request.messages, this.#session, turn.open) === null;
    const known = isLacking ? openAnswer(this.#session, turn.open) : null;
    if (known) {
      this.#refuseMissing(turn, request.tools);
      return known as A;
    }
    const messages = restoreAnswers(request.messages, this.#session);
    const asked: StreamedRequest = { draft: turn.request().draft, hasTokens: false };
    const answer = await this.#events.during(asked, () => handler({ ...request, messages }));
    const { messages: answers = [answer as AIMessage] } = answer as Partial<StructuredAnswer>;
    answers.forEach(nameAnswer);
    await this.#recording(async () => {
      const options = { ...modelOf(request.model), ...usageOf(answers[0] as AIMessage) };
      const { ids } = await asked.draft.commit([...answers], options);
      this.#answer = recordedAnswer(answers.at(-1) as AIMessage, turn.number, ids.at(-1)!);
    });
    return answer;
  }

  async tool<R extends ToolRequest, A>(request: R, handler: (request: R) => A | Promise<A>): Promise<A | ToolMessage> {
    const turn = this.#live();
    const { id = "", name, args } = request.toolCall;
    const waited = this.#interrupted.get(id);
    this.#interrupted.delete(id);
    const isRunning = waited && !turn.open.some((open) => open.id === id && open.state === "never-started");
    const call = isRunning ? waited : await this.#recording(() => this.#start(turn, id, name, args));
    let answer: A | ToolMessage;
    let error: unknown;
    try {
      answer = await runInCall(call, () => handler(request));
    } catch (thrown) {
      if (isInterrupt(thrown)) this.#interrupted.set(id, call);
      // The tool's own session is handed over, and so is the call.
      if (turn.handOver.aborted && isOfHandOver(thrown)) {
        await turn.toolEnded(id, { error: thrown });
        await handedOver(turn.signal);
      }
      const kind = errorKind(thrown);
      if (kind === "store" || kind === "misuse") this.#failure ??= thrown;
      // LangChain ends the run on these. On all others it would have told the model, had no middleware been here.
      if (isInterrupt(thrown) || kind === "store" || kind === "misuse" || turn.signal.aborted) throw thrown;
      error = thrown;
      answer = failedMessage(id, name, thrown);
    }
    const shown = resultIn(answer, id);
    await this.#recording(() => turn.toolEnded(id, outcomeOf(error, shown), shown));
    return answer;
  }

  /** Records results of open calls that are in the agent's messages. */
  async recordResults(messages: readonly BaseMessage[]): Promise<void> {
    const turn = this.#session.turn;
    if (!turn || turn.open.length === 0) return;
    const open = new Set(turn.open.map(({ id }) => id));
    for (const message of behindOpenAnswer(messages, this.#session, turn.open) ?? []) {
      if (!ToolMessage.isInstance(message) || !open.delete(message.tool_call_id)) continue;
      await this.#recording(() => turn.toolEnded(message.tool_call_id, outcomeOf(undefined, message), message));
    }
  }

  /**
   * Records the last message of the agent, where another middleware made or changed it: it is what the user sees. A
   * changed answer takes the place of the model's own.
   */
  async recordLast(messages: readonly BaseMessage[]): Promise<void> {
    const { turn, entries } = this.#session;
    const last = messages.at(-1);
    if (!turn || !AIMessage.isInstance(last) || last.tool_calls?.length) return;
    const known = entries.findLast((entry) => entry.turn === turn.number && AIMessage.isInstance(entry.message));
    // As the model gave it, if it was in this process: the store may have redacted it.
    const given = this.#answer?.turn === turn.number ? this.#answer : null;
    const answer = given ?? (known ? recordedAnswer(known.message as AIMessage, turn.number, known.id) : null);
    if (answer?.said === saidIn(last)) return;
    const isChanged = answer !== null && !answer.hasCalls && last.id !== undefined && answer.messageId === last.id;
    await this.#recording(async () => {
      if (isChanged) await this.#session.edit([answer.entry], [last], { reason: "middleware", now: true });
      else {
        const left = turn.open.filter(({ state }) => state === "never-started");
        for (const { id } of left) await turn.toolEnded(id, { error: "Not run: the agent ended the run before it." });
        await turn.append(last);
      }
    });
  }

  /**
   * An answer that does not fit its schema has made a call that no tool runs, and LangChain ends a run that comes to
   * one. It tells the model what is wrong with the first of them, unless the process dies before.
   */
  async #endStructured(turn: Turn<BaseMessage>): Promise<void> {
    for (const { id, name } of turn.open) {
      if (!name.startsWith("extract-")) continue;
      await this.#recording(() => turn.toolEnded(id, { error: "This answer was not taken. Give it again." }));
    }
  }

  async #start(turn: Turn<BaseMessage>, id: string, name: string, input: unknown): Promise<ToolCall> {
    try {
      return await turn.toolStarted(id, { name, input, ...ruleOf(name, this.#rules) });
    } catch (error) {
      if (isOfHandOver(error)) await handedOver(turn.signal);
      throw error;
    }
  }

  /**
   * Throws TOOL_MISSING before any of the open calls runs. Another middleware may supply a tool that the agent does not
   * have: those that the application says something about are there.
   */
  #refuseMissing({ open }: Turn<BaseMessage>, tools: readonly object[]): void {
    const names = new Set([
      ...tools.map((tool) => (tool as { readonly name?: unknown }).name),
      ...Object.keys({ ...this.#rules.replay, ...this.#rules.probe }),
    ]);
    const missing = open.filter(({ name }) => !names.has(name));
    if (missing.length > 0) throw missingTools(missing);
  }

  #live(): Turn<BaseMessage> {
    if (this.#failure) throw this.#failure;
    const { turn } = this.#session;
    if (!turn) {
      throw new Error(
        "No turn is open, so nothing can be recorded. Call session.startTurn or resume before you run the agent.",
      );
    }
    turn.signal.throwIfAborted();
    return turn;
  }

  /** After a failed write, nothing more is asked and nothing more runs. */
  async #recording<T>(act: () => Promise<T>): Promise<T> {
    try {
      return await act();
    } catch (error) {
      this.#failure ??= error;
      throw error;
    }
  }
}

/** LangGraph gives ids to messages without one, but only after this. By its id, a resumed run knows what it has. */
function nameAnswer(message: BaseMessage): void {
  message.id ??= newId();
  message.lc_kwargs["id"] ??= message.id;
}

/** What LangChain tells the model if a tool throws. */
function failedMessage(id: string, name: string, error: unknown): ToolMessage {
  const isInput = error instanceof Error && error.name === "ToolInvocationError";
  const content = isInput ? error.message : `${error}\n Please fix your mistakes.`;
  return new ToolMessage({ content, tool_call_id: id, name, status: "error" });
}

/** The tool's message: what it returned, or what its `Command` puts into the state. */
function resultIn(answer: unknown, id: string): ToolMessage {
  if (ToolMessage.isInstance(answer)) return answer;
  const { update } = answer as { update?: { messages?: unknown } };
  const messages = Array.isArray(update?.messages) ? (update.messages as unknown[]) : [];
  const found = messages.find((message): message is ToolMessage => {
    return ToolMessage.isInstance(message) && message.tool_call_id === id;
  });
  return found ?? new ToolMessage({ content: "", tool_call_id: id });
}

function outcomeOf(error: unknown, { content, status }: ToolMessage): { value: unknown } | { error: unknown } {
  if (error !== undefined) return { error };
  return status === "error" ? { error: content } : { value: content };
}

function recordedAnswer(message: AIMessage, turn: number, entry: string): RecordedAnswer {
  const { id, tool_calls = [] } = message;
  return { turn, entry, messageId: id, hasCalls: tool_calls.length > 0, said: saidIn(message) };
}

/** What counts of an answer, to see whether it was changed later. */
function saidIn({ content, tool_calls = [] }: AIMessage): string {
  return JSON.stringify({ content, calls: tool_calls.map(({ id }) => id) });
}

function isInterrupt(error: unknown): boolean {
  return error instanceof Error && (error.name === "GraphInterrupt" || error.name === "NodeInterrupt");
}

function modelOf(model: unknown): { model?: string } {
  const { model: name, modelName } = (model ?? {}) as { model?: unknown; modelName?: unknown };
  const known = typeof name === "string" ? name : modelName;
  return typeof known === "string" ? { model: known } : {};
}

function usageOf(message: AIMessage): { usage?: Usage } {
  const spent = message.usage_metadata as UsageMetadata | undefined;
  if (!spent) return {};
  const counts = {
    inputTokens: spent.input_tokens,
    outputTokens: spent.output_tokens,
    cacheReadTokens: spent.input_token_details?.cache_read,
    cacheWriteTokens: spent.input_token_details?.cache_creation,
    reasoningTokens: spent.output_token_details?.reasoning,
  };
  const known = Object.entries(counts).filter(([, count]) => typeof count === "number");
  return { usage: Object.fromEntries(known) };
}
