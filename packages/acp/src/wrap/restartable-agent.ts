import { randomBytes } from "node:crypto";
import type { Readable } from "node:stream";
import { setTimeout as passed } from "node:timers/promises";
import { sessionCapabilities } from "../record/capabilities.ts";
import { OwnRequests } from "../record/holdfast-to-agent.ts";
import {
  type Change,
  type Line,
  lineOf,
  type Message,
  objectOf,
  type Params,
  type RequestId,
} from "../record/message.ts";
import { MutedReplays } from "../record/muted-replays.ts";
import type { RestoreParts } from "../record/restore.ts";
import { AgentProcess } from "./agent-process.ts";
import { LineReader } from "./lines.ts";
import type { LongLine } from "./long-line.ts";
import { Outlet } from "./outlet.ts";

type Response = Extract<Message, { kind: "response" }>;

/** The agent that is running now, what it can do, and our own requests to it. */
export class RunningAgent {
  readonly process: AgentProcess;
  readonly to: Outlet;
  /** The sessions that it has open, by its own ids. */
  readonly sessions = new Set<string>();
  /** Everything that it said is handled, and its end too. */
  over: Promise<void> = Promise.resolve();
  /** Its replays of what we replay ourselves. */
  readonly replays = new MutedReplays();
  /** The sessions whose turn was stopped because it could not be recorded. Nothing of them is passed on. */
  readonly unrecorded = new Set<string>();
  /** In front of the ids of its requests; null if they pass unchanged. */
  readonly #idPrefix: string | null;
  readonly #own = new OwnRequests((request) => void this.send(request));
  readonly #ready = Promise.withResolvers<void>();
  #capabilities: Params | null = null;

  private constructor(process: AgentProcess, isFirst: boolean) {
    this.process = process;
    this.to = new Outlet(process.stdin);
    this.#idPrefix = isFirst ? null : `holdfast:${randomBytes(6).toString("hex")}:`;
  }

  /**
   * `isFirst`: the editor has had no other agent. Every agent counts its requests from 0, so the editor would take a
   * later one's for those of an earlier one. Throws if the command cannot be started.
   */
  static async start(
    command: readonly string[],
    isFirst: boolean,
    stderr?: (stream: Readable) => void,
    onMark?: (mark: string) => void,
  ): Promise<RunningAgent> {
    return new RunningAgent(await AgentProcess.start(command, stderr, onMark), isFirst);
  }

  /** Its answer to `initialize`; null until it came. */
  get capabilities(): Params | null {
    return this.#capabilities;
  }

  set capabilities(answer: Params | null) {
    this.#capabilities = answer;
    this.#ready.resolve();
  }

  /** It has answered `initialize`, or ended. */
  get ready(): Promise<void> {
    return this.#ready.promise;
  }

  /** It speaks a version of the protocol that we know, as far as it has said. */
  get isKnownVersion(): boolean {
    return (this.#capabilities?.["protocolVersion"] ?? 1) === 1;
  }

  /** The editor has had no other agent: what this one says passes unchanged. */
  get isFirst(): boolean {
    return this.#idPrefix === null;
  }

  /** The id of its request, as the editor knows it. */
  idForClient(id: RequestId): RequestId {
    return this.#idPrefix === null ? id : `${this.#idPrefix}${JSON.stringify(id)}`;
  }

  /** What has to change in a message of it: the editor knows other ids. */
  changeForClient(message: Extract<Message, { kind: "request" | "notification" }>): Change {
    if (this.isFirst) return {};
    if (message.kind === "request") return { id: this.idForClient(message.id) };
    if (message.method !== "$/cancel_request") return {};
    return { params: (own) => ({ ...own, requestId: this.idForClient(own["requestId"] as RequestId) }) };
  }

  /** What it says, by lines that arrived together. */
  async *lines(): AsyncGenerator<(Line | LongLine)[], void, undefined> {
    const lines = new LineReader();
    try {
      for await (const chunk of this.process.stdout) yield lines.push(chunk as Buffer);
    } catch (error) {
      // It has ended, and its output was closed here.
      if (!this.process.hasExited) throw error;
    }
    const rest = lines.end();
    if (rest) yield [rest];
  }

  send(message: Params): Promise<void> {
    return this.to.write(lineOf(message));
  }

  /** A request of our own. Rejects with the agent's error, or with AgentEnded. */
  ask(method: string, params: Params): Promise<unknown> {
    return this.#own.ask(method, params);
  }

  /** Whether this is the answer to a request of our own. */
  answered(answer: Response): boolean {
    return this.#own.take(answer);
  }

  /** It has ended, and will not answer. */
  failRequests(): void {
    this.#own.failAll();
    this.#ready.resolve();
  }

  /** Closes the sessions that it has open, if it can. */
  async closeSessions(patienceMs: number): Promise<void> {
    if (sessionCapabilities(this.capabilities)["close"] == null) return;
    const closed = [...this.sessions].map((sessionId) => this.ask("session/close", { sessionId }));
    const timer = new AbortController();
    const late = passed(patienceMs, undefined, { signal: timer.signal }).catch(() => undefined);
    await Promise.race([Promise.allSettled(closed), late]);
    timer.abort();
  }

  /** What it offers to restore one of its sessions. */
  restoring(session: string): Pick<RestoreParts, "capabilities" | "isOpen" | "request" | "mute"> {
    return {
      capabilities: objectOf(this.capabilities?.["agentCapabilities"]) ?? {},
      isOpen: this.sessions.has(session),
      request: (method, params) => this.ask(method, params),
      mute: (one) => this.replays.mute(one),
    };
  }
}

export interface RestartableAgentOptions {
  readonly command: readonly string[];
  /** Takes what the agent writes to standard error. Default: it goes to ours. */
  readonly stderr?: (stream: Readable) => void;
  /** Reads what an agent says. Resolves when it has ended and that is handled. Must not reject. */
  readonly read: (agent: RunningAgent) => Promise<void>;
  /** An agent is about to be started: what finds its processes, should this one die. */
  readonly onMark?: (mark: string) => void;
  /** An agent runs, the first one or another. */
  readonly onStarted: (agent: RunningAgent) => void;
  readonly log: (line: string) => void;
}

/** The agent that runs now, and the next one when it has died. */
export class RestartableAgent {
  readonly #options: RestartableAgentOptions;
  #agent: RunningAgent | null = null;
  /** Another agent is being started, for everything that needs it. */
  #starting: Promise<RunningAgent> | null = null;
  /** A process is being started, which has to be ended too. */
  #spawning: Promise<unknown> = Promise.resolve();
  #isEnding = false;
  #hadAgent = false;
  /** What the editor said in `initialize`. */
  initialize: Params | null = null;

  constructor(options: RestartableAgentOptions) {
    this.#options = options;
  }

  /** Null if none runs. */
  get agent(): RunningAgent | null {
    return this.#agent;
  }

  /** It runs, and nothing has to be waited for. */
  get isRunning(): boolean {
    return this.#agent !== null && !this.#agent.process.hasExited && this.#starting === null;
  }

  /** The editor has had an agent before, of a process that has died. */
  continueFrom(initialize: Params | null): void {
    this.initialize = initialize;
    this.#hadAgent = true;
  }

  /** Throws if the command cannot be started, or everything is being ended. */
  async start(): Promise<RunningAgent> {
    if (this.#isEnding) throw new Error("The agent is being ended. Nothing was sent to it.");
    const { command, stderr, read, onStarted, onMark } = this.#options;
    const starting = RunningAgent.start(command, !this.#hadAgent, stderr, onMark);
    this.#hadAgent = true;
    this.#spawning = starting.then(
      (agent) => {
        this.#agent = agent;
        agent.over = read(agent);
      },
      () => undefined,
    );
    await this.#spawning;
    const agent = await starting;
    onStarted(agent);
    return agent;
  }

  /** Starts the agent again if it has died. */
  async running(): Promise<RunningAgent> {
    if (this.#agent?.process.hasExited) await this.#agent.over;
    if (this.#starting) return this.#starting;
    if (this.#agent) return this.#agent;
    this.#starting = this.#startAgain().finally(() => {
      this.#starting = null;
    });
    return this.#starting;
  }

  /** The same, and it has said what it can do. */
  async initialized(): Promise<RunningAgent> {
    const agent = await this.running();
    // Without `initialize` there is nothing that it would answer.
    if (this.initialize !== null) await agent.ready;
    return agent;
  }

  /** It has ended, and that is handled. */
  forget(agent: RunningAgent): void {
    if (this.#agent === agent) this.#agent = null;
  }

  /** From now on none is started. Resolves with the one that has to be ended. */
  async last(): Promise<RunningAgent | null> {
    this.#isEnding = true;
    await this.#spawning;
    return this.#agent;
  }

  async #startAgain(): Promise<RunningAgent> {
    const agent = await this.start();
    this.#options.log("the agent was started again");
    try {
      agent.capabilities = objectOf(await agent.ask("initialize", this.initialize ?? { protocolVersion: 1 })) ?? {};
    } catch (error) {
      // One that does not begin is of no use to anybody.
      void agent.process.end(0);
      throw error;
    }
    return agent;
  }
}
