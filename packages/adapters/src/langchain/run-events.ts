import { AsyncLocalStorage } from "node:async_hooks";
import {
  BaseCallbackHandler,
  type HandleLLMNewTokenCallbackFields,
  type NewTokenIndices,
} from "@langchain/core/callbacks/base";
import type { BaseMessage } from "@langchain/core/messages";
import { type Draft, isHoldfastError } from "holdfast";

/** A request to the model, whose answer is being streamed. */
export interface StreamedRequest {
  draft: Draft<BaseMessage>;
  /** A retry inside the request begins the answer again. */
  hasTokens: boolean;
}

/** LangGraph tells handlers with this mark that a graph waits in an `interrupt()`. */
const GRAPH_HANDLER = Symbol.for("langgraph.graph_callback_handler");

type Interrupts = readonly { readonly value?: unknown }[];

/** The state of an agent that has stopped. */
export interface AgentState {
  readonly messages?: BaseMessage[];
  /** What it waits for. */
  readonly __interrupt__?: Interrupts;
}

/**
 * What LangChain reports of a run: its tokens, which are joined to the request they answer, and the state that it
 * stopped with, which a stream does not return. It reports to callbacks of the whole agent; a sub-agent in a tool
 * reports there too.
 */
export class RunEvents extends BaseCallbackHandler {
  override readonly name = "holdfast";
  /** Asks models to stream even if nobody else listens. */
  readonly lc_prefer_streaming = true;
  readonly #asked = new AsyncLocalStorage<StreamedRequest>();
  readonly #runs = new Map<string, StreamedRequest>();
  #root: string | null = null;
  #interrupts: Interrupts = [];
  #state: AgentState | null = null;

  constructor() {
    // A draft takes tokens in their order.
    super({ _awaitHandler: true });
    Object.defineProperty(this, GRAPH_HANDLER, { value: true });
  }

  /** What the run ended with; null if that was not reported. */
  get state(): AgentState | null {
    return this.#state;
  }

  /** A run is about to begin. The one before may have been left without an end. */
  reset(): void {
    this.#root = null;
    this.#interrupts = [];
    this.#state = null;
  }

  override handleChainStart(_chain: unknown, _inputs: unknown, runId: string): void {
    if (this.#root !== null) return;
    this.reset();
    this.#root = runId;
  }

  handleInterrupt({ interrupts }: { readonly interrupts: Interrupts }): void {
    this.#interrupts = interrupts;
  }

  override handleChainEnd(outputs: unknown, runId: string): void {
    if (runId !== this.#root) return;
    this.#root = null;
    this.#state = { ...(outputs as AgentState), __interrupt__: this.#interrupts };
  }

  override handleChainError(_error: unknown, runId: string): void {
    if (runId === this.#root) this.#root = null;
  }

  during<T>(asked: StreamedRequest, ask: () => T): T {
    return this.#asked.run(asked, ask);
  }

  override handleChatModelStart(_llm: unknown, _messages: unknown, runId: string): void {
    const asked = this.#asked.getStore();
    if (!asked) return;
    this.#runs.set(runId, asked);
    if (!asked.hasTokens) return;
    asked.draft = asked.draft.restart();
    asked.hasTokens = false;
  }

  override handleLLMNewToken(
    token: string,
    _indices: NewTokenIndices,
    runId: string,
    _parentRunId?: string,
    _tags?: string[],
    fields?: HandleLLMNewTokenCallbackFields,
  ): void {
    const asked = this.#runs.get(runId);
    if (!asked) return;
    const message = fields?.chunk && "message" in fields.chunk ? fields.chunk.message : undefined;
    const text = message ? message.text : token;
    const reasoning = message ? reasoningIn(message) : "";
    if (text === "" && reasoning === "") return;
    asked.hasTokens = true;
    try {
      asked.draft.push({ ...(text === "" ? {} : { text }), ...(reasoning === "" ? {} : { part: 1, reasoning }) });
    } catch (error) {
      // The turn ended: what the model still says belongs to nobody.
      if (!isHoldfastError(error, "DRAFT_DISCARDED", "TURN_ENDED", "SESSION_CLOSED")) throw error;
    }
  }

  override handleLLMEnd(_output: unknown, runId: string): void {
    this.#runs.delete(runId);
  }

  override handleLLMError(_error: unknown, runId: string): void {
    this.#runs.delete(runId);
  }
}

function reasoningIn({ contentBlocks }: BaseMessage): string {
  return contentBlocks.map((block) => (block.type === "reasoning" ? (block.reasoning ?? "") : "")).join("");
}
