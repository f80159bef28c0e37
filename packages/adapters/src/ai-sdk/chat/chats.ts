import { setTimeout as sleep } from "node:timers/promises";
import type { ModelMessage, ToolSet, UIMessage } from "ai";
import { type CloseOptions, isHoldfastError, type Once, type Reading, type Session, type Store } from "holdfast";
import { rulesFor, settle, settledCalls } from "../../tool-rules.ts";
import { uiChunks } from "../ui-chunks.ts";
import type { UIMessagesOptions } from "../ui-messages.ts";
import { ActiveChat } from "./active-chat.ts";
import { answersFrom, checkedOutput, type PageAnswer, type Prompt } from "./browser-message.ts";
import { ChatSessions, sessionIdOf, whileBusy } from "./chat-sessions.ts";
import { type ChunkSource, startingWith } from "./chunk-log.ts";
import { endOfAnswer, finish } from "./end-of-answer.ts";
import { followAnswer } from "./follow.ts";
import { alreadyAnswered, answerStays, busy, invalid, notFound, Refusal, waiting } from "./problem.ts";
import { isAwaited, recordAnswer, suspension } from "./record-answer.ts";
import { isContinued, isOver, isWaiting, shownIn, stateOf, type View } from "./state.ts";
import type { ChatSettings, ChatState, DurableChatOptions } from "./surface.ts";
import { uiChanges } from "./ui-changes.ts";
import { AnswerKeys, BY_USER, chatPolicy, isStopped, waitsOf } from "./waits.ts";

/** How long a page may take from loading the state to asking for the stream. */
const PROMISED_MS = 60_000;

/** As of `session.close`. */
const HAND_OVER_MS = 8000;

/** What the handlers do, without HTTP. */
export interface ChatParts {
  readonly store: Store;
  readonly settingsOf: (chat: string) => Promise<ChatSettings>;
  readonly options: DurableChatOptions;
  readonly onError: (error: unknown) => string;
  readonly onFailure: (error: unknown) => void;
}

/** `isRepeated`: it was known before, and nothing new was recorded. */
export interface Reply {
  readonly source: ChunkSource;
  readonly isRepeated: boolean;
}

export class Chats {
  readonly #parts: ChatParts;
  readonly #sessions: ChatSessions;
  readonly #active = new Map<string, ActiveChat>();
  readonly #last = new Map<string, Promise<unknown>>();
  /** The prompts of answers that pages were told to ask for, by chat. */
  readonly #promised = new Map<string, string>();

  constructor(parts: ChatParts) {
    this.#parts = parts;
    this.#sessions = new ChatSessions(parts.store, parts.options, parts.onFailure);
  }

  async state(chat: string): Promise<ChatState> {
    const options = await this.#uiOptions(chat);
    // Between two turns, the next prompt in the queue is about to get its own.
    await this.#active.get(chat)?.running();
    const view = await this.#view(chat);
    if (!view) return { messages: [], status: "ready", interrupted: null };
    const state = stateOf(view, options);
    if (state.status === "running") this.#promise(chat, view);
    else this.#promised.delete(chat);
    return state;
  }

  /** The running answer, here or on another server; null if there is none. */
  async running(chat: string, after: string | null): Promise<ChunkSource | null> {
    const running = await this.#active.get(chat)?.running();
    if (running) return running.read(after);
    const view = await this.#sessions.read(chat);
    if (view?.running != null) return this.#follow(chat, view);
    if (view && isContinued(view, (await this.#parts.settingsOf(chat)).tools)) return this.#takeOver(chat, after);
    const promised = this.#promised.get(chat);
    return promised === undefined ? null : this.#finished(chat, promised);
  }

  /** An answer that was handed over: the first request for it continues it, on any server. */
  async #takeOver(chat: string, after: string | null): Promise<ChunkSource | null> {
    try {
      await this.goOn(chat);
    } catch (error) {
      if (!isHoldfastError(error, "SESSION_BUSY")) throw error;
      // Another process is about to continue it.
      const view = await this.#sessions.read(chat);
      if (view?.interruption) return this.#follow(chat, view);
    }
    return this.running(chat, after);
  }

  /** A page that learns that the chat runs asks for the stream next. The answer may be over by then. */
  #promise(chat: string, { entries, running, interruption }: View): void {
    const current = running ?? interruption?.turn;
    const prompt = entries.find(({ turn }) => turn === current)?.id;
    if (prompt === undefined) return;
    this.#promised.set(chat, prompt);
    const forget = (): void => {
      if (this.#promised.get(chat) === prompt) this.#promised.delete(chat);
    };
    setTimeout(forget, PROMISED_MS).unref();
  }

  /** Stops the running answer, or gives up the one that waits or broke off. Durable when it resolves. */
  async stop(chat: string): Promise<void> {
    for (let isDecided = false; !isDecided; ) {
      // Between two turns it is not known yet what there is to stop.
      await this.#active.get(chat)?.running();
      isDecided = await this.#inOrder(chat, () => whileBusy(() => this.#stop(chat)));
    }
  }

  /** False: between two turns. */
  async #stop(chat: string): Promise<boolean> {
    const active = this.#active.get(chat);
    if (active) {
      if (active.current.isOver) return false;
      await active.session.turn?.abort({ by: BY_USER });
      return true;
    }
    const view = await this.#sessions.read(chat);
    if (view?.running != null) throw busy("so it was not stopped here");
    if (!view?.interruption || view.interruption.answered || isStopped(view.interruption)) return true;
    const session = await this.#sessions.open(chat);
    await this.#sessions.closingOnError(session, async () => {
      // Another server may have been faster.
      if (session.interruption && !session.interruption.answered) {
        const turn = await session.resumeTurn({ calls: () => "keep", draft: "keep" });
        await turn.abort({ by: BY_USER });
      }
      await session.close();
    });
    return true;
  }

  /** Nothing begins here any more. Answers end as the options say; the next server continues those it is handed. */
  async close({ handOver = false, withinMs = HAND_OVER_MS }: CloseOptions): Promise<void> {
    this.#sessions.isClosed = true;
    const late = new AbortController();
    const end = sleep(withinMs, undefined, { signal: late.signal }).catch(() => undefined);
    // A request that was accepted may be about to begin an answer.
    await Promise.race([Promise.allSettled(this.#last.values()), end]);
    late.abort();
    await Promise.all([...this.#active.values()].map((active) => active.close({ handOver, withinMs })));
  }

  async idle(): Promise<void> {
    while (this.#active.size > 0) await Promise.all([...this.#active.values()].map(({ closed }) => closed));
  }

  /** Records the prompt, once, and returns its answer. */
  async prompt(chat: string, prompt: Prompt, { isRegenerated = false } = {}): Promise<Reply> {
    if (prompt.id.startsWith(`${sessionIdOf(chat)}.`)) throw invalid("its id is that of an answer");
    const { answer, reply } = await this.#inOrderUntil(chat, () => this.#take(chat, prompt, isRegenerated));
    if (reply) return reply;
    const { isRepeated, waiting } = answer!;
    const found = await waiting;
    return { source: found ? found.read() : await this.#finished(chat, prompt.id), isRepeated };
  }

  async #take(chat: string, prompt: Prompt, isRegenerated: boolean): Promise<AcceptedPrompt | ActiveChat> {
    const key = `chat prompt ${prompt.id}`;
    const { id, message, metadata, content } = prompt;
    // The page's id of the message stands for it as long as the chat lives.
    const options = { id, key: id, ...(metadata ? { metadata } : {}) };
    const active = this.#active.get(chat);
    // It may have failed, and then goes on. One that was stopped may still be ending.
    const isEnded = active && (active.current.isOver || (isRegenerated && !active.session.turn));
    if (isEnded && active.current.prompt === id) return active;
    if (active) {
      const repeated = await isKnown(active.session.once(key, content, () => active.session.enqueue(message, options)));
      return { answer: { isRepeated: repeated, waiting: active.answerTo(id) } };
    }
    // While another server has the session, it may be recording this very prompt.
    const { reply, session, isNew } = await whileBusy(async () => {
      const known = await this.#sessions.known(chat, key, content);
      const reply = known && (await this.#repeated(chat, id, known, isRegenerated));
      return reply ? { reply } : { session: await this.#sessions.open(chat, { mayCreate: true }), isNew: !known };
    });
    if (!session) return { reply };
    return this.#sessions.closingOnError(session, async () => {
      const settings = await this.#parts.settingsOf(chat);
      // It waits for a turn that was handed over, and takes the place of one that was cut off.
      const isNext = isContinued(session, settings.tools);
      if (isNew && !isNext) await settle(session, this.#parts.options);
      const start = (): Promise<unknown> =>
        isNext
          ? session.enqueue(message, options)
          : session.startTurn(message, { ...options, model: modelIdOf(settings) });
      const repeated = await isKnown(session.once(key, content, start));
      const reply = repeated && (await this.#repeated(chat, id, session, isRegenerated));
      if (reply) {
        await session.close();
        return { reply };
      }
      if (!session.turn && !(await this.#continue(session, settings, isNext ? undefined : id))) {
        await session.close();
        return { reply: { source: await this.#finished(chat, id), isRepeated: repeated } };
      }
      const begun = this.#begin(chat, session, settings);
      return { answer: { isRepeated: repeated, waiting: begun.answerTo(id) } };
    });
  }

  /**
   * A known prompt whose answer is over or made elsewhere; null if it is to be made here. Throws a refusal for an
   * answer that cannot be made again.
   */
  async #repeated(
    chat: string,
    prompt: string,
    view: Reading<ModelMessage>,
    isRegenerated: boolean,
  ): Promise<Reply | null> {
    const entry = view.entries.find(({ id }) => id === prompt);
    if (view.running !== null && entry?.turn === view.running)
      return { source: await this.#follow(chat, view), isRepeated: true };
    const { interruption, queue } = view;
    if (queue.some(({ id }) => id === prompt)) return null;
    const isLast = interruption !== null && interruption.turn === entry?.turn;
    const { tools } = await this.#parts.settingsOf(chat);
    if (isRegenerated) {
      if (!isLast || interruption.answered) throw answerStays();
      if (isWaiting(view, tools)) throw waiting();
      return null;
    }
    if (isLast && !isOver(view, tools)) return null;
    return { source: await this.#finished(chat, prompt), isRepeated: true };
  }

  /** Goes on with the interrupted turn, or with the next prompt in the queue. Returns whether a turn is open. */
  async #continue(session: Session<ModelMessage>, { tools }: ChatSettings, queued?: string): Promise<boolean> {
    const item = session.queue.find(({ id }) => queued === undefined || id === queued);
    const { interruption } = session;
    if (interruption && !(queued !== undefined && item)) {
      if (interruption.answered) await session.completeTurn();
      else await session.resumeTurn({ calls: await this.#settledCalls(session, tools) });
    }
    if (!session.turn && item) {
      await settle(session, this.#parts.options);
      await session.startTurn(item);
    }
    return session.turn !== null;
  }

  /** Goes on with an interrupted turn. Throws a refusal if it waits for an answer. */
  async goOn(chat: string): Promise<void> {
    await this.#inOrderUntil(chat, async () => {
      const active = this.#active.get(chat);
      // One that was stopped may still be ending.
      if (active) return active.session.turn ? undefined : active;
      const settings = await this.#parts.settingsOf(chat);
      const session = await whileBusy(async () => {
        const isRunning = (await this.#sessions.read(chat))?.running != null;
        return isRunning ? null : this.#sessions.open(chat);
      });
      // It goes on, on another server.
      if (!session) return undefined;
      await this.#sessions.closingOnError(session, async () => {
        if (isWaiting(session, settings.tools)) throw waiting();
        if (await this.#continue(session, settings)) this.#begin(chat, session, settings);
        else await session.close();
      });
      return undefined;
    });
  }

  /** Takes the answers in an assistant's message, each once, and returns the rest of that message. */
  answers(chat: string, message: UIMessage): Promise<Reply> {
    // While another server has the session, it may be recording these very answers.
    return this.#inOrderUntil(chat, () => whileBusy(() => this.#takeAnswers(chat, message)));
  }

  async #takeAnswers(chat: string, message: UIMessage): Promise<Reply | ActiveChat> {
    const settings = await this.#parts.settingsOf(chat);
    const view = await this.#view(chat);
    if (!view) throw notFound();
    const turn = turnOf(view, message);
    const active = this.#active.get(chat);
    const verdict = await this.#judge(chat, view, turn, answersFrom(message, settings.tools), settings);
    const isCurrent = active?.current.turn === turn;
    if (active && (verdict.fresh.length > 0 || (isCurrent && active.current.isOver))) return active;
    if (isCurrent) return { source: await active.current.readFor(message), isRepeated: true };
    if (verdict.fresh.length > 0) {
      if (view.running !== null) throw busy("so the answer was not recorded here");
      const reply = await this.#record(chat, turn, message, verdict.fresh, settings);
      // Another server was faster: read what it has recorded.
      return reply ?? this.#takeAnswers(chat, message);
    }
    if (view.running === turn)
      return { source: await this.#follow(chat, view as Reading<ModelMessage>, message), isRepeated: true };
    const isBroken = view.interruption?.turn === turn && !isOver(view, settings.tools);
    if (isBroken) return this.#resumed(chat, message, settings);
    if (verdict.isStale)
      throw new Refusal(409, "NOT_WAITING", "Nothing waits for this answer any more. Load the chat again.");
    return { source: this.#rest(view, message, await this.#uiOptions(chat)), isRepeated: true };
  }

  async #resumed(chat: string, message: UIMessage, settings: ChatSettings): Promise<Reply> {
    const session = await this.#sessions.open(chat);
    return this.#sessions.closingOnError(session, async () => {
      if (await this.#continue(session, settings)) {
        const { current } = this.#begin(chat, session, settings);
        return { source: await current.readFor(message), isRepeated: false };
      }
      const source = this.#rest(session, message, await this.#uiOptions(chat));
      await session.close();
      return { source, isRepeated: true };
    });
  }

  /** Which answers are new. Throws a refusal if one contradicts an earlier answer: then none counts. */
  async #judge(
    chat: string,
    view: View,
    turn: number,
    answers: readonly PageAnswer[],
    { tools }: ChatSettings,
  ): Promise<{ readonly fresh: readonly PageAnswer[]; readonly isStale: boolean }> {
    const isNewest = (view.interruption?.turn ?? view.running) === turn;
    const waits = isNewest ? waitsOf(view, tools) : null;
    const fresh = answers.filter((answer) => waits && isAwaited(answer, waits));
    for (const { kind, toolName, answer } of fresh)
      if (kind === "output" && "value" in answer) await checkedOutput(tools, toolName, answer.value);
    const keys = new AnswerKeys(view.entries, turn, tools);
    let repeated = 0;
    for (const answer of answers) {
      // A reloaded page sends earlier outputs along, as their schemas made them: only decisions can be compared.
      if (fresh.includes(answer) || (fresh.length > 0 && answer.kind === "output")) continue;
      const key = keys.of(answer);
      try {
        if (key !== null && (await this.#parts.store.once(sessionIdOf(chat), key, answer.content))) repeated++;
      } catch (error) {
        if (isHoldfastError(error, "KEY_TAKEN")) throw alreadyAnswered(`The call of ${answer.toolName}`);
        throw error;
      }
    }
    return { fresh, isStale: fresh.length === 0 && answers.length > 0 && repeated === 0 };
  }

  /** Null if nothing waits for these answers any more. */
  async #record(
    chat: string,
    number: number,
    message: UIMessage,
    fresh: readonly PageAnswer[],
    settings: ChatSettings,
  ): Promise<Reply | null> {
    const session = await this.#sessions.open(chat);
    return this.#sessions.closingOnError(session, async () => {
      const waits = waitsOf(session, settings.tools);
      if (session.interruption?.turn !== number || !fresh.some((answer) => isAwaited(answer, waits))) {
        await session.close();
        return null;
      }
      const keys = new AnswerKeys(session.entries, number, settings.tools);
      const turn = await session.resumeTurn({ calls: await this.#settledCalls(session, settings.tools) });
      for (const answer of fresh)
        if (isAwaited(answer, waits)) await recordAnswer(session, turn, answer, keys.of(answer)!, waits, settings);
      const rest = waitsOf(session, settings.tools);
      if (rest.approvals.size + rest.outputs.size === 0) {
        const { current } = this.#begin(chat, session, settings);
        return { source: await current.readFor(message), isRepeated: false };
      }
      // The page runs a client-side tool as soon as it is approved.
      for (const { id, startedAt } of rest.outputs.values()) if (startedAt === undefined) await turn.toolStarted(id);
      await turn.suspend(suspension(rest));
      const source = this.#rest(session, message, await this.#uiOptions(chat));
      await session.close();
      return { source, isRepeated: false };
    });
  }

  /** What happens to the calls that are open. Throws TOOL_MISSING. */
  #settledCalls(session: Session<ModelMessage>, tools: ToolSet = {}) {
    const { options } = this.#parts;
    const policy = { ...chatPolicy(session, tools), tools: rulesFor(Object.keys(tools), options) };
    return settledCalls(session, undefined, policy, options);
  }

  #begin(chat: string, session: Session<ModelMessage>, settings: ChatSettings): ActiveChat {
    const active = new ActiveChat(
      { ...this.#parts, session, settings },
      {
        inOrder: (act) => this.#inOrder(chat, act),
        handOverQueue: () => this.#sessions.handOverQueue(chat),
        onClosed: () => this.#active.delete(chat),
      },
    );
    this.#active.set(chat, active);
    return active;
  }

  async #view(chat: string): Promise<View | null> {
    return this.#active.get(chat)?.session ?? (await this.#sessions.read(chat));
  }

  async #follow(chat: string, view: Reading<ModelMessage>, message?: UIMessage): Promise<ChunkSource> {
    const { store, onError } = this.#parts;
    const shown = message ? { shown: message.parts } : {};
    return followAnswer(view, { store, session: view.id, options: await this.#uiOptions(chat), onError, ...shown });
  }

  /** An answer that is over, as the stream that would have produced it. */
  async #finished(chat: string, prompt: string): Promise<ChunkSource> {
    const view = await this.#view(chat);
    if (!view) throw notFound();
    const options = await this.#uiOptions(chat);
    const isQueued = view.queue.some(({ id }) => id === prompt);
    const turn = isQueued ? null : view.entries.find(({ id }) => id === prompt)?.turn;
    const answer = shownIn(view, options).find(({ id, role }) => role === "assistant" && id === `${view.id}.${turn}`);
    const end = endOfAnswer(view, turn, answer, options, this.#parts.onError);
    return startingWith([...(answer ? uiChunks(answer) : []), end], null);
  }

  /** What the page lacks of a message that is over. */
  #rest(view: View, { id, parts }: UIMessage, options: UIMessagesOptions): ChunkSource {
    const answer = shownIn(view, options).find((one) => one.id === id);
    const changes = uiChanges(parts, answer?.parts ?? [], id);
    return startingWith([{ type: "start", messageId: id }, ...changes, finish(answer)], null);
  }

  async #uiOptions(chat: string): Promise<UIMessagesOptions> {
    const { tools } = await this.#parts.settingsOf(chat);
    const { options, onError } = this.#parts;
    return { tools, onError, sendReasoning: options.sendReasoning };
  }

  /** One request of a chat decides at a time. */
  #inOrder<T>(chat: string, act: () => Promise<T>): Promise<T> {
    const result = (this.#last.get(chat) ?? Promise.resolve()).then(act, act);
    const settled = result.then(
      () => undefined,
      () => undefined,
    );
    this.#last.set(chat, settled);
    void settled.then(() => {
      if (this.#last.get(chat) === settled) this.#last.delete(chat);
    });
    return result;
  }

  /** The same. An act that returns an active chat is tried again when that chat is closed. */
  async #inOrderUntil<T>(chat: string, act: () => Promise<T | ActiveChat>): Promise<T> {
    for (;;) {
      const found = await this.#inOrder(chat, act);
      if (!(found instanceof ActiveChat)) return found;
      await found.closed;
    }
  }
}

interface AcceptedPrompt {
  readonly reply?: Reply;
  readonly answer?: { readonly isRepeated: boolean; readonly waiting: ReturnType<ActiveChat["answerTo"]> };
}

/** Whether the prompt was recorded before: the session knows it even if its key was forgotten by `once`. */
async function isKnown(recorded: Promise<Once>): Promise<boolean> {
  try {
    return (await recorded).repeated;
  } catch (error) {
    if (isHoldfastError(error, "PROMPT_KNOWN")) return true;
    throw error;
  }
}

function modelIdOf({ model }: ChatSettings): string {
  return typeof model === "string" ? model : model.modelId;
}

/** The turn whose answer the page shows. */
function turnOf({ id }: View, message: UIMessage): number {
  const turn = Number(message.id.slice(id.length + 1));
  if (!message.id.startsWith(`${id}.`) || !Number.isInteger(turn))
    throw invalid("it answers a message of no turn here");
  return turn;
}
