import type {
  AgentContext,
  ClientCapabilities,
  PromptResponse,
  SessionUpdate,
} from "@agentclientprotocol/sdk/unstable";
import { methods, RequestError } from "@agentclientprotocol/sdk/unstable";
import type { CallItem, Chat, ChatEvent, ChatState, Item, PermissionAsk } from "@holdfast/server/contract";
import { availableCommands, commandIn } from "./commands.ts";
import { configOf, modesOf } from "./options.ts";
import { answerIn, optionsOf } from "./permission.ts";
import type { GivenPrompt } from "./prompt.ts";
import { UpdateQueue } from "./update-queue.ts";
import { terminalContent, text, textContent, Updates } from "./updates.ts";
import type { CallWords } from "./words.ts";

export interface SessionParts {
  readonly chat: Chat;
  readonly client: AgentContext;
  readonly capabilities: ClientCapabilities;
  readonly words: CallWords;
  readonly models: readonly string[];
}

/** How often a running tool's output is sent. Each update replaces the one before. */
const OUTPUT_MS = 100;

type Ended = Extract<ChatEvent, { type: "turn.ended" }>;

/** One session that the editor has open: what happens in it goes out, in order; prompts and answers come in. */
export class AcpSession {
  readonly #chat: Chat;
  readonly #client: AgentContext;
  readonly #parts: SessionParts;
  readonly #updates: Updates;
  readonly #unsubscribe: () => void;
  /** The calls that the editor has been shown. */
  readonly #known = new Set<string>();
  /** The calls whose end the editor has been shown. */
  readonly #over = new Set<string>();
  /** Prompts of this editor that are not recorded yet: it shows them by itself. */
  readonly #own: string[] = [];
  readonly #asking = new Map<string, AbortController>();
  readonly #outputs = new Map<string, NodeJS.Timeout>();
  /** The terminals of the editor in which calls run. */
  readonly #terminals = new Map<string, string>();
  readonly #queue: UpdateQueue;
  #streamed = { text: "", reasoning: "" };
  #answers = 0;
  #shown: Pick<ChatState, "title" | "mode" | "model">;
  #ended: Ended | null = null;
  #hasPlan = false;

  constructor(parts: SessionParts) {
    const { chat, client, words } = parts;
    this.#parts = parts;
    this.#chat = chat;
    this.#client = client;
    this.#updates = new Updates(words, chat.state.cwd);
    // One after the other: an editor shows updates in the order in which they come.
    this.#queue = new UpdateQueue((update) =>
      client.notify(methods.client.session.update, { sessionId: chat.id, update }),
    );
    this.#shown = chat.state;
    this.#unsubscribe = chat.subscribe((event) => this.#onEvent(event));
  }

  get chat(): Chat {
    return this.#chat;
  }

  /** What an editor is told about a session that it opens. */
  get answer() {
    const { state } = this.#chat;
    return { modes: modesOf(state), configOptions: configOf(state, this.#parts.models) };
  }

  /** Resolves when the whole conversation has been sent. */
  async replay(): Promise<void> {
    const { state } = this.#chat;
    for (const item of state.items) {
      if (item.kind !== "call") continue;
      this.#known.add(item.call);
      if (isOver(item)) this.#over.add(item.call);
    }
    this.#hasPlan = this.#updates.plan(state) !== null;
    for (const update of this.#updates.history(state)) this.#send(update);
    await this.#queue.sent();
  }

  /**
   * After the answer to the request that opened it: an editor knows the session only then. `warnings`: what the person
   * should know.
   */
  begin(warnings: readonly string[]): void {
    const { state } = this.#chat;
    this.#send({ sessionUpdate: "available_commands_update", availableCommands });
    this.#sendUsage();
    for (const words of [...state.damage, ...warnings]) this.#tell("warning", words);
    for (const ask of state.asks) this.#ask(ask);
  }

  async prompt({ text: said, images }: GivenPrompt, signal: AbortSignal): Promise<PromptResponse> {
    const stop = (): void => void this.#chat.stop("user").catch(() => undefined);
    signal.addEventListener("abort", stop, { once: true });
    this.#ended = null;
    try {
      const command = images.length === 0 ? commandIn(said) : null;
      if (command) {
        const words = await command.run(this.#chat);
        if (words !== null) this.#send(text("agent_message_chunk", words));
      } else {
        this.#own.push(said);
        await this.#chat.prompt(said, images);
      }
      await this.#idle();
    } finally {
      signal.removeEventListener("abort", stop);
      await this.#queue.sent();
    }
    return this.#outcome();
  }

  /** Shows the terminal in which a call runs. */
  embed(call: string, terminalId: string): void {
    // A sub-agent's calls are not shown.
    if (!this.#known.has(call)) return;
    this.#terminals.set(call, terminalId);
    this.#send({ sessionUpdate: "tool_call_update", toolCallId: call, content: [terminalContent(terminalId)] });
  }

  async stop(): Promise<void> {
    for (const asking of this.#asking.values()) asking.abort();
    await this.#chat.stop("user");
  }

  /** The editor has closed the session or is gone. */
  async close(): Promise<void> {
    this.#unsubscribe();
    for (const asking of this.#asking.values()) asking.abort();
    for (const timer of this.#outputs.values()) clearTimeout(timer);
    await this.#chat.close();
  }

  /** Questions to a person are part of the turn. */
  async #idle(): Promise<void> {
    await this.#chat.settled();
    while (this.#chat.state.asks.length > 0) {
      await new Promise<void>((resolve) => {
        const stop = this.#chat.subscribe(() => {
          if (this.#chat.state.asks.length > 0) return;
          stop();
          resolve();
        });
      });
      await this.#chat.settled();
    }
  }

  #outcome(): PromptResponse {
    const ended = this.#ended as Ended | null;
    if (ended?.outcome === "failed") {
      const { code = "FAILED", message = "The turn failed." } = ended.error ?? {};
      throw new RequestError(-32603, message, { code });
    }
    return { stopReason: ended?.outcome === "aborted" ? "cancelled" : "end_turn" };
  }

  #onEvent(event: ChatEvent): void {
    switch (event.type) {
      case "text":
        this.#streamed.text += event.text;
        this.#send(text("agent_message_chunk", event.text, this.#liveId));
        break;
      case "reasoning":
        this.#streamed.reasoning += event.text;
        this.#send(text("agent_thought_chunk", event.text, this.#liveId));
        break;
      case "retry":
        this.#nextAnswer();
        this.#tell("info", `The model did not answer (${event.reason}). Retrying: what it said so far does not count.`);
        break;
      case "item":
        this.#recorded(event.item);
        break;
      case "tool.started":
        this.#show(event.call, { name: event.name, input: event.input });
        if (this.#known.has(event.call))
          this.#send({ sessionUpdate: "tool_call_update", toolCallId: event.call, status: "in_progress" });
        break;
      case "tool.output":
        this.#outputLater(event.call);
        break;
      case "tool.ended":
        this.#toolEnded(event);
        break;
      case "permission.asked":
        this.#ask(event.ask);
        break;
      case "permission.answered":
        this.#asking.get(event.call)?.abort();
        break;
      case "usage":
        this.#sendUsage();
        break;
      case "notice":
        this.#tell(event.level, event.text);
        break;
      case "replaced":
        this.#nextAnswer();
        this.#sendPlan();
        break;
      case "turn.ended":
        this.#ended = event;
        this.#nextAnswer();
        this.#closeCalls();
        break;
      case "changed":
        this.#changed();
        break;
      default:
        break;
    }
  }

  /** What was streamed has been shown. What another client said or asked has not. */
  #recorded(item: Item): void {
    switch (item.kind) {
      case "prompt": {
        const own = this.#own.indexOf(item.text);
        if (own >= 0) this.#own.splice(own, 1);
        else for (const update of this.#updates.item(item)) this.#send(update);
        break;
      }
      case "answer":
      case "reasoning": {
        const of = item.kind === "answer" ? "text" : "reasoning";
        const streamed = this.#streamed[of];
        const rest = item.text.startsWith(streamed) ? item.text.slice(streamed.length) : "";
        const kind = item.kind === "answer" ? "agent_message_chunk" : "agent_thought_chunk";
        if (rest !== "") this.#send(text(kind, rest, this.#liveId));
        this.#streamed = { ...this.#streamed, [of]: "" };
        if (item.kind === "answer") this.#answers += 1;
        break;
      }
      case "call":
        this.#show(item.call, item);
        if (item.state === "done" && this.#updates.setsPlan(item)) this.#sendPlan();
        break;
      case "note":
        for (const update of this.#updates.item(item)) this.#send(update);
    }
  }

  #show(call: string, { name, input }: { readonly name: string; readonly input: unknown }): void {
    if (this.#known.has(call) || this.#updates.setsPlan({ name, input })) return;
    this.#known.add(call);
    this.#nextAnswer();
    this.#send({ sessionUpdate: "tool_call", ...this.#updates.start({ call, name, input }) });
  }

  #toolEnded({ call, name, output, failed }: Extract<ChatEvent, { type: "tool.ended" }>): void {
    clearTimeout(this.#outputs.get(call));
    this.#outputs.delete(call);
    const item = this.#chat.state.items.findLast((one) => one.kind === "call" && one.call === call);
    const input = item?.kind === "call" ? item.input : undefined;
    this.#show(call, { name, input });
    if (this.#known.has(call)) this.#end({ call, name, input, output }, failed ? "failed" : "done");
  }

  /** An empty plan takes the old one away. */
  #sendPlan(): void {
    const plan = this.#updates.plan(this.#chat.state);
    if (plan || this.#hasPlan) this.#send(plan ?? { sessionUpdate: "plan", entries: [] });
    this.#hasPlan = plan !== null;
  }

  #end(call: Pick<CallItem, "call" | "name" | "input" | "output">, state: CallItem["state"]): void {
    this.#over.add(call.call);
    const { status, content } = this.#updates.call(call, state, this.#terminals.get(call.call));
    this.#send({ sessionUpdate: "tool_call_update", toolCallId: call.call, status: status!, content: content! });
  }

  /** Calls that never ran, because they were denied or the turn was stopped. */
  #closeCalls(): void {
    for (const item of this.#chat.state.items) {
      if (item.kind !== "call" || !isOver(item) || !this.#known.has(item.call) || this.#over.has(item.call)) continue;
      this.#end(item, item.state);
    }
  }

  /** A chatty command does not flood the editor: the newest output is sent, at most every 100 ms. */
  #outputLater(call: string): void {
    if (this.#outputs.has(call)) return;
    const timer = setTimeout(() => {
      this.#outputs.delete(call);
      const output = this.#chat.state.outputs[call];
      if (output === undefined || !this.#known.has(call)) return;
      this.#send({ sessionUpdate: "tool_call_update", toolCallId: call, content: [textContent(output)] });
    }, OUTPUT_MS);
    this.#outputs.set(call, timer);
  }

  /** Asks the person in the editor. Nothing but an answer decides: if the editor gives none, the call keeps waiting. */
  #ask(ask: PermissionAsk): void {
    if (this.#asking.has(ask.call)) return;
    const asking = new AbortController();
    this.#asking.set(ask.call, asking);
    const { id: sessionId } = this.#chat;
    const toolCall = this.#updates.ask(ask);
    const isKnown = this.#known.has(ask.call);
    this.#known.add(ask.call);
    if (!isKnown) this.#send({ sessionUpdate: "tool_call", ...toolCall });
    this.#queue
      .sent()
      .then(() =>
        this.#client.request(
          methods.client.session.requestPermission,
          { sessionId, toolCall, options: optionsOf(ask) },
          { cancellationSignal: asking.signal },
        ),
      )
      .then((response) => {
        const answer = answerIn(response, ask);
        const isOpen = this.#chat.state.asks.some(({ call }) => call === ask.call);
        if (answer !== null && isOpen) return this.#chat.answer(ask.call, answer);
        if (isOpen) return this.#chat.stop("user");
      })
      .catch((error: unknown) => {
        // Answered elsewhere, or the editor is gone: the call keeps waiting, and the next editor is asked.
        if (!asking.signal.aborted) this.#tell("warning", `The approval was not recorded: ${messageOf(error)}`);
      })
      .finally(() => this.#asking.delete(ask.call));
  }

  #changed(): void {
    const { state } = this.#chat;
    const before = this.#shown;
    this.#shown = state;
    // Answered while the connection to the server was lost.
    for (const [call, asking] of this.#asking) if (!state.asks.some((ask) => ask.call === call)) asking.abort();
    if (state.title !== before.title) this.#send({ sessionUpdate: "session_info_update", title: state.title });
    if (state.mode !== before.mode) this.#send({ sessionUpdate: "current_mode_update", currentModeId: state.mode });
    if (state.model !== before.model)
      this.#send({ sessionUpdate: "config_option_update", configOptions: configOf(state, this.#parts.models) });
  }

  #sendUsage(): void {
    const { window, usage } = this.#chat.state;
    const cost = usage.cost ? { cost: { ...usage.cost } } : {};
    this.#send({ sessionUpdate: "usage_update", used: window.usedTokens, size: window.maxTokens, ...cost });
  }

  /** Editors that have a place for notices get one; the others a thought. */
  #tell(severity: "info" | "warning", title: string): void {
    const hasNotices = this.#parts.capabilities.session?.notices !== undefined;
    this.#send(hasNotices ? { sessionUpdate: "notice", severity, title } : text("agent_thought_chunk", title));
  }

  get #liveId(): string {
    return `${this.#chat.id}-${this.#answers}`;
  }

  #nextAnswer(): void {
    this.#streamed = { text: "", reasoning: "" };
    this.#answers += 1;
  }

  #send(update: SessionUpdate): void {
    this.#queue.push(update);
  }
}

function isOver({ state }: CallItem): boolean {
  return state !== "open" && state !== "waiting" && state !== "running";
}

function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
