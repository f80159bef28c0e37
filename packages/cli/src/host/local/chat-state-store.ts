import type { ModelMessage, TextStreamPart, ToolSet } from "ai";
import type { CallPolicy, Session, Store, Usage } from "holdfast";
import type { AgentEvents } from "../../agent/events.ts";
import { POLICY } from "../../store/account.ts";
import { childrenOf } from "../../store/children.ts";
import { nullIfUnreadable, usageBelow } from "../../store/usage.ts";
import { allowFlag } from "../../tools/permission/decide.ts";
import type { ChatEvent, ChatState } from "../host.ts";
import { applyStreamPart, changedItems, withOutput, withoutOutput, withRecorded } from "./chat-state.ts";

/** The current state of a conversation, and its subscribers. */
export class ChatStateStore {
  /** Calls whose tools are running. */
  readonly running = new Set<string>();
  /** The session of each call's sub-agent, also after it has ended. */
  readonly children = new Map<string, string>();
  /** What happens to the calls that the last process left open, as known when somebody last looked. */
  policy: CallPolicy = POLICY;
  /** What sub-agents used, by session. */
  #below: ReadonlyMap<string, Usage> = new Map();
  /** Denied calls of sub-agents in this turn. */
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
   * Loads sub-agents started by other processes from the store. The list may fail because of another session, which
   * must not affect this one.
   */
  async loadChildren(store: Store): Promise<void> {
    const { id } = this.#session();
    for (const [call, child] of (await nullIfUnreadable(childrenOf(store, id))) ?? []) this.children.set(call, child);
    const found = await nullIfUnreadable(usageBelow(store, id, this.#below));
    // What was reported meanwhile is newer.
    this.#below = new Map([...(found ?? []), ...this.#below]);
    this.refresh();
  }

  startTurn(): void {
    this.deniedBelow = 0;
  }

  /** The number of calls denied in this turn, including those of sub-agents. */
  deniedIn(turn: number): number {
    const isDenied = (item: ChatState["items"][number]): boolean =>
      item.kind === "call" && item.turn === turn && item.state === "denied";
    return this.#state.items.filter(isDenied).length + this.deniedBelow;
  }

  /** Turns what the agent reports into state and events. */
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
      warned: (text) => this.emit({ type: "notice", level: "warning", text }),
      delegated: (call, session) => {
        this.children.set(call, session);
        this.refresh();
      },
      denied: ({ toolName, input }, { suggestion, summary, isAllowable }, isBelow) => {
        if (isBelow) this.deniedBelow++;
        const what = summary || `${toolName} ${JSON.stringify(input)}`;
        // In plan mode, for one, no rule would help.
        const how = isAllowable ? ` To allow it: ${allowFlag(suggestion)}` : "";
        const text = `Denied${isBelow ? " to a sub-agent" : ""}: ${what}.${how}`;
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
      // Shows the user what a sub-agent is doing. It is not output of the call, so it emits no event.
      startedBelow: (call, words) => this.update(withOutput(this.state, call, `${words}\n`)),
      usedBelow: (session, usage) => {
        this.#below = new Map([...this.#below, [session, usage]]);
        this.refresh();
        this.emit({ type: "usage", usage: this.state.usage });
      },
    };
  }

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
    const { running, children, policy } = this;
    this.#state = withRecorded(this.#state, this.#session(), { running, children, policy, below: this.#below });
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
        // A failing listener must not stop the work, but its failure must not be silent either.
        process.emitWarning(error instanceof Error ? error : String(error));
      }
    }
  }
}
