import {
  isStepCount,
  type ModelMessage,
  streamText,
  type ToolSet,
  toUIMessageStream,
  type UIMessage,
  type UIMessageChunk,
} from "ai";
import { newId, type Session, type Turn } from "holdfast";
import { isOfHandOver } from "../../hand-over.ts";
import { isClientTool } from "../content.ts";
import { durable } from "../durable.ts";
import { hasFinalAnswer } from "../final-tools.ts";
import { finishAs } from "../outcome.ts";
import type { Durable, Run } from "../surface.ts";
import { uiChunks } from "../ui-chunks.ts";
import { type UIMessagesOptions, uiMessages } from "../ui-messages.ts";
import { ChunkLog, type ChunkSource, startingWith } from "./chunk-log.ts";
import { HANDED_OVER } from "./end-of-answer.ts";
import type { ChatSettings, DurableChatOptions } from "./surface.ts";
import { uiChanges } from "./ui-changes.ts";

const STEPS_MAX = 20;

export interface AnswerParts {
  readonly session: Session<ModelMessage>;
  readonly settings: ChatSettings;
  readonly options: DurableChatOptions;
  readonly onError: (error: unknown) => string;
  readonly onFailure: (error: unknown) => void;
}

/** The answer in the open turn, which the model is asked for here. It needs nobody who reads it. */
export class Answer {
  readonly #parts: AnswerParts;
  readonly #log = new ChunkLog(newId());
  readonly #recorded = Promise.withResolvers<{ readonly message: UIMessage | null; readonly length: number }>();
  readonly turn: number;
  /** The id of the prompt. */
  readonly prompt: string;
  readonly messageId: string;
  /** Nothing more will be recorded. Readers may still get its last chunks. */
  isOver = false;
  #isHandedOver = false;
  /** Fires when the session is being closed with a hand-over. */
  readonly #leaving: AbortSignal;
  /** The turn is over or suspended. Never rejects. */
  readonly finished: Promise<void>;

  constructor(parts: AnswerParts) {
    this.#parts = parts;
    const { id, turn } = parts.session;
    this.turn = turn!.number;
    this.#leaving = turn!.handOver;
    this.prompt = turn!.prompt.id;
    this.messageId = `${id}.${this.turn}`;
    this.finished = this.#make();
  }

  /** From its beginning, with the steps that were recorded before; or after this chunk. */
  read(after: string | null = null): ChunkSource {
    return this.#log.from((after === null ? null : this.#log.after(after)) ?? 0);
  }

  /** For a page that has this much of the message. */
  async readFor({ parts }: UIMessage): Promise<ChunkSource> {
    const { message, length } = await this.#recorded.promise;
    return startingWith(uiChanges(parts, message?.parts ?? [], this.messageId), this.#log.from(length));
  }

  async #make(): Promise<void> {
    const { session, options, onError, onFailure } = this.#parts;
    const turn = session.turn!;
    try {
      const agent = durable(session, options);
      // Calls that a killed process left open, and that may run.
      if (turn.open.length > 0) await agent.runOpen(this.#tools, toolSettings(this.#parts.settings));
      turn.handOver.throwIfAborted();
      const before = this.#begin();
      if (!hasFinalAnswer(session)) return await this.#stream(agent, before);
      await turn.end();
      this.#log.push({ type: "finish" });
    } catch (error) {
      if (isOfHandOver(error)) {
        this.#log.push(HANDED_OVER);
        return;
      }
      // The turn cannot go on while the store fails. A full store may refuse this record, too.
      onFailure(error);
      await turn.fail(error).catch(onFailure);
      this.#log.push({ type: "error", errorText: onError(error) });
    } finally {
      this.#recorded.resolve({ message: null, length: 0 });
      this.isOver = true;
      this.#log.end();
    }
  }

  get #tools(): ToolSet {
    return this.#parts.settings.tools ?? {};
  }

  get #view(): UIMessagesOptions {
    const { settings, options, onError } = this.#parts;
    return { tools: settings.tools, onError, sendReasoning: options.sendReasoning };
  }

  /** What was recorded of this answer before: the transcript so far. */
  #begin(): UIMessage[] {
    const before = uiMessages(this.#parts.session, this.#view);
    const last = before.at(-1);
    const message = last?.id === this.messageId ? last : null;
    if (message) this.#log.push(...uiChunks(message));
    this.#recorded.resolve({ message, length: this.#log.length });
    return before;
  }

  async #stream(agent: Durable, originalMessages: UIMessage[]): Promise<void> {
    const { settings, options, onError } = this.#parts;
    const { sendReasoning = true } = options;
    const given = { stopWhen: isStepCount(STEPS_MAX), onError: () => undefined, ...settings } as never;
    const run = streamText(agent.wrap(given) as never);
    const ended = this.#end(agent, run, this.#parts.session.turn!);
    // Its error is thrown below, after what the stream says about it.
    ended.catch(() => undefined);
    const chunks = toUIMessageStream({
      stream: run.stream,
      tools: this.#tools,
      sendReasoning,
      onError,
      originalMessages,
      generateMessageId: () => this.messageId,
    });
    for await (const chunk of chunks) {
      // What a page acts on is on disk first: it may run a client-side tool at once, and ask again after an error.
      const isActedOn = /^(?:finish|error|abort)$/.test(chunk.type);
      if (isActedOn || (chunk.type === "tool-input-available" && this.#isClients(chunk.toolName))) await ended;
      if (isActedOn && this.#isHandedOver) break;
      if (!this.#isRefused(chunk)) this.#log.push(chunk);
    }
    await ended;
    if (this.#isHandedOver) this.#log.push(HANDED_OVER);
  }

  /** A tool that did not start, because its turn is being handed over: it runs in the next process. */
  #isRefused(chunk: UIMessageChunk): boolean {
    if (chunk.type !== "tool-output-error" || !this.#leaving.aborted) return false;
    const { turn, interruption } = this.#parts.session;
    return (turn?.open ?? interruption?.calls ?? []).some(({ id }) => id === chunk.toolCallId);
  }

  #isClients(toolName: string): boolean {
    return isClientTool(this.#parts.settings.tools, toolName);
  }

  async #end(agent: Durable, run: Run, turn: Turn<ModelMessage>): Promise<void> {
    const outcome = await agent.outcome(run);
    if (outcome.kind === "waiting") for (const { toolCallId } of outcome.calls) await turn.toolStarted(toolCallId);
    if (outcome.kind === "failed") this.#parts.onFailure(outcome.error);
    const { kind } = await finishAs(outcome, turn);
    this.#isHandedOver = kind === "handed-over";
    this.isOver = true;
  }
}

function toolSettings(settings: ChatSettings): { readonly toolsContext?: Readonly<Record<string, unknown>> } {
  const { toolsContext } = settings as { readonly toolsContext?: Readonly<Record<string, unknown>> };
  return toolsContext ? { toolsContext } : {};
}
