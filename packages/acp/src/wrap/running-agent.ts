import type { Readable } from "node:stream";
import { setTimeout as passed } from "node:timers/promises";
import { AgentProcess } from "./agent-process.ts";
import { sessionCapabilities } from "./capabilities.ts";
import { LineSplitter } from "./lines.ts";
import { lineOf, type Message, objectOf, type Params, stringOf } from "./message.ts";
import { Outlet } from "./outlet.ts";
import type { RestoreParts } from "./restore.ts";

type Response = Extract<Message, { kind: "response" }>;

/** A replay may go on after the answer to the request for it. */
const QUIET_MS = 300;

/** The agent that is running now, what it can do, and our own requests to it. */
export class RunningAgent {
  readonly process: AgentProcess;
  readonly to: Outlet;
  /** Its answer to `initialize`; null until it came. */
  capabilities: Params | null = null;
  /** The sessions that it has open, by its own ids. */
  readonly sessions = new Set<string>();
  /** Everything that it said is handled, and its end too. */
  over: Promise<void> = Promise.resolve();
  readonly #asked = new Map<string, (answer: Pick<Response, "result" | "error">) => void>();
  /** The sessions whose updates are its replay of what we replay ourselves. */
  readonly #muted = new Set<string>();
  #serial = 0;

  private constructor(process: AgentProcess) {
    this.process = process;
    this.to = new Outlet(process.stdin);
  }

  /** Throws if the command cannot be started. */
  static async start(command: readonly string[], stderr?: (stream: Readable) => void): Promise<RunningAgent> {
    return new RunningAgent(await AgentProcess.start(command, stderr));
  }

  /** What it says, by lines that arrived together. */
  async *lines(): AsyncGenerator<Buffer[], void, undefined> {
    const lines = new LineSplitter();
    for await (const chunk of this.process.stdout) yield lines.push(chunk as Buffer);
    const rest = lines.end();
    if (rest) yield [rest];
  }

  send(message: Params): Promise<void> {
    return this.to.write(lineOf(message));
  }

  /** A request of our own. Rejects with the agent's error. */
  ask(method: string, params: Params): Promise<unknown> {
    this.#serial += 1;
    const id = `holdfast:${this.#serial}`;
    return new Promise((resolve, reject) => {
      this.#asked.set(id, ({ result, error }) => {
        if (error === undefined) resolve(result);
        else reject(new Error(stringOf(objectOf(error)?.["message"]) ?? "the agent answered with an error"));
      });
      void this.send({ id, method, params });
    });
  }

  /** Whether this is the answer to a request of our own. */
  answered(answer: Response): boolean {
    const { id } = answer;
    const own = typeof id === "string" ? this.#asked.get(id) : undefined;
    if (!own) return false;
    this.#asked.delete(id as string);
    own(answer);
    return true;
  }

  /** It has ended, and will not answer. */
  failRequests(): void {
    const waiting = [...this.#asked.values()];
    this.#asked.clear();
    for (const answer of waiting) answer({ result: undefined, error: { message: "the agent has ended" } });
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
      mute: (one) => this.mute(one),
    };
  }

  isMuted(session: string): boolean {
    return this.#muted.has(session);
  }

  /** Drops the updates of this session. The function that it returns ends that. */
  mute(session: string): () => Promise<void> {
    this.#muted.add(session);
    return async () => {
      await passed(QUIET_MS);
      this.#muted.delete(session);
    };
  }
}
