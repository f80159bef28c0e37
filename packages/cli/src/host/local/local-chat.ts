import type { ModelMessage } from "ai";
import { isHoldfastError, type Queued, type Session, type Turn } from "holdfast";
import { estimateTokens } from "../../agent/compaction.ts";
import { runTurn, type TurnResult } from "../../agent/loop.ts";
import { type Approval, openApprovals } from "../../agent/open-calls.ts";
import type { AgentRuntime } from "../../agent/runtime.ts";
import type { Services } from "../../agent/services.ts";
import { createAgent } from "../../agent/subagent.ts";
import { CommandError, EXIT } from "../../exit.ts";
import type { ResolvedModel } from "../../models/resolve.ts";
import { APP } from "../../store/app.ts";
import type { Mode } from "../../tools/permission/mode.ts";
import { claimsShown } from "../../trust/claims.ts";
import type { SessionTrust } from "../../trust/trust.ts";
import { describeApprovals } from "../approval/approval-request.ts";
import { isAwaitingPerson, openQuestions, PermissionPrompts, UNDECIDED } from "../approval/permission-prompts.ts";
import { explainFailure, isStoreFailure } from "../failures.ts";
import type { ApprovalAnswer, Chat, ChatEvent, ChatState, PermissionAsk, PromptImage } from "../host.ts";
import { ActiveWork, HAND_OVER } from "./active-work.ts";
import { answerQuestion, getPermissionBelow, getPermissionHere, isWaitingBelow } from "./answer-questions.ts";
import { describeInterruption, firstState, messageText } from "./chat-state.ts";
import { ChatStateStore } from "./chat-state-store.ts";
import { handOverSession, isCutShort, leaveTurn } from "./hand-over.ts";
import { compactOnRequest, splitBeforePrompt } from "./history-edits.ts";
import { enqueueOnce, isCutOff, promptMessage } from "./prompt-message.ts";
import { completeAnsweredTurn, endTurn, resumeTurn } from "./turn-lifecycle.ts";

type Message = ModelMessage;

export interface ChatFacts {
  /** Created here, and still unused. */
  readonly isNew?: boolean;
  /** The model in the journal, if this user did not choose it. */
  readonly foreignModel?: string | null;
}

/** One chat in this process. It decides when turns start and end; the loop runs them, the journal records them. */
export class LocalChat implements Chat {
  readonly id: string;
  readonly #services: Services;
  readonly #onClosed: () => void | Promise<void>;
  readonly #states: ChatStateStore;
  readonly #prompts: PermissionPrompts;
  #session: Session<Message>;
  #agent: AgentRuntime;
  #model: ResolvedModel;
  #turn: Turn<Message> | null = null;
  /** The running turns, one after the other, until nothing is left to do. */
  readonly #work = new ActiveWork((isBusy) => this.#states.update({ isBusy }));
  /** Nothing can be recorded until the session is reopened. */
  #isBroken = false;
  #reopening: Promise<void> | null = null;
  /** How full the window was before the last compact, clear or rewind, for its undo. */
  #tokensBefore: number | null = null;
  /** Created here, and still unused. */
  #isUnused: boolean;
  #closing: Promise<void> | null = null;

  constructor(
    session: Session<Message>,
    model: ResolvedModel,
    services: Services,
    onClosed: () => void | Promise<void>,
    { isNew = false, foreignModel = null }: ChatFacts = {},
  ) {
    this.#isUnused = isNew;
    this.id = session.id;
    this.#session = session;
    this.#model = model;
    this.#services = services;
    this.#onClosed = onClosed;
    const cwd = services.trust.of(session.id).folder ?? process.cwd();
    const state = firstState(session, { cwd, model: model.name, maxTokens: model.windowTokens });
    this.#states = new ChatStateStore(state, () => this.#session);
    this.#prompts = new PermissionPrompts(this.#states);
    this.#agent = this.#createAgent(session);
    const claimed = claimsShown({ ...this.#agent.claims(), model: foreignModel });
    this.#states.update({ damage: [...state.damage, ...claimed] });
  }

  get state(): ChatState {
    return this.#states.state;
  }

  get #trust(): SessionTrust {
    return this.#services.trust.of(this.id);
  }

  #createAgent(session: Session<Message>): AgentRuntime {
    const { asks } = this.#services;
    return createAgent(session, this.#services, this.#states.agentEvents(), (below, turn, approvals, task) =>
      getPermissionBelow(this.#asked(below), turn, approvals, { task, asks, work: this.#work }),
    );
  }

  #asked(agent: AgentRuntime): Parameters<typeof answerQuestion>[0] {
    return { states: this.#states, prompts: this.#prompts, agent };
  }

  /** Loads what the last process left in flight and its tools' state. Completes a turn that only lacked its end. */
  async inspect(): Promise<void> {
    await completeAnsweredTurn(this.#session);
    const { interruption } = this.#session;
    this.#states.policy = await this.#agent.callPolicy(interruption?.calls ?? []);
    await this.#states.loadChildren(this.#services.store);
    const { account, window } = this.#states.state;
    this.#states.update({
      status: interruption ? "interrupted" : "idle",
      interruption: interruption && describeInterruption(interruption, account),
      // Prefer the provider's own count, once there is one.
      window: { ...window, usedTokens: window.usedTokens || estimateTokens(this.#session.messages) },
    });
  }

  /** Restores open questions of the last process (R7). Nothing is recorded until they are answered. */
  async restore(): Promise<void> {
    await this.inspect();
    const { interruption } = this.#session;
    if (!interruption || this.#services.asks === "nobody") return;
    const open = openQuestions(interruption, this.state.account, (name, input) => this.#agent.decide(name, input));
    if (open.length > 0) this.#askAgain(await describeApprovals(open, this.#agent));
    else if (await isWaitingBelow(this.#agent, this.#services.store)) await this.finish();
  }

  subscribe(listener: (event: ChatEvent) => void): () => void {
    return this.#states.subscribe(listener);
  }

  async settled(): Promise<void> {
    while (this.#work.finished && this.#states.state.asks.length === 0) {
      const { asked } = this.#prompts;
      await Promise.race([this.#work.finished, asked]);
    }
  }

  async prompt(text: string, images: readonly PromptImage[] = [], key?: string): Promise<"started" | "queued"> {
    const message: Message = promptMessage(text, images);
    await this.#ensureOpen();
    this.#isUnused = false;
    // Queue after waiting prompts: prompts are delivered in order (C9). One with a key may have been recorded before.
    if (key !== undefined || this.#work.finished || this.#session.queue.length > 0 || this.#isUndecided()) {
      const queued = await enqueueOnce(this.#session, message, key);
      if (typeof queued === "number") {
        return isCutOff(this.state, queued) ? this.finish().then(() => "started") : "started";
      }
      this.#work.isPaused = false;
      this.#states.emitRecorded({ type: "queued", id: queued.id, text });
      // If nothing is running, or the turn ended just now, nobody else would start it.
      if (this.#isUndecided()) this.#states.emit({ type: "notice", level: "warning", text: `Queued. ${UNDECIDED}` });
      else if (!this.#work.finished) await this.resumeQueue();
      return this.#session.queue.some(({ id }) => id === queued.id) ? "queued" : "started";
    }
    this.#work.isPaused = false;
    // The name its answers carry: otherwise each prompt looks like a model change and drops signed reasoning (R4).
    await this.#start(() => this.#session.startTurn(message, { model: this.#model.model.modelId }));
    return "started";
  }

  async withdraw(queued: string): Promise<void> {
    await this.#ensureOpen();
    await this.#session.dequeue(queued);
    this.#states.emitRecorded({ type: "dequeued", id: queued });
  }

  async finish({ processes = "wait" }: { readonly processes?: "wait" | "stop" } = {}): Promise<void> {
    await this.#ensureOpen();
    if (this.#work.finished)
      throw new CommandError(EXIT.usage, "TURN_OPEN", "A turn is running: there is nothing to finish.");
    const { interruption } = this.#session;
    if (!interruption)
      throw new CommandError(EXIT.failed, "NOTHING_TO_RESUME", "Nothing to finish: the last turn completed.");
    const goOn = (signal: AbortSignal) =>
      resumeTurn(this.#session, this.#agent, this.#states, { interruption, processes, signal });
    await this.#start(goOn, true);
  }

  leave(): void {
    this.#states.update(
      { status: this.#work.finished ? this.#states.state.status : "idle", interruption: null },
      { type: "changed" },
    );
  }

  async stop(by = "user"): Promise<void> {
    const { finished } = this.#work;
    if (!finished) return;
    this.#work.stop(by);
    this.#prompts.withdraw();
    await this.#turn?.abort({ by });
    await finished;
  }

  async resumeQueue(): Promise<void> {
    await this.#ensureOpen();
    if (this.#isUndecided()) throw new CommandError(EXIT.usage, "TURN_OPEN", UNDECIDED);
    this.#work.isPaused = false;
    const [next] = this.#session.queue;
    if (!this.#work.finished && next) await this.#start(() => this.#startQueued(next));
  }

  async answer(call: string, answer: ApprovalAnswer, reason?: string): Promise<void> {
    answerQuestion(this.#asked(this.#agent), call, answer, reason);
  }

  setMode(mode: Mode): void {
    this.#agent.mode = mode;
    this.#states.update({ mode }, { type: "changed" });
  }

  async setModel(name: string): Promise<void> {
    const model = await this.#services.model(name);
    await this.#ensureOpen();
    await this.#session.note("model", model.name);
    this.#model = model;
    const window = { ...this.#states.state.window, maxTokens: model.windowTokens };
    this.#states.update({ model: model.name, window }, { type: "changed" });
  }

  async compact(): Promise<void> {
    await this.#assertIdle();
    if (this.#session.messages.length === 0)
      throw new CommandError(EXIT.usage, "NOTHING_TO_COMPACT", "Nothing to compact: the conversation is empty.");
    // Prompts already queued keep waiting; a prompt that arrives meanwhile starts afterwards.
    this.#work.isPaused = true;
    await this.#start(async (signal) => {
      this.#states.update({ isCompacting: true }, { type: "compacting" });
      await this.#replace("compaction", () =>
        compactOnRequest(this.#session, this.#model, signal).finally(() =>
          this.#states.update({ isCompacting: false }),
        ),
      );
      return null;
    });
  }

  async clear(): Promise<void> {
    await this.#assertIdle();
    await this.#replace("clear", () => this.#session.replace([], { reason: "clear" }));
  }

  async undo(): Promise<void> {
    await this.#assertIdle();
    await this.#replace("undo", () => this.#session.undo());
  }

  async rewind(message: string): Promise<string> {
    await this.#assertIdle();
    const { kept, prompt } = splitBeforePrompt(this.#session, message);
    await this.#replace("rewind", () => this.#session.replace(kept, { reason: "rewind" }));
    return prompt;
  }

  async rename(title: string): Promise<void> {
    await this.#ensureOpen();
    this.#isUnused = false;
    await this.#session.rename(title);
    this.#states.emitRecorded({ type: "changed" });
  }

  close(): Promise<void> {
    this.#closing ??= this.#close("close", () => this.#turn?.abort({ by: "close" }));
    return this.#closing;
  }

  /** Closes the chat. The next process continues its turn (`handOverSession`), and then the queue. */
  handOver(withinMs: number, hurry?: AbortSignal): Promise<void> {
    const options = { withinMs, hurry, trust: this.#trust };
    this.#closing ??= this.#close(HAND_OVER, () => handOverSession(this.#session, this.#agent, options));
    return this.#closing;
  }

  async #close(by: string, leave: () => Promise<void> | undefined): Promise<void> {
    const { finished } = this.#work;
    const left = this.#isBroken ? undefined : leave();
    this.#work.stop(by);
    this.#prompts.withdraw();
    try {
      // Tools end first, and that is recorded. A store failure was already reported, or closing reports it.
      await Promise.allSettled([left, finished]);
      if (!this.#isBroken) await this.#session.close();
      // An unused session would only clutter the list.
      if (this.#isUnused) {
        await this.#services.store.delete(this.id);
        this.#services.trust.forget(this.id);
      }
    } finally {
      await this.#onClosed();
    }
  }

  /** Reopens the session after a store failure. Its records are intact, and the turn can be finished (P8). */
  async #ensureOpen(): Promise<void> {
    if (this.#closing) throw new CommandError(EXIT.usage, "SESSION_CLOSED", "This chat is closed.");
    if (!this.#isBroken) return;
    this.#reopening ??= this.#reopen().finally(() => {
      this.#reopening = null;
    });
    await this.#reopening;
  }

  async #reopen(): Promise<void> {
    await this.#work.finished;
    this.#session = await this.#services.store.resume<Message>(this.id, { app: APP });
    this.#agent = this.#createAgent(this.#session);
    this.#agent.mode = this.#states.state.mode;
    this.#isBroken = false;
    this.#states.refresh();
    await this.inspect();
    this.#states.update({ failure: null }, { type: "changed" });
  }

  /** Throws while a turn is running, or waits for a person. */
  async #assertIdle(): Promise<void> {
    await this.#ensureOpen();
    if (this.#work.finished) throw new CommandError(EXIT.usage, "TURN_OPEN", "A turn is running: stop it first.");
    if (this.#isUndecided()) throw new CommandError(EXIT.usage, "TURN_OPEN", UNDECIDED);
  }

  /** A turn waits for a person who has neither answered nor left it, so nothing may replace it. */
  #isUndecided(): boolean {
    const { interruption } = this.#session;
    const isShown = this.state.interruption !== null;
    return !this.#work.finished && interruption !== null && isShown && isAwaitingPerson(this.state.account);
  }

  /** Starts a turn, or work that must not run during one (`start` then returns null). Rejects if `start` does. */
  async #start(start: (stopped: AbortSignal) => Promise<Turn<Message> | null>, resumed = false): Promise<void> {
    this.#work.start();
    try {
      const turn = await start(this.#work.signal);
      void this.#runTurns(turn, resumed);
    } catch (error) {
      if (isStoreFailure(error)) await this.#breakOff(error);
      void this.#runTurns(null, false);
      throw error;
    }
  }

  async #startQueued(next: Queued<Message>): Promise<Turn<Message>> {
    const turn = await this.#session.startTurn(next, { model: this.#model.model.modelId });
    this.#states.emitRecorded({ type: "dequeued", id: next.id });
    return turn;
  }

  /** Runs this turn, then the queued ones. */
  async #runTurns(first: Turn<Message> | null, isResumed: boolean): Promise<void> {
    let turn = first;
    let resumed = isResumed;
    for (;;) {
      if (turn) await this.#runToEnd(turn, resumed);
      this.#turn = null;
      turn = null;
      resumed = false;
      const [next] = this.#session.queue;
      if (!next || this.#work.isPaused || this.#isBroken) break;
      this.#work.startNext();
      try {
        turn = await this.#startQueued(next);
      } catch (error) {
        await this.#failTurn(error);
      }
    }
    // Atomic with the check of the queue: a prompt queued later finds nothing running, and starts.
    this.#work.end();
  }

  async #runToEnd(first: Turn<Message>, resumed: boolean): Promise<void> {
    let turn = first;
    try {
      this.#trust.setHandedOver(null);
      this.#states.startTurn();
      this.#states.update({ status: "running", interruption: null, failure: null, canUndo: false });
      this.#states.emitRecorded({
        type: "turn.started",
        turn: turn.number,
        prompt: messageText(turn.prompt.message),
        ...(resumed ? { resumed: true as const } : {}),
      });
      for (;;) {
        await this.#makeStoppable(turn);
        // With the inputs that the tools would get, because the rules judge those.
        const waiting = openApprovals(this.#agent.durable.messages());
        const result: TurnResult =
          waiting.length > 0
            ? { kind: "waiting", approvals: waiting, calls: [] }
            : await runTurn(await this.#agent.prepareTurn(turn, this.#model));
        // The process was told to end, and the turn's record says so: do nothing more.
        if (this.#services.ending.aborted) await new Promise<never>(() => {});
        this.#states.update({ live: null, isCompacting: false });
        this.#states.refresh();
        if (result.kind === "handed-over" || isCutShort(result, turn))
          return await leaveTurn(this.#session, turn, this.#states);
        if (result.kind !== "waiting") {
          // Prompts queued behind a failed turn assumed that it would succeed.
          if (result.kind === "failed" || result.kind === "limit") this.#work.isPaused = true;
          const facts = { stoppedBy: this.#work.stoppedBy, model: this.#model.name, inspect: () => this.inspect() };
          await endTurn(this.#session, turn, result, this.#states, facts);
          return;
        }
        const next = await this.#getPermission(turn, result.approvals);
        if (!next) return;
        turn = next;
        this.#states.update({ status: "running" });
      }
    } catch (error) {
      if (isHoldfastError(error, "TURN_HANDED_OVER")) await leaveTurn(this.#session, turn, this.#states);
      else await this.#failTurn(error);
    }
  }

  /** From here on, `stop` finds the turn; an earlier stop takes effect now. */
  async #makeStoppable(turn: Turn<Message>): Promise<void> {
    this.#turn = turn;
    const by = this.#work.stoppedBy;
    if (by !== null && by !== HAND_OVER) await turn.abort({ by });
  }

  /** Null if nobody decided. */
  async #getPermission(turn: Turn<Message>, approvals: readonly Approval[]): Promise<Turn<Message> | null> {
    const goesOn = await getPermissionHere(this.#asked(this.#agent), turn, approvals, {
      asks: this.#services.asks,
      asking: () => {
        this.#turn = null;
        return !this.#work.signal.aborted;
      },
    });
    if (goesOn) {
      this.#states.refresh();
      return goesOn;
    }
    await this.inspect();
    const denied = this.#states.deniedIn(turn.number);
    this.#states.emitRecorded({ type: "turn.ended", outcome: "waiting", denied });
    return null;
  }

  /** Resumes the turn when all questions are answered; if they are withdrawn, the turn keeps waiting. */
  #askAgain(asks: readonly PermissionAsk[]): void {
    const asked = this.#start(async () => {
      if (!(await this.#prompts.askAhead(asks))) {
        await this.inspect();
        this.#states.emit({ type: "turn.ended", outcome: "waiting", denied: 0 });
        return null;
      }
      this.#states.update({ status: "running" }, { type: "changed" });
      return await this.#agent.resumeTurn();
    }, true);
    // Nobody awaits this: the chat's state reports the failure, as for a failed store.
    asked.catch((error: unknown) => {
      this.#prompts.forgetAhead();
      if (!isStoreFailure(error)) this.#states.update({ failure: explainFailure(error, this.#model.name) });
    });
  }

  /** The store failed: do not act on anything unrecorded. `finish` or a prompt reopens the session. */
  async #breakOff(error: unknown): Promise<void> {
    this.#isBroken = true;
    // Sub-agents that wait for a person would keep their sessions open.
    this.#prompts.withdraw();
    // A prompt that could not be recorded started no turn, so there is none to finish.
    const isOpen = this.#turn !== null || this.#session.turn !== null || this.#session.interruption !== null;
    try {
      await this.#session.close();
    } catch (second) {
      // Report the first failure; `resume` handles an end that could not be recorded.
      if (!isStoreFailure(second)) process.emitWarning(second as Error);
    }
    const failure = explainFailure(error, this.#model.name);
    this.#states.update(
      { status: isOpen ? "interrupted" : "idle", live: null, asks: [], isCompacting: false, failure },
      { type: "changed" },
    );
  }

  /** During a turn, or between two. */
  async #failTurn(error: unknown): Promise<void> {
    const denied = this.#states.deniedIn(this.#turn?.number ?? 0);
    await this.#breakOff(error);
    this.#states.emit({ type: "turn.ended", outcome: "failed", error: this.#states.state.failure!, denied });
  }

  /** Replaces the conversation, with the right figure for how full the window is. */
  async #replace(reason: "compaction" | "clear" | "rewind" | "undo", work: () => Promise<unknown>): Promise<void> {
    const { usedTokens: before } = this.#states.state.window;
    // What the provider counts beyond the messages: the instructions and the tools.
    const rest = Math.max(0, before - estimateTokens(this.#session.messages));
    await work();
    const restored = reason === "undo" ? this.#tokensBefore : null;
    this.#tokensBefore = reason === "undo" ? null : before;
    const { messages } = this.#session;
    const usedTokens = restored ?? (messages.length === 0 ? 0 : rest + estimateTokens(messages));
    this.#states.update({ window: { ...this.#states.state.window, usedTokens } });
    await this.inspect();
    this.#states.update({ canUndo: reason !== "undo", failure: null });
    this.#states.emitRecorded({ type: "replaced", reason, items: messages.length });
  }
}
