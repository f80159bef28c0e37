import { isDeepStrictEqual } from "node:util";
import type { LanguageModelUsage, ModelMessage, ToolSet } from "ai";
import {
  type Draft,
  errorKind,
  isHoldfastError,
  type Json,
  type OpenCall,
  type Session,
  type Turn,
  type Usage,
} from "holdfast";
import { nextRequest } from "../background-fetch.ts";
import type { UnwrittenOutcomes } from "../unwritten-outcomes.ts";
import type { Approvals, Scope } from "./approvals.ts";
import {
  type CallPart,
  type Decision,
  isClientTool,
  type ModelParams,
  type Part,
  responseMessages,
  snapshot,
} from "./content.ts";
import { finalTools, type StopCondition } from "./final-tools.ts";
import { mutableCopy } from "./mutable-copy.ts";
import { resultsIn } from "./sent-results.ts";
import { failTurn } from "./tools.ts";

/** One request to the model, and its state. */
export interface ModelRequest {
  readonly turn: Turn<ModelMessage>;
  draft: Draft<ModelMessage>;
  /** What its answer can be fetched by (`backgroundFetch`). */
  handle: Json | null;
  readonly kind: "stream" | "generate";
  readonly params: ModelParams;
  readonly model: { readonly provider: string; readonly modelId: string };
  /** The error that its stream ended with. */
  error?: unknown;
  /** The answer is on disk. */
  isAnswered: boolean;
}

/** The argument of `onLanguageModelCallEnd`. */
export interface Answer {
  readonly content: readonly Part[];
  readonly finishReason: string;
  readonly usage: LanguageModelUsage;
}

interface ResponseParts extends Omit<Answer, "content"> {
  readonly parts: readonly Part[];
  readonly calls: readonly CallPart[];
}

interface RunSettings {
  readonly unwritten: UnwrittenOutcomes;
  readonly tools: ToolSet | undefined;
  readonly approvals: Approvals | null;
  readonly stopWhen: StopCondition | readonly StopCondition[] | undefined;
  readonly toolsContext: unknown;
  readonly runtimeContext: unknown;
}

/**
 * One run of the SDK's loop. It belongs to the turn that was open when it first needed one, even if another opens later
 * (C14).
 */
export class RunState {
  readonly #session: Session<ModelMessage>;
  readonly #settings: RunSettings;
  readonly #stop = new AbortController();
  readonly #calls = new Map<string, { readonly turn: Turn<ModelMessage>; readonly part: CallPart }>();
  #turn: Turn<ModelMessage> | null = null;
  #asked: ModelRequest | null = null;
  #failure: { readonly error: unknown } | null = null;
  /** An answer arrived but is not on disk: the next step has nothing to build on. */
  #refused: { readonly error: unknown } | null = null;
  /** The steps of the run before this one. */
  steps: readonly unknown[] = [];
  /** What `prepareStep` returned last. */
  contexts: { toolsContext?: unknown; runtimeContext?: unknown; messages?: ModelMessage[] } = {};

  constructor(session: Session<ModelMessage>, settings: RunSettings) {
    this.#session = session;
    this.#settings = settings;
    this.#turn = session.turn;
  }

  get turn(): Turn<ModelMessage> | null {
    return this.#turn;
  }

  get asked(): ModelRequest | null {
    return this.#asked;
  }

  /** Why the run failed: the store's error, or a refusal. */
  get failure(): { readonly error: unknown } | null {
    return this.#failure;
  }

  get unwritten(): UnwrittenOutcomes {
    return this.#settings.unwritten;
  }

  /** Fires when nothing more can be recorded. */
  get stopped(): AbortSignal {
    return this.#stop.signal;
  }

  /**
   * From here on no tool starts and no model is asked (P8). A callback cannot stop the SDK by throwing. What runs is
   * stopped, except at a hand-over, which waits for it.
   */
  fail(error: unknown): void {
    this.#failure ??= { error };
    if (isHoldfastError(error, "TURN_HANDED_OVER")) return;
    this.#stop.abort(error);
    // The turn knows by itself that its store failed. A full store leaves it open.
    if (this.#turn && errorKind(error) === "misuse") failTurn(this.#turn, error);
  }

  /** Records outcomes that could not be written for lack of space. Returns whether there were any. */
  catchUp(): Promise<boolean> {
    return this.#recording(this.unwritten.record());
  }

  /** Records what a person says during the run before the model sees it. */
  async steered(messages: readonly ModelMessage[]): Promise<void> {
    for (const message of messages.map(mutableCopy)) await this.#recording(this.live().append(message));
  }

  /** Calls of tools that the application runs itself. */
  get unanswered(): readonly OpenCall[] {
    const { tools } = this.#settings;
    return (this.#turn?.open ?? []).filter(({ state, name }) => state === "never-started" && isClientTool(tools, name));
  }

  /** The turn of this run. Throws if there is none, if it is over, or if the run has failed. */
  live(): Turn<ModelMessage> {
    const over = this.#failure ?? this.#refused;
    if (over) throw over.error;
    this.#turn ??= this.#session.turn;
    if (!this.#turn) {
      throw new Error(
        "No turn is open, so nothing can be recorded. Call session.startTurn or session.resumeTurn before you ask the model.",
      );
    }
    this.#turn.signal.throwIfAborted();
    if (this.#session.turn !== this.#turn) {
      // Its signal fires when the session is closed.
      this.#turn.handOver.throwIfAborted();
      throw new Error(
        `This run belongs to turn ${this.#turn.number}, which is over. What it recorded is safe. Wrap the settings again for a run in another turn.`,
      );
    }
    return this.#turn;
  }

  /**
   * Takes the draft before asking the provider: records written meanwhile then come after the answer (R1). A request
   * that is sent again with the same messages keeps its place, because the model still has not seen them.
   */
  async ask(kind: ModelRequest["kind"], params: ModelParams, model: ModelRequest["model"]): Promise<ModelRequest> {
    const turn = this.live();
    this.#settings.approvals?.begin();
    for (const { call, outcome, shown } of resultsIn(params.prompt, turn.open)) {
      await this.#recording(turn.toolEnded(call, outcome, shown));
    }
    const before = this.#asked;
    const again = this.#draftOf(before, params);
    const { draft, accepted } = again ? { draft: again, accepted: null } : nextRequest(turn);
    const asked: ModelRequest = { turn, draft, handle: null, kind, params, model, isAnswered: false };
    this.#asked = asked;
    if (accepted) asked.handle = accepted.handle;
    if (again && before?.handle != null) await this.accepted(asked, before.handle);
    return asked;
  }

  /** The provider has accepted the request, and keeps its answer. */
  async accepted(asked: ModelRequest, handle: Json): Promise<void> {
    await this.#recording(asked.draft.accepted(handle));
    asked.handle = handle;
  }

  /**
   * The draft for sending a request again; null if that request is over, or there was none. An application may also use
   * its settings again after a failure, with messages that the failed request lacked: that is another request.
   */
  #draftOf(asked: ModelRequest | null, { prompt }: ModelParams): Draft<ModelMessage> | null {
    if (!asked || asked.isAnswered || !isDeepStrictEqual(asked.params.prompt, prompt)) return null;
    try {
      return asked.draft.restart();
    } catch (error) {
      if (isHoldfastError(error, "DRAFT_DISCARDED")) return null;
      throw error;
    }
  }

  /** Records the answer before any of its tools runs. Never rejects. */
  async answered({ content, finishReason, usage }: Answer): Promise<void> {
    const asked = this.#asked;
    if (!asked) return;
    try {
      // An incomplete answer stays a draft. So does an answer with a part that could not be parsed: the SDK skips that
      // part, but the rest is not what the model said, and no signature would match.
      if (finishReason === "error" || asked.error !== undefined) {
        this.#refuse(asked, new Error("The model's answer ended before it was complete."));
        const spent = usageOf(usage);
        if (spent) await asked.turn.usage(spent);
        return;
      }
      const parts = content.map(snapshot);
      const calls = parts.filter((part): part is CallPart => part.type === "tool-call");
      if (violates(asked.params.toolChoice, calls, finishReason)) {
        await asked.draft.discard("the SDK rejected it: it violates the tool choice");
        return;
      }
      const messages = await this.#makeMessages(asked, { parts, calls, finishReason, usage });
      if (!messages) return;
      await this.#commit(asked, messages, usageOf(usage));
      for (const part of calls) this.#calls.set(part.toolCallId, { turn: asked.turn, part });
      asked.isAnswered = true;
    } catch (error) {
      // After an abort there is nothing to report: the turn has its marker.
      if (asked.turn.signal.aborted) this.#stop.abort(asked.turn.signal.reason);
      // The turn ended, or another run is using it; the journal is fine.
      else if (isHoldfastError(error, "DRAFT_DISCARDED")) this.#refuse(asked, error);
      else this.fail(error);
    }
  }

  #refuse(asked: ModelRequest, error: unknown): void {
    asked.error ??= error;
    this.#refused = { error: asked.error };
  }

  /**
   * Null if the application's own functions failed: the SDK fails on them too, and it is unknown which calls need
   * approval.
   */
  async #makeMessages(
    asked: ModelRequest,
    { parts, calls, finishReason, usage }: ResponseParts,
  ): Promise<ModelMessage[] | null> {
    const { tools, stopWhen } = this.#settings;
    try {
      const decisions = await this.#decisions(calls);
      const clients = calls.filter((call) => !call.invalid && isClientTool(tools, call.toolName));
      const step = { content: parts, finishReason, usage };
      const finals = await finalTools(clients, stopWhen, this.steps, step);
      return await responseMessages(parts, tools, { decisions, finals, isStream: asked.kind === "stream" });
    } catch (error) {
      this.#refuse(asked, error);
      return null;
    }
  }

  /**
   * The recorded call that a tool is about to run for. A call of an earlier run (an approved one) has no part. Throws
   * if it may not run.
   */
  callOf(toolCallId: string): { readonly turn: Turn<ModelMessage>; readonly part: CallPart | null } {
    const turn = this.live();
    if (this.#asked && !this.#asked.isAnswered) {
      throw new Error("The message with this call was not recorded, so its tool does not run.");
    }
    return this.#calls.get(toolCallId) ?? { turn, part: null };
  }

  /** A store failure ends the run. */
  async #recording<T>(appended: Promise<T>): Promise<T> {
    try {
      return await appended;
    } catch (error) {
      this.fail(error);
      throw error;
    }
  }

  async #decisions(calls: readonly CallPart[]): Promise<ReadonlyMap<string, Decision>> {
    const { approvals, tools } = this.#settings;
    if (!approvals) return new Map();
    const { toolsContext, runtimeContext, messages } = { ...this.#settings, messages: [], ...this.contexts };
    return approvals.decisions(calls, { tools, toolsContext, runtimeContext, messages } satisfies Scope);
  }

  async #commit({ draft, turn, model }: ModelRequest, messages: ModelMessage[], usage: Usage | null): Promise<void> {
    if (messages.length === 0) {
      await draft.discard("it was empty");
      if (usage) await turn.usage(usage);
      return;
    }
    await draft.commit(messages, {
      model: model.modelId,
      metadata: { provider: model.provider, model: model.modelId },
      ...(usage ? { usage } : {}),
    });
  }
}

/** The SDK reports the answer first, and throws afterwards. */
function violates(choice: ModelParams["toolChoice"], calls: readonly CallPart[], finishReason: string): boolean {
  if (!choice || choice.type === "auto") return false;
  if (choice.type === "none") return calls.length > 0;
  if (finishReason === "interrupted") return false;
  return !calls.some(({ toolName }) => choice.type === "required" || toolName === choice.toolName);
}

function usageOf({
  inputTokens,
  outputTokens,
  inputTokenDetails,
  outputTokenDetails,
}: LanguageModelUsage): Usage | null {
  const counts = {
    inputTokens,
    outputTokens,
    cacheReadTokens: inputTokenDetails?.cacheReadTokens,
    cacheWriteTokens: inputTokenDetails?.cacheWriteTokens,
    reasoningTokens: outputTokenDetails?.reasoningTokens,
  };
  const known = Object.entries(counts).filter(([, count]) => typeof count === "number");
  return known.length > 0 ? Object.fromEntries(known) : null;
}
