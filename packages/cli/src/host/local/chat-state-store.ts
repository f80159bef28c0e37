import type { ModelMessage, TextStreamPart, ToolSet } from "ai";
import type { Session, Store, Usage } from "holdfast";
import type { AgentEvents } from "../../agent/events.ts";
import { childrenOf } from "../../store/children.ts";
import { nullIfUnreadable, usageBelow } from "../../store/usage.ts";
import { allowFlag } from "../../tools/permission/decide.ts";
import type { ChatEvent, ChatState } from "../host.ts";
import { applyStreamPart, changedItems, withOutput, withoutOutput, withRecorded } from "./chat-state.ts";

/** The current state of a conversation, and its subscribers. */
export class ChatStateStore {
  /** Calls whose tools run. */
  readonly running = new Set<string>();
  /** By call: the session of the sub-agent that works on it, or did. */
  readonly children = new Map<string, string>();
  /** By session: what sub-agents have used. */
  #below: ReadonlyMap<string, Usage> = new Map();
  /** Calls of sub-agents that were denied in this turn. */
  deniedBelow = 0;
  readonly #listeners = new Set<(event: ChatEvent) => void>();
  readonly #session: () => Session<ModelMessage>;
  #state: ChatState;

  constructor(state: ChatState, session: () => Session<ModelMessage>) {
    this.#state = state;
    this.#session = session;
  }

  get state(): ChatState {
    return this.#state;
  }

  subscribe(listener: (event: ChatEvent) => void): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  /**
   * What is told of sub-agents that were begun by other processes is in the store. A list of it may fail over another
   * session, which is not in the way of this one.
   */
  async loadChildren(store: Store): Promise<void> {
    const { id } = this.#session();
    for (const [call, child] of (await nullIfUnreadable(childrenOf(store, id))) ?? []) this.children.set(call, child);
    const found = await nullIfUnreadable(usageBelow(store, id, this.#below));
    // What was told meanwhile is newer.
    this.#below = new Map([...(found ?? []), ...this.#below]);
    this.refresh();
  }

  /** Another turn begins. */
  startTurn(): void {
    this.deniedBelow = 0;
  }

  /** How many calls of this turn were denied, those of its sub-agents with them. */
  deniedIn(turn: number): number {
    const isDenied = (item: ChatState["items"][number]): boolean =>
      item.kind === "call" && item.turn === turn && item.state === "denied";
    return this.#state.items.filter(isDenied).length + this.deniedBelow;
  }

  /** What the agent tells while it works. */
  agentEvents(): AgentEvents {
    return {
      started: (call, name, input) => {
        this.running.add(call);
        this.emitRecorded({ type: "tool.started", call, name, input });
      },
      ended: (call) => {
        this.running.delete(call);
        this.update(withoutOutput(this.state, call));
      },
      output: (call, text) => this.update(withOutput(this.state, call, text), { type: "tool.output", call, text }),
      delegated: (call, session) => {
        this.children.set(call, session);
        this.refresh();
      },
      denied: ({ toolName, input }, { suggestion, summary }, isBelow) => {
        if (isBelow) this.deniedBelow++;
        const what = summary || `${toolName} ${JSON.stringify(input)}`;
        const text = `Denied${isBelow ? " to a sub-agent" : ""}: ${what}. To allow it: ${allowFlag(suggestion)}`;
        this.emit({ type: "notice", level: "warning", text });
      },
      show: (part) => this.showPart(part),
      retrying: (reason) => this.update({ live: null }, { type: "retry", reason }),
      compacting: () => this.update({ isCompacting: true }, { type: "compacting" }),
      compacted: ({ after }) => {
        this.update({ canUndo: false, isCompacting: false });
        this.emitRecorded({ type: "replaced", reason: "compaction", items: after });
      },
      cutOff: () => {
        const text = "The answer was cut off at the model's output limit. Ask it to continue.";
        this.emit({ type: "notice", level: "warning", text });
      },
      used: (usedTokens) => {
        this.update({ window: { ...this.state.window, usedTokens } });
        this.refresh();
        this.emit({ type: "usage", usage: this.state.usage });
      },
      // Whoever watches sees that it goes on, and with what. It is no output of the call: nobody is told.
      startedBelow: (call, words) => this.update(withOutput(this.state, call, `${words}\n`)),
      usedBelow: (session, usage) => {
        this.#below = new Map([...this.#below, [session, usage]]);
        this.refresh();
        this.emit({ type: "usage", usage: this.state.usage });
      },
    };
  }

  /** A part of the stream, as it comes. */
  showPart(part: TextStreamPart<ToolSet>): void {
    const said = applyStreamPart(this.#state, part);
    if (said) {
      this.update(said.state, said.event);
      return;
    }
    switch (part.type) {
      case "tool-call":
      case "finish-step":
        this.update({ live: null });
        this.refresh();
        return;
      case "tool-result":
      case "tool-error": {
        if (part.type === "tool-result" && part.preliminary) return;
        this.refresh();
        const { toolCallId: call, toolName: name } = part;
        const item = this.#state.items.findLast((one) => one.kind === "call" && one.call === call);
        const output = item?.kind === "call" ? (item.output ?? "") : "";
        this.emit({ type: "tool.ended", call, name, failed: part.type === "tool-error", output });
        return;
      }
      default:
        return;
    }
  }

  /** Updates the state from the journal first, so that subscribers see what the event is about. */
  emitRecorded(event: ChatEvent): void {
    this.refresh();
    this.emit(event);
  }

  refresh(): void {
    const before = this.#state.items;
    const { running, children } = this;
    this.#state = withRecorded(this.#state, this.#session(), { running, children, below: this.#below });
    for (const item of changedItems(before, this.#state.items)) this.emit({ type: "item", item });
  }

  update(change: Partial<ChatState>, event?: ChatEvent): void {
    this.#state = { ...this.#state, ...change };
    if (event) this.emit(event);
  }

  emit(event: ChatEvent): void {
    for (const listener of this.#listeners) {
      try {
        listener(event);
      } catch (error) {
        // A screen that fails must not stop the work; that it failed must not be silent either.
        process.emitWarning(error instanceof Error ? error : String(error));
      }
    }
  }
}
