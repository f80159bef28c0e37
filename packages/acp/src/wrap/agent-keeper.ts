import type { Readable } from "node:stream";
import { objectOf, type Params } from "../record/message.ts";
import { RunningAgent } from "./running-agent.ts";

export interface AgentKeeperOptions {
  readonly command: readonly string[];
  /** Takes what the agent writes to standard error. Default: it goes to ours. */
  readonly stderr?: (stream: Readable) => void;
  /** Reads what an agent says. Resolves when it has ended and that is handled. Must not reject. */
  readonly read: (agent: RunningAgent) => Promise<void>;
  /** An agent runs, the first one or another. */
  readonly onStarted: (agent: RunningAgent) => void;
  readonly log: (line: string) => void;
}

/** The agent that runs now, and the next one when it has died. */
export class AgentKeeper {
  readonly #options: AgentKeeperOptions;
  #agent: RunningAgent | null = null;
  /** Another agent is being started, for everything that needs it. */
  #starting: Promise<RunningAgent> | null = null;
  /** A process is being started, which has to be ended too. */
  #spawning: Promise<unknown> = Promise.resolve();
  #isEnding = false;
  #hadAgent = false;
  /** What the editor said in `initialize`. */
  initialize: Params | null = null;

  constructor(options: AgentKeeperOptions) {
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
    const { command, stderr, read, onStarted } = this.#options;
    const starting = RunningAgent.start(command, !this.#hadAgent, stderr);
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
