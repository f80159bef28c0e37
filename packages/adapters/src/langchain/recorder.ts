import { type AIMessage, type BaseMessage, ToolMessage, type UsageMetadata } from "@langchain/core/messages";
import type { RunnableConfig } from "@langchain/core/runnables";
import { errorKind, type Session, type Turn, type Usage } from "holdfast";
import { type Asked, Tokens } from "./tokens.ts";

/** What is used of a request to the model. */
interface ModelRequest {
  readonly model: unknown;
  readonly messages: BaseMessage[];
}

interface ToolRequest {
  readonly toolCall: { readonly id?: string; readonly name: string; readonly args: unknown };
}

/** What a structured answer comes as. */
interface StructuredAnswer {
  readonly messages: readonly BaseMessage[];
}

/** Records what the agent of a session does. */
export class Recorder {
  readonly #session: Session<BaseMessage>;
  readonly #replay: Readonly<Record<string, "safe" | "never">>;
  readonly #tokens = new Tokens();
  /** Calls whose tools wait in an `interrupt()`: they are called again. */
  readonly #interrupted = new Set<string>();
  #failure: unknown = null;

  constructor(session: Session<BaseMessage>, replay: Readonly<Record<string, "safe" | "never">>) {
    this.#session = session;
    this.#replay = replay;
  }

  /** The first failure of the store, or refusal; null if there is none. */
  get failure(): unknown {
    return this.#failure;
  }

  config<C extends RunnableConfig>(config: C): C {
    const { callbacks } = config;
    const turn = this.#session.turn;
    const signals = [config.signal, turn?.signal].filter((signal) => signal !== undefined);
    const joined = Array.isArray(callbacks)
      ? [...callbacks, this.#tokens]
      : callbacks
        ? callbacks.copy([this.#tokens])
        : [this.#tokens];
    return { ...config, callbacks: joined, ...(signals.length > 0 ? { signal: AbortSignal.any(signals) } : {}) };
  }

  async model<R extends ModelRequest, A>(request: R, handler: (request: R) => A | Promise<A>): Promise<A> {
    const turn = this.#live();
    // The agent has results that no tool gave: of a call that was rejected, or that has no tool.
    await this.recordResults(request.messages);
    const asked: Asked = { draft: turn.request().draft, hasTokens: false };
    const answer = await this.#tokens.during(asked, () => handler(request));
    const { messages = [answer as AIMessage] } = answer as Partial<StructuredAnswer>;
    await this.#recording(async () => {
      const [first, ...rest] = messages;
      await asked.draft.commit(first!, { ...modelOf(request.model), ...usageOf(first as AIMessage) });
      for (const message of rest) await turn.append(message);
    });
    return answer;
  }

  async tool<R extends ToolRequest, A>(request: R, handler: (request: R) => A | Promise<A>): Promise<A | ToolMessage> {
    const turn = this.#live();
    const { id = "", name, args } = request.toolCall;
    if (!this.#interrupted.delete(id)) await this.#recording(() => this.#start(turn, id, name, args));
    let answer: A | ToolMessage;
    let error: unknown;
    try {
      answer = await handler(request);
    } catch (thrown) {
      if (isInterrupt(thrown)) this.#interrupted.add(id);
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
    for (const message of messages) {
      if (!ToolMessage.isInstance(message) || !open.delete(message.tool_call_id)) continue;
      await this.#recording(() => turn.toolEnded(message.tool_call_id, outcomeOf(undefined, message), message));
    }
  }

  #start(turn: Turn<BaseMessage>, id: string, name: string, input: unknown): Promise<void> {
    const replay = Object.hasOwn(this.#replay, name) ? this.#replay[name] : undefined;
    return turn.toolStarted(id, { name, input, ...(replay ? { replay } : {}) });
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
