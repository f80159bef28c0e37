import type { ModelMessage } from "ai";
import type { Queued, Session, Turn } from "holdfast";
import { compact, estimateTokens } from "../agent/compaction.ts";
import { Equipment } from "../agent/equipment.ts";
import { type Worked, work } from "../agent/loop.ts";
import { type Approval, openApprovals, resume } from "../agent/reopened.ts";
import { CommandError, EXIT } from "../exit.ts";
import type { ResolvedModel } from "../models/resolve.ts";
import { stopGroup, waitFor } from "../tools/processes.ts";
import { Board } from "./board.ts";
import { firstState } from "./chat-state.ts";
import type { Chat, ChatEvent, ChatState, PermissionAsk } from "./host.ts";
import { Permissions } from "./permissions.ts";
import { APP, type Services } from "./services.ts";
import { failureShown, interruptionShown, isStoreFailure, textOf } from "./shown.ts";

type Message = ModelMessage;

/** One conversation with the agent, in this process. It decides when turns begin and how they end; the loop works on them, the journal remembers them. */
export class LocalChat implements Chat {
  readonly id: string;
  readonly #services: Services;
  readonly #onClosed: () => void;
  readonly #board: Board;
  readonly #permissions = new Permissions();
  #session: Session<Message>;
  #equipment: Equipment;
  #model: ResolvedModel;
  #turn: Turn<Message> | null = null;
  /** The turns at work, one after the other, until nothing is left to do. */
  #work: Promise<void> | null = null;
  /** Why nothing can be recorded until the session is opened anew. */
  #broken = false;
  #isPaused = false;
  #closing: Promise<void> | null = null;

  constructor(session: Session<Message>, model: ResolvedModel, services: Services, onClosed: () => void) {
    this.id = session.id;
    this.#session = session;
    this.#model = model;
    this.#services = services;
    this.#onClosed = onClosed;
    this.#board = new Board(firstState(session, model.name, model.windowTokens), () => this.#session);
    this.#equipment = new Equipment(session, services, this.#board.told());
  }

  get state(): ChatState {
    return this.#board.state;
  }

  /** What the last process left in flight, with what can be found out about its tools. */
  async look(): Promise<void> {
    const { interruption } = this.#session;
    const commands = await this.#equipment.commands(interruption?.calls ?? []);
    const usedTokens = estimateTokens(this.#session.messages);
    this.#board.change({
      status: interruption ? "interrupted" : "idle",
      interruption: interruption && interruptionShown(interruption, commands),
      window: { ...this.#board.state.window, usedTokens },
    });
  }

  subscribe(listener: (event: ChatEvent) => void): () => void {
    return this.#board.subscribe(listener);
  }

  async settled(): Promise<void> {
    while (this.#work && this.#board.state.asks.length === 0) {
      const { asked } = this.#permissions;
      await Promise.race([this.#work, asked]);
    }
  }

  async prompt(text: string): Promise<"started" | "queued"> {
    const message: Message = { role: "user", content: text };
    await this.#whole();
    this.#isPaused = false;
    // Behind those that wait already: prompts are delivered in their order (C9).
    if (this.#work || this.#session.queue.length > 0) {
      const { id } = await this.#session.enqueue(message);
      this.#board.record({ type: "queued", id, text });
      // Nothing runs, or it was the last moment of the turn that ran: nobody else would begin it.
      if (!this.#work) await this.resumeQueue();
      return "queued";
    }
    await this.#begin(() => this.#session.startTurn(message, { model: this.#model.name }));
    return "started";
  }

  async withdraw(queued: string): Promise<void> {
    await this.#whole();
    await this.#session.dequeue(queued);
    this.#board.record({ type: "dequeued", id: queued });
  }

  async finish({ processes = "wait" }: { readonly processes?: "wait" | "stop" } = {}): Promise<void> {
    await this.#whole();
    if (this.#work) throw new CommandError(EXIT.usage, "TURN_OPEN", "A turn is running: there is nothing to finish.");
    const { interruption } = this.#session;
    if (!interruption)
      throw new CommandError(
        EXIT.failed,
        "NOTHING_TO_RESUME",
        "The last turn was completed: there is nothing to finish.",
      );
    await this.#begin(async () => {
      const commands = await this.#equipment.commands(interruption.calls);
      for (const { id, process } of interruption.calls) {
        if (!process || !commands.get(id)?.running) continue;
        if (processes === "stop") await stopGroup(process);
        else {
          this.#board.tell({
            type: "notice",
            level: "info",
            text: `Waiting for the process ${process.pid}, which outlived its agent.`,
          });
          await waitFor(this.#equipment.outputs, id, process);
        }
      }
      return resume(this.#session, await this.#equipment.know(interruption.calls));
    }, true);
  }

  leave(): void {
    this.#board.change(
      { status: this.#work ? this.#board.state.status : "idle", interruption: null },
      { type: "changed" },
    );
  }

  async stop(by = "user"): Promise<void> {
    if (!this.#work) return;
    this.#isPaused = true;
    this.#permissions.withdraw();
    await this.#turn?.abort({ by });
    await this.#work;
  }

  async resumeQueue(): Promise<void> {
    await this.#whole();
    this.#isPaused = false;
    const [next] = this.#session.queue;
    if (!this.#work && next) await this.#begin(() => this.#startQueued(next));
  }

  async answer(call: string, word: "allow" | "always" | "deny", reason?: string): Promise<void> {
    const ask = this.#board.state.asks.find((one) => one.call === call);
    if (!ask) throw new CommandError(EXIT.usage, "CALL_UNKNOWN", "That call does not wait for an answer.");
    if (word === "always") await this.#equipment.allow(ask.rule);
    const asks = this.#board.state.asks.filter((one) => one !== ask);
    const isAllowed = word !== "deny";
    this.#board.change({ asks }, { type: "permission.answered", call, allowed: isAllowed, by: "user" });
    this.#permissions.answer(call, isAllowed, reason);
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
    await compact(this.#session, this.#model);
    this.#replaced("compaction");
  }

  async clear(): Promise<void> {
    await this.#between();
    await this.#session.replace([], { reason: "clear" });
    this.#replaced("clear");
  }

  async undo(): Promise<void> {
    await this.#between();
    await this.#session.undo();
    this.#replaced("undo");
  }

  async rewind(message: string): Promise<string> {
    await this.#between();
    const { entries } = this.#session;
    const at = entries.findIndex(({ id }) => id === message);
    const entry = entries[at];
    if (entry?.message.role !== "user" || entry.synthetic)
      throw new CommandError(EXIT.usage, "MESSAGE_UNKNOWN", "Only a prompt of this conversation can be gone back to.");
    const kept = entries.slice(0, at).filter((one) => one.replacedBy === undefined);
    await this.#session.replace(kept, { reason: "rewind" });
    this.#replaced("rewind");
    return textOf(entry.message);
  }

  async rename(title: string): Promise<void> {
    await this.#whole();
    await this.#session.rename(title);
    this.#board.record({ type: "changed" });
  }

  close(): Promise<void> {
    this.#closing ??= this.#close();
    return this.#closing;
  }

  async #close(): Promise<void> {
    this.#isPaused = true;
    this.#permissions.withdraw();
    const isEmpty = this.#session.entries.length === 0 && this.#session.queue.length === 0 && !this.#turn;
    try {
      await this.#session.close();
      await this.#work;
      // Nobody has said anything in it: it would only be in the way.
      if (isEmpty && !this.#session.attributes.forkedFrom) await this.#services.store.delete(this.id);
    } finally {
      this.#onClosed();
    }
  }

  /** Opens the session anew if the store had failed: what was recorded is there, and the turn that was cut off can be finished (P8). */
  async #whole(): Promise<void> {
    if (!this.#broken) return;
    await this.#work;
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
    if (this.#work) throw new CommandError(EXIT.usage, "TURN_OPEN", "A turn is running: stop it first.");
  }

  async #begin(start: () => Promise<Turn<Message>>, resumed = false): Promise<void> {
    const { promise: done, resolve: end } = Promise.withResolvers<void>();
    this.#work = done;
    const finished = () => {
      this.#work = null;
      end();
    };
    try {
      const turn = await start();
      void this.#workOn(turn, resumed).finally(finished);
    } catch (error) {
      finished();
      if (isStoreFailure(error)) await this.#breakOff(error);
      throw error;
    }
  }

  #startQueued(next: Queued<Message>): Promise<Turn<Message>> {
    this.#board.tell({ type: "dequeued", id: next.id });
    return this.#session.startTurn(next, { model: this.#model.name });
  }

  /** Works on this turn, and on those that are queued behind it. */
  async #workOn(first: Turn<Message>, isResumed: boolean): Promise<void> {
    let turn: Turn<Message> | null = first;
    let resumed = isResumed;
    while (turn) {
      this.#turn = turn;
      this.#board.change({ status: "running", interruption: null, failure: null, canUndo: false });
      this.#board.record({
        type: "turn.started",
        turn: turn.number,
        prompt: textOf(turn.prompt.message),
        ...(resumed ? { resumed: true as const } : {}),
      });
      const isOver = await this.#toItsEnd(turn);
      this.#turn = null;
      turn = null;
      resumed = false;
      const [next] = this.#session.queue;
      if (isOver && next && !this.#isPaused && !this.#broken) {
        try {
          turn = await this.#startQueued(next);
        } catch (error) {
          await this.#breakOff(error);
        }
      }
    }
  }

  /** True if the turn completed. */
  async #toItsEnd(first: Turn<Message>): Promise<boolean> {
    let turn = first;
    try {
      for (;;) {
        const waiting = openApprovals(this.#session.messages);
        const worked: Worked =
          waiting.length > 0
            ? { kind: "waiting", approvals: waiting }
            : await work(await this.#equipment.work(turn, this.#model), turn);
        this.#board.change({ live: null });
        this.#board.refresh();
        if (worked.kind !== "waiting") return await this.#conclude(turn, worked);
        const next = await this.#permitted(turn, worked.approvals);
        if (!next) return false;
        turn = next;
        this.#turn = turn;
        this.#board.change({ status: "running" });
      }
    } catch (error) {
      await this.#breakOff(error);
      return false;
    }
  }

  async #conclude(turn: Turn<Message>, worked: Exclude<Worked, { kind: "waiting" }>): Promise<boolean> {
    const denied = this.#deniedIn(turn.number);
    switch (worked.kind) {
      case "completed":
        await turn.end();
        this.#board.change({ status: "idle" });
        this.#board.record({ type: "turn.ended", outcome: "completed", denied });
        return true;
      case "aborted": {
        // `stop` has recorded it; if something else fired the signal, this does.
        await turn.abort({ by: "user" });
        const how = this.#session.interruption?.how;
        this.#board.change({ status: "idle" });
        this.#board.record({
          type: "turn.ended",
          outcome: "aborted",
          denied,
          ...(how?.kind === "aborted" ? { by: how.by } : {}),
        });
        return false;
      }
      default: {
        const error =
          worked.kind === "limit"
            ? new CommandError(
                EXIT.failed,
                "STEPS",
                `The turn was stopped after ${worked.steps} steps. What was done is recorded: ask it to go on, if it was on its way.`,
              )
            : worked.error;
        if (isStoreFailure(error)) throw error;
        const failure = failureShown(error, this.#model.name);
        await turn.fail(failure.message);
        this.#board.change({ status: "interrupted", failure });
        await this.look();
        this.#board.record({ type: "turn.ended", outcome: "failed", error: failure, denied });
        return false;
      }
    }
  }

  /** A person decides on each of the calls; the turn waits, if need be until another process goes on with it (R7, C37). Null if nobody did. */
  async #permitted(turn: Turn<Message>, approvals: readonly Approval[]): Promise<Turn<Message> | null> {
    const undecided: PermissionAsk[] = [];
    const words = new Map<string, { readonly approved: boolean; readonly reason?: string }>();
    for (const { toolCallId: call, toolName: name, input } of approvals) {
      const { verdict, suggestion: rule, summary, denial } = this.#equipment.decide(name, input);
      if (verdict === "allow") words.set(call, { approved: true });
      else if (verdict === "deny" || this.#services.asks === "nobody") {
        words.set(call, { approved: false, reason: denial });
        this.#board.tell({ type: "permission.answered", call, allowed: false, by: "rules" });
      } else undecided.push({ call, name, input, summary, rule });
    }
    if (undecided.length > 0) {
      await turn.suspend({ reason: "permission", calls: undecided.map(({ call }) => call) });
      this.#turn = null;
      this.#board.change({ status: "waiting", asks: undecided });
      this.#board.refresh();
      // Before anybody is told: the answer may come at once.
      const answered = this.#permissions.ask(undecided.map(({ call }) => call));
      for (const ask of undecided) this.#board.tell({ type: "permission.asked", ask });
      const answers = await answered;
      this.#board.change({ asks: [] });
      if (!answers) {
        this.#board.change({ status: "interrupted" });
        await this.look();
        this.#board.record({ type: "turn.ended", outcome: "waiting", denied: this.#deniedIn(turn.number) });
        return null;
      }
      for (const [call, word] of answers) words.set(call, word);
    }
    const goesOn = undecided.length > 0 ? await this.#session.resumeTurn({ calls: () => "keep" }) : turn;
    const content = approvals.map(({ approvalId, toolCallId }) => {
      const { approved, reason } = words.get(toolCallId)!;
      return { type: "tool-approval-response" as const, approvalId, approved, ...(reason ? { reason } : {}) };
    });
    await goesOn.append({ role: "tool", content });
    this.#board.refresh();
    return goesOn;
  }

  /** The store failed: nothing more is done on the strength of what could not be recorded. `finish` or a prompt opens the session anew. */
  async #breakOff(error: unknown): Promise<void> {
    const failure = failureShown(error, this.#model.name);
    this.#broken = true;
    const number = this.#turn?.number ?? 0;
    try {
      await this.#session.close();
    } catch (second) {
      // The first failure is the one to tell of; that the end could not be recorded is what `resume` is made for.
      if (!isStoreFailure(second)) throw second;
    }
    this.#board.change({ status: "interrupted", live: null, asks: [], failure });
    this.#board.tell({ type: "turn.ended", outcome: "failed", error: failure, denied: this.#deniedIn(number) });
  }

  #deniedIn(turn: number): number {
    const isDenied = (item: ChatState["items"][number]): boolean =>
      item.kind === "call" && item.turn === turn && item.state === "denied";
    return this.#board.state.items.filter(isDenied).length;
  }

  #replaced(reason: "compaction" | "clear" | "rewind" | "undo"): void {
    const usedTokens = estimateTokens(this.#session.messages);
    this.#board.change({
      canUndo: reason !== "undo",
      interruption: null,
      window: { ...this.#board.state.window, usedTokens },
    });
    this.#board.record({ type: "replaced", reason, items: this.#session.messages.length });
  }
}
