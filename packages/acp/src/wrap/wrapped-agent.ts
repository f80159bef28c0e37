import type { Readable } from "node:stream";
import { setTimeout as passed } from "node:timers/promises";
import type { Library } from "../record/library.ts";
import type { Params } from "../record/message.ts";
import type { RecordedSession } from "../record/recorded-session.ts";
import { type Ended, STEP_MS } from "./agent-process.ts";
import { AgentToEditor, type Finishing } from "./agent-to-editor.ts";
import { Client, type ClientOutput, type OnOpened, type OpenedSession, OpenedWith } from "./client.ts";
import { EditorToAgent } from "./editor-to-agent.ts";
import { AgentRequests, ClientRequests } from "./open-requests.ts";
import { RestartableAgent, type RunningAgent } from "./restartable-agent.ts";
import { SessionOpener } from "./session-opener.ts";
import { TurnFinisher } from "./turn-finisher.ts";

export interface WrapOptions {
  readonly command: readonly string[];
  readonly library: Library;
  /** For the person who reads the editor's log. */
  readonly log: (line: string) => void;
  /** Takes what the agent writes to standard error. Default: it goes to ours. */
  readonly stderr?: (stream: Readable) => void;
  /** An agent is about to be started: what finds its processes, should this one die. */
  readonly onMark?: (mark: string) => void;
  /** An agent runs, the first one or another. */
  readonly onStarted?: () => void;
  /** Turns that were cut off go on by themselves. Default: only when the editor says so. */
  readonly finishing?: Pick<Finishing, "onLoad" | "permit">;
  /** Keeps what a session was opened with for the process that takes over if this one dies. */
  readonly onOpened?: OnOpened;
}

const LOOK_MS = 20;

/**
 * Stands between an editor and an agent. Everything is recorded before it is passed on, and passed on as it came;
 * messages change only where a session has another id at the agent, where we can do more than the agent, and for an
 * editor that takes the place of another.
 */
export class WrappedAgent {
  readonly #options: WrapOptions;
  readonly #library: Library;
  readonly #agents: RestartableAgent;
  #client: Client | null = null;
  #clients = 0;
  readonly #clientRequests = new ClientRequests();
  readonly #agentRequests = new AgentRequests();
  readonly #openedWith: OpenedWith;
  readonly #editorToAgent: EditorToAgent;
  readonly #finisher: TurnFinisher;

  constructor(options: WrapOptions) {
    const { command, library, log, stderr, onMark, onStarted, onOpened, finishing: given } = options;
    this.#options = options;
    this.#library = library;
    this.#openedWith = new OpenedWith(onOpened);
    const shared = {
      ...{ library, log, openedWith: this.#openedWith },
      ...{ clientRequests: this.#clientRequests, agentRequests: this.#agentRequests },
      client: () => this.#client,
      finishing: given ? { ...given, finisher: () => this.#finisher } : null,
    };
    const toEditor = new AgentToEditor({ ...shared, onEnded: (agent) => this.#agents.forget(agent) });
    this.#agents = new RestartableAgent({
      ...{ command, log, ...(stderr ? { stderr } : {}), ...(onMark ? { onMark } : {}) },
      read: (agent) => toEditor.read(agent),
      onStarted: () => onStarted?.(),
    });
    const show = (session: string, update: Params): Promise<void> => toEditor.show(session, update);
    const opener = new SessionOpener({
      ...{ library, agents: this.#agents, openedWith: this.#openedWith, show },
      isBack: () => this.#client?.isFirst === false,
    });
    this.#finisher = new TurnFinisher({ agents: this.#agents, opener, show, log });
    this.#editorToAgent = new EditorToAgent({ ...shared, agents: this.#agents, toEditor, opener });
  }

  get #agent(): RunningAgent | null {
    return this.#agents.agent;
  }

  /** The agent's process, if it runs. */
  get agent(): { readonly pid: number; readonly mark: string } | null {
    return this.#agent?.process ?? null;
  }

  /** The agent works on a prompt. */
  get isBusy(): boolean {
    return this.#finisher.sessions.length > 0 || (this.#agent !== null && this.#clientRequests.prompts.length > 0);
  }

  /** Starts the agent. Resolves with its end if it ends before it has answered to `initialize`; else with null. */
  async start(): Promise<{ readonly early: Promise<Ended | null> }> {
    const agent = await this.#agents.start();
    return { early: agent.process.ended.then((ended) => (agent.capabilities === null ? ended : null)) };
  }

  /** Takes the place of another process that has died: the editor will not say again what it can do and has open. */
  continueFrom(initialize: Params | null, opened: readonly OpenedSession[]): void {
    this.#agents.continueFrom(initialize);
    this.#openedWith.continueFrom(opened);
  }

  /** From now on the agent talks to this editor. */
  attach(output: ClientOutput): Client {
    this.#clients += 1;
    this.#client = new Client(this.#clients, output);
    return this.#client;
  }

  /** Reads what the editor says, until it says no more. */
  read(client: Client, input: AsyncIterable<Buffer>): Promise<void> {
    return this.#editorToAgent.read(client, input);
  }

  /** Whether the editor waits for an answer, other than to a prompt. It may still read after it closed its side. */
  owes(client: Client): boolean {
    return client.lanes.isBusy || this.#clientRequests.isOwed(client);
  }

  /** The editor is gone. Nobody can approve anything. */
  async detach(client: Client): Promise<void> {
    if (this.#client !== client) return;
    this.#client = null;
    // The turn of a driver goes on with the next one, which decides: an agent that is refused now would go on without
    // it.
    if (this.#agent && this.#options.finishing?.onLoad !== false) await this.#agentRequests.refuseAll(this.#agent);
  }

  /** Cancels the turns of sessions that no editor has open. */
  async cancelUnheard(): Promise<void> {
    await this.#cancelTurns(({ id }) => this.#client?.hears(id) !== true);
  }

  async #cancelTurns(isMeant: (session: RecordedSession) => boolean): Promise<void> {
    for (const prompted of [...this.#clientRequests.prompts, ...this.#finisher.sessions]) {
      const session = this.#library.of(prompted);
      if (!session || !isMeant(session)) continue;
      this.#options.log("a turn is cancelled: nobody waits for it");
      await this.#agent?.send({ method: "session/cancel", params: { sessionId: session.agentSession } });
    }
  }

  /** Turns go on with the next process: at once if a call that is running ends in time, and otherwise as cut off. */
  async #handOver(): Promise<void> {
    const until = performance.now() + STEP_MS;
    const running = this.#library.open.filter(({ isRunning }) => isRunning);
    while (running.some(({ hasRunningCalls }) => hasRunningCalls) && performance.now() < until) await passed(LOOK_MS);
    await Promise.allSettled(running.map((session) => session.handOver()));
  }

  /** Cancels what the agent does, closes its sessions, and ends it and everything that it started. */
  async end(): Promise<Ended> {
    this.#finisher.end();
    const agent = await this.#agents.last();
    try {
      if (this.#options.finishing) await this.#handOver();
      if (!agent) return { code: 0, signal: null };
      await this.#cancelTurns(() => true);
      const until = performance.now() + STEP_MS;
      while (this.isBusy && performance.now() < until) await passed(LOOK_MS);
      await agent.closeSessions(STEP_MS);
      return await agent.process.end(STEP_MS);
    } finally {
      // What it said last is recorded too, unless something that it left behind keeps its output open.
      const timer = new AbortController();
      const late = passed(STEP_MS, undefined, { signal: timer.signal }).catch(() => undefined);
      await Promise.race([agent?.over, late]);
      timer.abort();
      await this.#library.closeAll();
    }
  }
}
