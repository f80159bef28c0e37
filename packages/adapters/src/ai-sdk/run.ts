import type { LanguageModelMiddleware, LanguageModelUsage, ModelMessage, ToolSet } from "ai";
import { type Draft, errorKind, isHoldfastError, type OpenCall, type Session, type Turn, type Usage } from "holdfast";
import type { Approvals, Scope } from "./approvals.ts";
import { type CallPart, type Decision, ownTool, type Part, responseMessages, snapshot } from "./content.ts";
import { copied } from "./copied.ts";
import { resultsIn } from "./sent-results.ts";
import { failTurn } from "./tools.ts";
import type { Unrecorded } from "./unrecorded.ts";

export type ModelParams = Parameters<NonNullable<LanguageModelMiddleware["wrapStream"]>>[0]["params"];

/** One question to the model, and what became of it. */
export interface Asked {
  readonly turn: Turn<ModelMessage>;
  readonly draft: Draft<ModelMessage>;
  readonly kind: "stream" | "generate";
  readonly params: ModelParams;
  readonly model: { readonly provider: string; readonly modelId: string };
  /** What its stream failed with. */
  error?: unknown;
  /** Its answer is on disk. */
  isAnswered: boolean;
}

/** What `onLanguageModelCallEnd` brings. */
export interface Answer {
  readonly content: readonly Part[];
  readonly finishReason: string;
  readonly usage: LanguageModelUsage;
}

interface RunSettings {
  readonly unrecorded: Unrecorded;
  readonly tools: ToolSet | undefined;
  readonly approvals: Approvals | null;
  readonly toolsContext: unknown;
  readonly runtimeContext: unknown;
}

/** One run of the SDK's loop. It belongs to the turn that was open when it first needed one, whatever is opened later (C14). */
export class RunState {
  readonly #session: Session<ModelMessage>;
  readonly #settings: RunSettings;
  readonly #stop = new AbortController();
  readonly #calls = new Map<string, { readonly turn: Turn<ModelMessage>; readonly part: CallPart }>();
  #turn: Turn<ModelMessage> | null = null;
  #asked: Asked | null = null;
  #failure: { readonly error: unknown } | null = null;
  /** An answer has come that is not on disk: there is nothing that a next step could be built on. */
  #refused: { readonly error: unknown } | null = null;
  /** What `prepareStep` said last. */
  contexts: { toolsContext?: unknown; runtimeContext?: unknown; messages?: ModelMessage[] } = {};

  constructor(session: Session<ModelMessage>, settings: RunSettings) {
    this.#session = session;
    this.#settings = settings;
    this.#turn = session.turn;
  }

  get turn(): Turn<ModelMessage> | null {
    return this.#turn;
  }

  get asked(): Asked | null {
    return this.#asked;
  }

  /** What the run failed with: the store's error, or a refusal. */
  get failure(): { readonly error: unknown } | null {
    return this.#failure;
  }

  get unrecorded(): Unrecorded {
    return this.#settings.unrecorded;
  }

  /** Fires when nothing more can be recorded. */
  get stopped(): AbortSignal {
    return this.#stop.signal;
  }

  /** From here on no tool runs and no model is asked (P8): a callback of the SDK cannot say so by throwing. */
  fail(error: unknown): void {
    this.#failure ??= { error };
    this.#stop.abort(error);
    // That its store has failed, the turn knows by itself; one that is only full leaves it open.
    if (this.#turn && errorKind(error) === "misuse") failTurn(this.#turn, error);
  }

  /** Records what found no space before. Whether there was anything. */
  catchUp(): Promise<boolean> {
    return this.#recording(this.unrecorded.record());
  }

  /** What a person says while it runs, before the model hears it. */
  async steered(messages: readonly ModelMessage[]): Promise<void> {
    for (const message of messages.map(copied)) await this.#recording(this.live().append(message));
  }

  /** Calls of tools that the application runs itself. */
  get unanswered(): readonly OpenCall[] {
    const { tools } = this.#settings;
    const isOwn = ({ name }: OpenCall): boolean => {
      const tool = ownTool(tools, name);
      return tool !== undefined && typeof tool.execute !== "function";
    };
    return (this.#turn?.open ?? []).filter((call) => call.state === "never-started" && isOwn(call));
  }

  /** The turn of this run. Throws if there is none, if it is over, or if the run has failed. */
  live(): Turn<ModelMessage> {
    const over = this.#failure ?? this.#refused;
    if (over) throw over.error;
    this.#turn ??= this.#session.turn;
    if (!this.#turn) {
      throw new Error(
        "No turn is open, so that nothing could be recorded: call session.startTurn or session.resumeTurn before the model is asked.",
      );
    }
    this.#turn.signal.throwIfAborted();
    if (this.#session.turn !== this.#turn) {
      throw new Error(
        `Turn ${this.#turn.number}, which this run belongs to, is over. What it recorded is safe. Wrap the settings anew for the run of another turn.`,
      );
    }
    return this.#turn;
  }

  /** Before the provider is asked: what is recorded while it answers stands behind the answer (R1). */
  async ask(kind: Asked["kind"], params: ModelParams, model: Asked["model"]): Promise<Asked> {
    const turn = this.live();
    this.#settings.approvals?.begin();
    for (const { call, outcome, shown } of resultsIn(params.prompt, turn.open)) {
      await this.#recording(turn.toolEnded(call, outcome, shown));
    }
    this.#asked = { turn, draft: turn.draft(), kind, params, model, isAnswered: false };
    return this.#asked;
  }

  /** The answer, on disk before any of its tools runs. Never rejects. */
  async answered({ content, finishReason, usage }: Answer): Promise<void> {
    const asked = this.#asked;
    if (!asked) return;
    try {
      // Half an answer stays what it is: a draft. So does one of which a piece could not be read: the SDK passes over that, but those are not the model's words, and no signature fits them.
      if (finishReason === "error" || asked.error !== undefined) {
        this.#refuse(asked, new Error("The model's answer ended before it was complete."));
        const spent = usageOf(usage);
        if (spent) await asked.turn.usage(spent);
        return;
      }
      const parts = content.map(snapshot);
      const calls = parts.filter((part): part is CallPart => part.type === "tool-call");
      if (violates(asked.params.toolChoice, calls, finishReason)) {
        await asked.draft.discard("the SDK refused it: it does not keep to the tool choice");
        return;
      }
      const messages = await this.#made(asked, parts, calls);
      if (!messages) return;
      await this.#commit(asked, messages, usageOf(usage));
      for (const part of calls) this.#calls.set(part.toolCallId, { turn: asked.turn, part });
      asked.isAnswered = true;
    } catch (error) {
      // After an abort there is nothing to be said: the turn has its marker.
      if (asked.turn.signal.aborted) this.#stop.abort(asked.turn.signal.reason);
      // The turn was ended, or another run asks in it: the journal is well.
      else if (isHoldfastError(error, "DRAFT_DISCARDED")) this.#refuse(asked, error);
      else this.fail(error);
    }
  }

  #refuse(asked: Asked, error: unknown): void {
    asked.error ??= error;
    this.#refused = { error: asked.error };
  }

  /** Null if the application's own functions failed on it: then the SDK fails on them too, and nothing is known of which calls wait for whom. */
  async #made(asked: Asked, content: readonly Part[], calls: readonly CallPart[]): Promise<ModelMessage[] | null> {
    try {
      return await responseMessages(
        content,
        this.#settings.tools,
        await this.#decisions(calls),
        asked.kind === "stream",
      );
    } catch (error) {
      this.#refuse(asked, error);
      return null;
    }
  }

  /** The call that a tool is to run for, as it was recorded. One of an earlier run (an approved one) has no part. Throws if it may not run. */
  callOf(toolCallId: string): { readonly turn: Turn<ModelMessage>; readonly part: CallPart | null } {
    const turn = this.live();
    if (this.#asked && !this.#asked.isAnswered) {
      throw new Error("The message that makes this call was not recorded, so that its tool does not run.");
    }
    return this.#calls.get(toolCallId) ?? { turn, part: null };
  }

  /** A store that fails ends the run. */
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

  async #commit({ draft, turn, model }: Asked, messages: ModelMessage[], usage: Usage | null): Promise<void> {
    if (messages.length === 0) {
      await draft.discard("there was nothing in it");
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

/** The SDK tells of the answer first, and throws then. */
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
