import { setTimeout as passed } from "node:timers/promises";
import { isHoldfastError } from "holdfast";
import { AgentProcess, type Ended } from "./agent-process.ts";
import { sessionCapabilities, withOurs } from "./capabilities.ts";
import type { Library } from "./library.ts";
import { LineSplitter } from "./lines.ts";
import { MergedList } from "./merged-list.ts";
import {
  forSession,
  lineOf,
  type Message,
  messageIn,
  objectOf,
  type Params,
  type RequestId,
  stringOf,
} from "./message.ts";
import { Outlet } from "./outlet.ts";
import type { RecordedSession } from "./recorded-session.ts";
import { type Restored, restore, restoredWords } from "./restore.ts";
import { transcriptOf } from "./transcript.ts";

export interface WrapOptions {
  readonly command: readonly string[];
  readonly library: Library;
  readonly input: AsyncIterable<Buffer>;
  readonly output: NodeJS.WritableStream;
  /** For the person who reads the editor's log. */
  readonly log: (line: string) => void;
  /** How long a turn goes on without its editor, and then each further step of ending the agent. */
  readonly graceMs: number;
}

interface FromClient {
  readonly method: string;
  readonly params: Params;
}

/** The agent that is running now, and what it can do. */
interface Agent {
  readonly process: AgentProcess;
  readonly to: Outlet;
  /** Its answer to `initialize`; null until it came. */
  capabilities: Params | null;
  /** The sessions that it has open, by its own ids. */
  readonly sessions: Set<string>;
  /** Our own requests to it. */
  readonly asked: Map<string, (answer: Extract<Message, { kind: "response" }>) => void>;
  /** The sessions whose updates are its replay of what we replay ourselves. */
  readonly muted: Set<string>;
}

/** JSON-RPC's code for an error inside the other side. */
const INTERNAL = -32603;
const NOT_FOUND = -32002;
/** A replay may go on after the answer to the request for it. */
const QUIET_MS = 300;
/** Params that may hold secrets. They are passed on and never recorded. */
const SECRET = /^(?:authenticate|logout|auth\/|providers\/|elicitation\/|session\/(?:new|load|resume|fork)$)/;

/**
 * Stands between an editor and an agent. Everything is recorded before it is passed on, and passed on as it came;
 * messages change only where a session has another id at the agent, and where we can do more than the agent.
 */
export class WrappedAgent {
  readonly #options: WrapOptions;
  readonly #library: Library;
  readonly #client: Outlet;
  #agent: Agent | null = null;
  #initialize: Params | null = null;
  #isClientGone = false;
  #serial = 0;
  readonly #listing: MergedList;
  readonly #clientRequests = new Map<RequestId, FromClient>();
  readonly #agentRequests = new Map<RequestId, { readonly method: string; readonly session: string | null }>();
  /** Sessions whose next prompt tells the agent what was said before. */
  readonly #forgotten = new Set<string>();

  constructor(options: WrapOptions) {
    this.#options = options;
    this.#library = options.library;
    this.#listing = new MergedList(options.library);
    this.#client = new Outlet(options.output as NodeJS.WriteStream);
  }

  /** Resolves with the end of the agent after the editor is gone, or after the agent could not begin. */
  async run(): Promise<Ended> {
    const agent = await this.#start();
    const early = agent.process.ended.then((ended) => (agent.capabilities === null ? ended : null));
    const left = this.#readClient().then(() => null);
    const ended = await Promise.race([early, left]);
    if (ended !== null) return ended;
    await left;
    return this.#leave();
  }

  async #readClient(): Promise<void> {
    const lines = new LineSplitter();
    for await (const chunk of this.#options.input) for (const line of lines.push(chunk)) await this.#fromClient(line);
    const rest = lines.end();
    if (rest) await this.#fromClient(rest);
    this.#isClientGone = true;
  }

  // The editor

  async #fromClient(raw: Buffer): Promise<void> {
    const message = messageIn(raw);
    switch (message.kind) {
      case "other":
        return this.#toAgent(raw);
      case "response":
        return this.#answerToAgent(message);
      case "notification":
        return this.#forward(message);
      case "request":
        try {
          return await this.#request(message);
        } catch (error) {
          this.#clientRequests.delete(message.id);
          return this.#refuse(message.id, error);
        }
    }
  }

  async #request(message: Extract<Message, { kind: "request" }>): Promise<void> {
    const { id, method, params, raw } = message;
    this.#clientRequests.set(id, { method, params });
    switch (method) {
      case "initialize":
        this.#initialize = params;
        return this.#toAgent(raw);
      case "session/prompt":
        return this.#prompt(raw, params);
      case "session/load":
      case "session/resume":
        return this.#load(message);
      case "session/list":
        return this.#list(id, params);
      case "session/close":
      case "session/delete":
        return this.#end(message);
      default:
        return this.#forward(message);
    }
  }

  async #prompt(raw: Buffer, params: Params): Promise<void> {
    const session = await this.#sessionFor(params);
    if (!session) return this.#toAgent(raw);
    const isForgotten = this.#forgotten.has(session.id);
    const told = isForgotten ? [{ type: "text", text: transcriptOf(session.history) }] : [];
    await session.prompt(params);
    this.#forgotten.delete(session.id);
    if (!isForgotten && session.agentSession === session.id) return this.#toAgent(raw);
    return this.#toAgent(
      forSession(raw, session.agentSession, (own) => ({
        ...own,
        prompt: [...told, ...(Array.isArray(own["prompt"]) ? own["prompt"] : [])],
      })),
    );
  }

  /** The recorded session, open at the agent that is running now. */
  async #sessionFor(params: Params): Promise<RecordedSession | null> {
    const session = this.#library.of(stringOf(params["sessionId"]) ?? "");
    const agent = await this.#running();
    if (session && !agent.sessions.has(session.agentSession)) {
      const restored = await this.#restore(session, {
        cwd: this.#folders.get(session.id) ?? process.cwd(),
        mcpServers: [],
      });
      await this.#tell(session, restored.rung);
    }
    return session;
  }
  readonly #folders = new Map<string, string>();

  async #load({ id, method, params, raw }: Extract<Message, { kind: "request" }>): Promise<void> {
    const known = stringOf(params["sessionId"]) ?? "";
    const session = await this.#library.reopen(known);
    // A session from before it was wrapped.
    if (!session) return this.#toAgent(raw);
    this.#folders.set(known, stringOf(params["cwd"]) ?? process.cwd());
    const restored = await this.#restore(session, params);
    if (method === "session/load") for (const update of session.history) await this.#update(session.id, update);
    await this.#tell(session, restored.rung);
    this.#clientRequests.delete(id);
    return this.#client.write(lineOf({ id, result: restored.answer }));
  }

  async #restore(session: RecordedSession, params: Params): Promise<Restored> {
    const agent = await this.#running();
    const restored = await restore({
      session,
      params,
      capabilities: objectOf(agent.capabilities?.["agentCapabilities"]) ?? {},
      isOpen: agent.sessions.has(session.agentSession),
      request: (method, given) => this.#ask(agent, method, given),
      mute: (agentSession) => this.#mute(agent, agentSession),
    });
    agent.sessions.add(session.agentSession);
    if (restored.rung === "new" && !session.isEmpty) this.#forgotten.add(session.id);
    return restored;
  }

  /** Which of the ways it was, for the person. */
  #tell(session: RecordedSession, rung: Restored["rung"]): Promise<void> {
    const text = session.isEmpty ? null : restoredWords(rung);
    if (text === null) return Promise.resolve();
    return this.#update(session.id, { sessionUpdate: "agent_thought_chunk", content: { type: "text", text } });
  }

  async #list(id: RequestId, params: Params): Promise<void> {
    const agent = await this.#running();
    const canList = sessionCapabilities(agent.capabilities)["list"] != null;
    const result = await this.#listing.page(
      params,
      canList ? (given) => this.#ask(agent, "session/list", given) : null,
    );
    this.#clientRequests.delete(id);
    return this.#client.write(lineOf({ id, result }));
  }

  async #end({ id, method, params, raw }: Extract<Message, { kind: "request" }>): Promise<void> {
    const known = stringOf(params["sessionId"]) ?? "";
    const agent = await this.#running();
    const [, verb = ""] = method.split("/");
    const session = this.#library.of(known);
    const agentSession = session?.agentSession ?? known;
    if (session) await this.#leaveTurn(session, "closed by the editor");
    if (method === "session/delete") await this.#library.remove(known);
    else await this.#library.close(known);
    agent.sessions.delete(agentSession);
    if (sessionCapabilities(agent.capabilities)[verb] != null)
      return this.#toAgent(agentSession === known ? raw : forSession(raw, agentSession));
    await agent.to.write(lineOf({ method: "session/cancel", params: { sessionId: agentSession } }));
    this.#clientRequests.delete(id);
    return this.#client.write(lineOf({ id, result: {} }));
  }

  /** Anything else about a session, or about none. */
  async #forward(message: Extract<Message, { kind: "request" | "notification" }>): Promise<void> {
    const { method, params, raw } = message;
    const session = this.#library.of(stringOf(params["sessionId"]) ?? "");
    if (!session) return this.#toAgent(raw);
    // What an editor sets may be secret: that it did is recorded.
    await session.beside("client", method, null);
    return this.#toAgent(session.agentSession === session.id ? raw : forSession(raw, session.agentSession));
  }

  async #answerToAgent(message: Extract<Message, { kind: "response" }>): Promise<void> {
    const asked = this.#agentRequests.get(message.id);
    this.#agentRequests.delete(message.id);
    const session = asked?.session == null ? null : this.#library.of(asked.session);
    const outcome = objectOf(objectOf(message.result)?.["outcome"]);
    if (session && asked?.method === "session/request_permission")
      await session.beside("client", asked.method, outcome);
    return this.#toAgent(message.raw);
  }

  // The agent

  async #start(): Promise<Agent> {
    const process = await AgentProcess.start(this.#options.command);
    const agent: Agent = {
      process,
      to: new Outlet(process.stdin),
      capabilities: null,
      sessions: new Set(),
      asked: new Map(),
      muted: new Set(),
    };
    this.#agent = agent;
    void this.#readAgent(agent);
    return agent;
  }

  /** Starts the agent again if it has died. */
  async #running(): Promise<Agent> {
    if (this.#agent) return this.#agent;
    const agent = await this.#start();
    this.#options.log("the agent was started again");
    const answer = await this.#ask(agent, "initialize", this.#initialize ?? { protocolVersion: 1 });
    agent.capabilities = objectOf(answer) ?? {};
    return agent;
  }

  async #readAgent(agent: Agent): Promise<void> {
    const lines = new LineSplitter();
    try {
      for await (const chunk of agent.process.stdout) await this.#linesFromAgent(agent, lines.push(chunk as Buffer));
      const rest = lines.end();
      if (rest) await this.#linesFromAgent(agent, [rest]);
    } catch (error) {
      // The journal cannot be written: what cannot be recorded is not passed on, and the editor is told.
      this.#options.log(`recording failed: ${error instanceof Error ? error.message : String(error)}`);
      void agent.process.end(0);
    }
    await agent.process.ended;
    await this.#died(agent);
  }

  /** What arrived together. Updates of a session in a row are recorded together, and then passed on together. */
  async #linesFromAgent(agent: Agent, lines: readonly Buffer[]): Promise<void> {
    let run: { readonly session: RecordedSession; readonly updates: Params[]; readonly out: Buffer[] } | null = null;
    for (const raw of lines) {
      const message = messageIn(raw);
      const session = this.#updated(agent, message);
      if (run && run.session !== session) {
        await this.#passOn(run);
        run = null;
      }
      if (!session || message.kind !== "notification") {
        await this.#fromAgent(agent, message);
        continue;
      }
      run ??= { session, updates: [], out: [] };
      run.updates.push(objectOf(message.params["update"]) ?? {});
      run.out.push(session.id === session.agentSession ? raw : forSession(raw, session.id));
    }
    if (run) await this.#passOn(run);
  }

  /** The recorded session that this is an update of. */
  #updated(agent: Agent, message: Message): RecordedSession | null {
    if (message.kind !== "notification" || message.method !== "session/update") return null;
    const agentSession = stringOf(message.params["sessionId"]) ?? "";
    return agent.muted.has(agentSession) ? null : this.#library.ofAgent(agentSession);
  }

  async #passOn(run: {
    readonly session: RecordedSession;
    readonly updates: Params[];
    readonly out: Buffer[];
  }): Promise<void> {
    await run.session.updates(run.updates);
    await this.#client.write(run.out.length === 1 ? run.out[0]! : Buffer.concat(run.out));
  }

  async #fromAgent(agent: Agent, message: Message): Promise<void> {
    const { raw } = message;
    if (message.kind === "other") return this.#client.write(raw);
    if (message.kind === "response") return this.#answerToClient(agent, message);
    const { method, params } = message;
    const agentSession = stringOf(params["sessionId"]);
    if (agentSession !== null && agent.muted.has(agentSession) && method === "session/update") return;
    const session = agentSession === null ? null : this.#library.ofAgent(agentSession);
    if (session) await this.#record(session, method, params);
    if (message.kind === "request") {
      if (this.#isClientGone) return this.#refuseAgent(agent, message.id, method);
      this.#agentRequests.set(message.id, { method, session: session?.id ?? null });
    }
    await this.#client.write(session && session.id !== agentSession ? forSession(raw, session.id) : raw);
  }

  async #record(session: RecordedSession, method: string, params: Params): Promise<void> {
    if (method === "session/request_permission") await session.permission(params);
    else await session.beside("agent", method, SECRET.test(method) ? null : params);
  }

  async #answerToClient(agent: Agent, message: Extract<Message, { kind: "response" }>): Promise<void> {
    const { id, result, error, raw } = message;
    const own = typeof id === "string" ? agent.asked.get(id) : undefined;
    if (own) {
      agent.asked.delete(id as string);
      return own(message);
    }
    const asked = this.#clientRequests.get(id);
    this.#clientRequests.delete(id);
    const made = stringOf(objectOf(result)?.["sessionId"]);
    switch (asked?.method) {
      case "initialize":
        agent.capabilities = objectOf(result);
        return this.#client.write(error === undefined ? lineOf({ id, result: withOurs(objectOf(result) ?? {}) }) : raw);
      case "session/new":
      case "session/fork":
        if (made !== null) {
          const cwd = stringOf(asked.params["cwd"]) ?? process.cwd();
          await this.#library.create(made, cwd);
          this.#folders.set(made, cwd);
          agent.sessions.add(made);
        }
        break;
      case "session/prompt":
        await this.#library.of(stringOf(asked.params["sessionId"]) ?? "")?.ended(result, error);
        break;
      default:
        break;
    }
    return this.#client.write(raw);
  }

  /** Tells the editor, closes what was open, and waits: the agent is started again when it is needed. */
  async #died(agent: Agent): Promise<void> {
    if (this.#agent === agent) this.#agent = null;
    for (const answer of agent.asked.values())
      answer({
        kind: "response",
        raw: Buffer.alloc(0),
        id: null,
        result: undefined,
        error: { message: "the agent has ended" },
      });
    for (const session of this.#library.open) await this.#leaveTurn(session, "the agent has ended");
    for (const id of this.#agentRequests.keys())
      await this.#client.write(lineOf({ method: "$/cancel_request", params: { requestId: id } }));
    this.#agentRequests.clear();
    const message = "The agent has ended. What it did so far is recorded. Send the next prompt to start it again.";
    for (const [id] of this.#clientRequests)
      await this.#client.write(lineOf({ id, error: { code: INTERNAL, message, data: { interrupted: true } } }));
    this.#clientRequests.clear();
  }

  async #leaveTurn(session: RecordedSession, why: string): Promise<void> {
    for (const update of await session.interrupted(why)) await this.#update(session.id, update);
  }

  /** The editor is gone. Nobody can approve anything, and no agent works unattended for long. */
  async #leave(): Promise<Ended> {
    const agent = this.#agent;
    if (!agent) {
      await this.#library.closeAll();
      return { code: 0, signal: null };
    }
    for (const [id, { method }] of this.#agentRequests) await this.#refuseAgent(agent, id, method);
    const prompts = [...this.#clientRequests.values()].filter(({ method }) => method === "session/prompt");
    if (prompts.length > 0) {
      await this.#untilAnswered();
      for (const { params } of this.#clientRequests.values()) {
        const session = this.#library.of(stringOf(params["sessionId"]) ?? "");
        if (session)
          await agent.to.write(lineOf({ method: "session/cancel", params: { sessionId: session.agentSession } }));
      }
      await this.#untilAnswered();
    }
    const ended = await agent.process.end(this.#options.graceMs);
    await this.#library.closeAll();
    return ended;
  }

  async #untilAnswered(): Promise<void> {
    const until = performance.now() + this.#options.graceMs;
    const isOpen = (): boolean => [...this.#clientRequests.values()].some(({ method }) => method === "session/prompt");
    while (this.#agent && isOpen() && performance.now() < until) await passed(20);
  }

  #refuseAgent(agent: Agent, id: RequestId, method: string): Promise<void> {
    this.#agentRequests.delete(id);
    const answer =
      method === "session/request_permission"
        ? { id, result: { outcome: { outcome: "cancelled" } } }
        : { id, error: { code: INTERNAL, message: "The editor has disconnected." } };
    return agent.to.write(lineOf(answer));
  }

  #refuse(id: RequestId, error: unknown): Promise<void> {
    const message = error instanceof Error ? error.message : String(error);
    const code = isHoldfastError(error, "SESSION_NOT_FOUND") ? NOT_FOUND : INTERNAL;
    return this.#client.write(lineOf({ id, error: { code, message } }));
  }

  /** A request of our own. Rejects with the agent's error. */
  #ask(agent: Agent, method: string, params: Params): Promise<unknown> {
    this.#serial += 1;
    const id = `holdfast:${this.#serial}`;
    return new Promise((resolve, reject) => {
      agent.asked.set(id, ({ result, error }) => {
        if (error === undefined) resolve(result);
        else reject(new Error(stringOf(objectOf(error)?.["message"]) ?? "the agent answered with an error"));
      });
      void agent.to.write(lineOf({ id, method, params }));
    });
  }

  #mute(agent: Agent, agentSession: string): () => Promise<void> {
    agent.muted.add(agentSession);
    return async () => {
      await passed(QUIET_MS);
      agent.muted.delete(agentSession);
    };
  }

  #update(sessionId: string, update: Params): Promise<void> {
    return this.#client.write(lineOf({ method: "session/update", params: { sessionId, update } }));
  }

  async #toAgent(line: Buffer): Promise<void> {
    await (await this.#running()).to.write(line);
  }
}
