import type { ModelMessage } from "ai";
import type { Queued, Session, Turn } from "holdfast";
import { estimateTokens } from "../../agent/compaction.ts";
import { type Worked, work } from "../../agent/loop.ts";
import { type Approval, openApprovals, resume } from "../../agent/open-calls.ts";
import { Equipment } from "../../agent/runtime.ts";
import { APP, type Services } from "../../agent/services.ts";
import { CommandError, EXIT } from "../../exit.ts";
import type { ResolvedModel } from "../../models/resolve.ts";
import { claimsShown } from "../../trust/claims.ts";
import { approvalOf, type Question } from "../approval/approval-request.ts";
import { answerTo, approvedAmong, byRules, Permissions } from "../approval/permission-prompts.ts";
import { isWaiting, openQuestions, UNDECIDED } from "../approval/waiting.ts";
import type { Chat, ChatEvent, ChatState, PermissionAsk } from "../host.ts";
import { Shift } from "./active-work.ts";
import { firstState } from "./chat-state.ts";
import { Board } from "./chat-state-store.ts";
import { conclude } from "./concluding.ts";
import { failureShown, interruptionShown, isStoreFailure, textOf } from "./describe.ts";
import { sumUp } from "./history-edits.ts";
import { before } from "./rewinding.ts";
import { completeAnswered, takeUp } from "./turn-lifecycle.ts";

type Message = ModelMessage;

export interface ChatFacts {
  /** Begun here, and nothing has happened in it yet. */
  readonly isNew?: boolean;
  /** The model that the journal names and this user has not chosen. */
  readonly foreignModel?: string | null;
}

/** One conversation with the agent, in this process. It decides when turns begin and how they end; the loop works on them, the journal remembers them. */
export class LocalChat implements Chat {
  readonly id: string;
  readonly #services: Services;
  readonly #onClosed: () => void;
  readonly #board: Board;
  readonly #permissions: Permissions;
  #session: Session<Message>;
  #equipment: Equipment;
  #model: ResolvedModel;
  #turn: Turn<Message> | null = null;
  /** The turns at work, one after the other, until nothing is left to do. */
  readonly #shift = new Shift();
  /** Nothing can be recorded until the session is opened anew. */
  #broken = false;
  #mending: Promise<void> | null = null;
  /** Begun here, and nothing has happened in it yet. */
  #isUnused: boolean;
  #closing: Promise<void> | null = null;

  constructor(
    session: Session<Message>,
    model: ResolvedModel,
    services: Services,
    onClosed: () => void,
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
    this.#board = new Board(state, () => this.#session);
    this.#permissions = new Permissions(this.#board);
    this.#equipment = new Equipment(session, services, this.#board.told());
    const claimed = claimsShown({ ...this.#equipment.claims(), model: foreignModel });
    this.#board.change({ damage: [...state.damage, ...claimed] });
  }

  get state(): ChatState {
    return this.#board.state;
  }

  /** What the last process left in flight, with what can be found out about its tools. A turn that only lacked its end is completed. */
  async look(): Promise<void> {
    await completeAnswered(this.#session);
    const { interruption } = this.#session;
    const found = await this.#equipment.found(interruption?.calls ?? []);
    await this.#board.know(this.#services.store);
    const { usedTokens } = this.#board.state.window;
    this.#board.change({
      status: interruption ? "interrupted" : "idle",
      interruption: interruption && interruptionShown(interruption, found),
      // The provider's own count is better, once there is one.
      window: { ...this.#board.state.window, usedTokens: usedTokens || estimateTokens(this.#session.messages) },
    });
  }

  /** The state as the last process left it: a question that was open then is open again (R7). Nothing is recorded until it is answered. */
  async restore(): Promise<void> {
    await this.look();
    const { interruption } = this.#session;
    if (!interruption || this.#services.asks === "nobody") return;
    const open = openQuestions(interruption, (name, input) => this.#equipment.decide(name, input));
    if (open.length > 0) this.#askAgain(await this.#seen(open));
  }

  subscribe(listener: (event: ChatEvent) => void): () => void {
    return this.#board.subscribe(listener);
  }

  async settled(): Promise<void> {
    while (this.#shift.over && this.#board.state.asks.length === 0) {
      const { asked } = this.#permissions;
      await Promise.race([this.#shift.over, asked]);
    }
  }

  async prompt(text: string): Promise<"started" | "queued"> {
    const message: Message = { role: "user", content: text };
    await this.#whole();
    this.#isUnused = false;
    this.#shift.isPaused = false;
    // Behind those that wait already: prompts are delivered in their order (C9).
    if (this.#shift.over || this.#session.queue.length > 0 || this.#isUndecided()) {
      const { id } = await this.#session.enqueue(message);
      this.#board.record({ type: "queued", id, text });
      // Nothing runs, or it was the last moment of the turn that ran: nobody else would begin it.
      if (this.#isUndecided()) this.#board.tell({ type: "notice", level: "warning", text: `Queued. ${UNDECIDED}` });
      else if (!this.#shift.over) await this.resumeQueue();
      return "queued";
    }
    // Named as its answers name it: else every prompt would look like a change of the model, and signed reasoning be left out (R4).
    await this.#begin(() => this.#session.startTurn(message, { model: this.#model.model.modelId }));
    return "started";
  }

  async withdraw(queued: string): Promise<void> {
    await this.#whole();
    await this.#session.dequeue(queued);
    this.#board.record({ type: "dequeued", id: queued });
  }

  async finish({ processes = "wait" }: { readonly processes?: "wait" | "stop" } = {}): Promise<void> {
    await this.#whole();
    if (this.#shift.over)
      throw new CommandError(EXIT.usage, "TURN_OPEN", "A turn is running: there is nothing to finish.");
    const { interruption } = this.#session;
    if (!interruption)
      throw new CommandError(EXIT.failed, "NOTHING_TO_RESUME", "Nothing to finish: the last turn completed.");
    const goOn = (signal: AbortSignal) =>
      takeUp(this.#session, this.#equipment, this.#board, { interruption, processes, signal });
    await this.#begin(goOn, true);
  }

  leave(): void {
    this.#board.change(
      { status: this.#shift.over ? this.#board.state.status : "idle", interruption: null },
      { type: "changed" },
    );
  }

  async stop(by = "user"): Promise<void> {
    const { over } = this.#shift;
    if (!over) return;
    this.#shift.stop(by);
    this.#permissions.withdraw();
    await this.#turn?.abort({ by });
    await over;
  }

  async resumeQueue(): Promise<void> {
    await this.#whole();
    if (this.#isUndecided()) throw new CommandError(EXIT.usage, "TURN_OPEN", UNDECIDED);
    this.#shift.isPaused = false;
    const [next] = this.#session.queue;
    if (!this.#shift.over && next) await this.#begin(() => this.#startQueued(next));
  }

  async answer(call: string, word: "allow" | "always" | "deny", reason?: string): Promise<void> {
    const ask = this.#board.state.asks.find((one) => one.call === call);
    if (!ask) throw new CommandError(EXIT.usage, "CALL_UNKNOWN", "That call does not wait for an answer.");
    const unkept = word === "always" ? this.#equipment.allow(ask.rule) : null;
    if (unkept !== null) {
      const text = `That is allowed until you leave, and asked for again then: it could not be written down (${unkept}).`;
      this.#board.tell({ type: "notice", level: "warning", text });
    }
    this.#permissions.answer(ask, word !== "deny", "user", reason);
    if (word !== "always") return;
    // The rule speaks for others of its kind too.
    for (const other of this.#board.state.asks) {
      if (this.#equipment.decide(other.name, other.input).verdict === "allow")
        this.#permissions.answer(other, true, "rules");
    }
  }

  async setModel(name: string): Promise<void> {
    const model = await this.#services.model(name);
    await this.#whole();
    await this.#session.note("model", model.name);
    this.#model = model;
    const window = { ...this.#board.state.window, maxTokens: model.windowTokens };
    this.#board.change({ model: model.name, window }, { type: "changed" });
  }

  async compact(): Promise<void> {
    await this.#between();
    if (this.#session.messages.length === 0)
      throw new CommandError(EXIT.usage, "NOTHING_TO_COMPACT", "Nothing has been said yet that could be summed up.");
    // What is queued already waits on; a prompt that comes meanwhile is begun behind it.
    this.#shift.isPaused = true;
    await this.#begin(async (signal) => {
      this.#board.change({ isCompacting: true }, { type: "compacting" });
      await sumUp(this.#session, this.#model, signal).finally(() => this.#board.change({ isCompacting: false }));
      await this.#replaced("compaction");
      return null;
    });
  }

  async clear(): Promise<void> {
    await this.#between();
    await this.#session.replace([], { reason: "clear" });
    await this.#replaced("clear");
  }

  async undo(): Promise<void> {
    await this.#between();
    await this.#session.undo();
    await this.#replaced("undo");
  }

  async rewind(message: string): Promise<string> {
    await this.#between();
    const { kept, prompt } = before(this.#session, message);
    await this.#session.replace(kept, { reason: "rewind" });
    await this.#replaced("rewind");
    return prompt;
  }

  async rename(title: string): Promise<void> {
    await this.#whole();
    this.#isUnused = false;
    await this.#session.rename(title);
    this.#board.record({ type: "changed" });
  }

  close(): Promise<void> {
    this.#closing ??= this.#close();
    return this.#closing;
  }

  async #close(): Promise<void> {
    const { over } = this.#shift;
    this.#shift.stop("close");
    this.#permissions.withdraw();
    try {
      // Its tools come to their ends first, and those are recorded. What a failed store could not record is told already, or by its close.
      await Promise.allSettled([this.#turn?.abort({ by: "close" }), over]);
      if (!this.#broken) await this.#session.close();
      // Nobody has said anything in it: it would only be in the way.
      if (this.#isUnused) {
        await this.#services.store.delete(this.id);
        this.#services.trust.forget(this.id);
      }
    } finally {
      this.#onClosed();
    }
  }

  /** Opens the session anew if the store had failed: what was recorded is there, and the turn that was cut off can be finished (P8). */
  async #whole(): Promise<void> {
    if (this.#closing) throw new CommandError(EXIT.usage, "SESSION_CLOSED", "This conversation was closed here.");
    if (!this.#broken) return;
    this.#mending ??= this.#mend().finally(() => {
      this.#mending = null;
    });
    await this.#mending;
  }

  async #mend(): Promise<void> {
    await this.#shift.over;
    this.#session = await this.#services.store.resume<Message>(this.id, { app: APP, intents: true });
    this.#equipment = new Equipment(this.#session, this.#services, this.#board.told());
    this.#broken = false;
    this.#board.refresh();
    await this.look();
    this.#board.change({ failure: null }, { type: "changed" });
  }

  /** For what cannot be done while a turn runs. */
  async #between(): Promise<void> {
    await this.#whole();
    if (this.#shift.over) throw new CommandError(EXIT.usage, "TURN_OPEN", "A turn is running: stop it first.");
    if (this.#isUndecided()) throw new CommandError(EXIT.usage, "TURN_OPEN", UNDECIDED);
  }

  /** A turn waits for a person who has neither answered nor left it: nothing else may take its place. */
  #isUndecided(): boolean {
    const { interruption } = this.#session;
    return !this.#shift.over && interruption !== null && this.state.interruption !== null && isWaiting(interruption);
  }

  /** Begins a turn, or does what must not happen beside one (then `start` answers null). Rejects with what `start` says. */
  async #begin(start: (stopped: AbortSignal) => Promise<Turn<Message> | null>, resumed = false): Promise<void> {
    this.#shift.begin();
    try {
      const turn = await start(this.#shift.signal);
      void this.#workOn(turn, resumed);
    } catch (error) {
      if (isStoreFailure(error)) await this.#breakOff(error);
      void this.#workOn(null, false);
      throw error;
    }
  }

  async #startQueued(next: Queued<Message>): Promise<Turn<Message>> {
    const turn = await this.#session.startTurn(next, { model: this.#model.model.modelId });
    this.#board.record({ type: "dequeued", id: next.id });
    return turn;
  }

  /** Works on this turn, and on those that are queued behind it. */
  async #workOn(first: Turn<Message> | null, isResumed: boolean): Promise<void> {
    let turn = first;
    let resumed = isResumed;
    for (;;) {
      if (turn) await this.#toItsEnd(turn, resumed);
      this.#turn = null;
      turn = null;
      resumed = false;
      const [next] = this.#session.queue;
      if (!next || this.#shift.isPaused || this.#broken) break;
      this.#shift.next();
      try {
        turn = await this.#startQueued(next);
      } catch (error) {
        await this.#brokenOff(error);
      }
    }
    // At one instant with the look at the queue: who queues a prompt after it sees that nothing runs, and begins it.
    this.#shift.end();
  }

  async #toItsEnd(first: Turn<Message>, resumed: boolean): Promise<void> {
    let turn = first;
    try {
      this.#board.begin();
      this.#board.change({ status: "running", interruption: null, failure: null, canUndo: false });
      this.#board.record({
        type: "turn.started",
        turn: turn.number,
        prompt: textOf(turn.prompt.message),
        ...(resumed ? { resumed: true as const } : {}),
      });
      for (;;) {
        await this.#take(turn);
        // With the inputs that the tools would get: the rules decide on those.
        const waiting = openApprovals(this.#equipment.durable.messages());
        const worked: Worked =
          waiting.length > 0
            ? { kind: "waiting", approvals: waiting, calls: [] }
            : await work(await this.#equipment.work(turn, this.#model));
        // The process was told to end, which is recorded, and its turn with it: nothing more is done in the time that is left.
        if (this.#services.ending.aborted) await new Promise<never>(() => {});
        this.#board.change({ live: null, isCompacting: false });
        this.#board.refresh();
        if (worked.kind !== "waiting") {
          // What is queued behind a failure was meant to follow its success.
          if (worked.kind === "failed" || worked.kind === "limit") this.#shift.isPaused = true;
          const facts = { stoppedBy: this.#shift.stoppedBy, model: this.#model.name, look: () => this.look() };
          await conclude(this.#session, turn, worked, this.#board, facts);
          return;
        }
        const next = await this.#permitted(turn, worked.approvals);
        if (!next) return;
        turn = next;
        this.#board.change({ status: "running" });
      }
    } catch (error) {
      await this.#brokenOff(error);
    }
  }

  /** From here on `stop` finds it; one that came before stops it now. */
  async #take(turn: Turn<Message>): Promise<void> {
    this.#turn = turn;
    const by = this.#shift.stoppedBy;
    if (by !== null) await turn.abort({ by });
  }

  /** A person decides on each of the calls; the turn waits, if need be until another process goes on with it (R7, C37). Null if nobody did. */
  async #permitted(turn: Turn<Message>, approvals: readonly Approval[]): Promise<Turn<Message> | null> {
    const decide = (name: string, input: unknown) => this.#equipment.decide(name, input);
    const { words, undecided: open, denied } = byRules(approvals, decide, this.#services.asks);
    const undecided = this.#permissions.withoutAnswered(open, words);
    for (const { call, decision } of denied) {
      this.#board.told().denied(call, decision);
      this.#board.tell({ type: "permission.answered", call: call.toolCallId, allowed: false, by: "rules" });
    }
    if (undecided.length > 0) {
      const answers = await this.#answers(turn, await this.#seen(undecided));
      if (!answers) {
        await this.look();
        this.#board.record({ type: "turn.ended", outcome: "waiting", denied: this.#board.deniedIn(turn.number) });
        return null;
      }
      for (const [call, word] of answers) words.set(call, word);
    }
    const goesOn = undecided.length > 0 ? await this.#session.resumeTurn({ calls: () => "keep" }) : turn;
    for (const { toolCallId, input } of approvals)
      if (words.get(toolCallId)?.approved) this.#equipment.approve(goesOn, toolCallId, input);
    // Before the answer: an approval without what it is for would allow nothing.
    await this.#equipment.approved.record(approvedAmong(words));
    await goesOn.append(answerTo(approvals, words));
    this.#board.refresh();
    return goesOn;
  }

  /** With what the calls would do now, for the person who decides. */
  async #seen(questions: readonly Question[]): Promise<PermissionAsk[]> {
    const { approved, cwd } = this.#equipment;
    const asks: PermissionAsk[] = [];
    for (const question of questions) asks.push(approvalOf(question, cwd, await approved.look(question)));
    return asks;
  }

  /** The turn is taken up when all of them are answered; withdrawn, it waits on. */
  #askAgain(asks: readonly PermissionAsk[]): void {
    const asked = this.#begin(async () => {
      if (!(await this.#permissions.askAhead(asks))) {
        await this.look();
        this.#board.tell({ type: "turn.ended", outcome: "waiting", denied: 0 });
        return null;
      }
      this.#board.change({ status: "running" }, { type: "changed" });
      return await resume(this.#session, await this.#equipment.know(this.#session.interruption?.calls ?? []));
    }, true);
    // Nobody waits for this: the chat tells of it by its state, as it does of a failed store.
    asked.catch((error: unknown) => {
      this.#permissions.forgetAhead();
      if (!isStoreFailure(error)) this.#board.change({ failure: failureShown(error, this.#model.name) });
    });
  }

  /** Null if nobody is to be asked any more. */
  async #answers(turn: Turn<Message>, asks: readonly PermissionAsk[]): ReturnType<Permissions["ask"]> {
    await turn.suspend({ reason: "permission", calls: asks.map(({ call }) => call) });
    this.#turn = null;
    return this.#shift.signal.aborted ? null : this.#permissions.ask(asks);
  }

  /** The store failed: nothing more is done on the strength of what could not be recorded. `finish` or a prompt opens the session anew. */
  async #breakOff(error: unknown): Promise<void> {
    this.#broken = true;
    // A prompt that could not be recorded began no turn: there is none to be finished.
    const isOpen = this.#turn !== null || this.#session.turn !== null || this.#session.interruption !== null;
    try {
      await this.#session.close();
    } catch (second) {
      // The first failure is the one to tell of; that the end could not be recorded is what `resume` is made for.
      if (!isStoreFailure(second)) process.emitWarning(second as Error);
    }
    const failure = failureShown(error, this.#model.name);
    this.#board.change(
      { status: isOpen ? "interrupted" : "idle", live: null, asks: [], isCompacting: false, failure },
      { type: "changed" },
    );
  }

  /** In the middle of a turn, or between two. */
  async #brokenOff(error: unknown): Promise<void> {
    const denied = this.#board.deniedIn(this.#turn?.number ?? 0);
    await this.#breakOff(error);
    this.#board.tell({ type: "turn.ended", outcome: "failed", error: this.#board.state.failure!, denied });
  }

  async #replaced(reason: "compaction" | "clear" | "rewind" | "undo"): Promise<void> {
    // What the provider counted was another conversation.
    this.#board.change({ window: { ...this.#board.state.window, usedTokens: 0 } });
    await this.look();
    this.#board.change({ canUndo: reason !== "undo", failure: null });
    this.#board.record({ type: "replaced", reason, items: this.#session.messages.length });
  }
}
