import type { Readable } from "node:stream";
import { setTimeout as passed } from "node:timers/promises";
import { isDeepStrictEqual } from "node:util";
import { sessionCapabilities, withOurs } from "../record/capabilities.ts";
import type { Library } from "../record/library.ts";
import { MergedList } from "../record/merged-list.ts";
import {
  type Change,
  changedLine,
  type Line,
  objectOf,
  type Params,
  type RequestId,
  stringOf,
  updateLine,
} from "../record/message.ts";
import type { RecordedSession } from "../record/recorded-session.ts";
import { wordsOf } from "../record/words-of.ts";
import { AgentKeeper } from "./agent-keeper.ts";
import { type Ended, STEP_MS } from "./agent-process.ts";
import { AgentReader } from "./agent-reader.ts";
import { AgentRequests } from "./agent-requests.ts";
import { Client, type ClientOutput, type OnOpened, type Opened, OpenedWith } from "./client.ts";
import { ClientRequests } from "./client-requests.ts";
import { LineReader } from "./lines.ts";
import { inPlaceOf, type LongLine, longLineWords, refusalOf } from "./long-line.ts";
import type { RunningAgent } from "./running-agent.ts";
import { SessionOpener } from "./session-opener.ts";

export interface WrapOptions {
  readonly command: readonly string[];
  readonly library: Library;
  /** For the person who reads the editor's log. */
  readonly log: (line: string) => void;
  /** Takes what the agent writes to standard error. Default: it goes to ours. */
  readonly stderr?: (stream: Readable) => void;
  /** An agent runs, the first one or another. */
  readonly onStarted?: () => void;
  /** Keeps what a session was opened with for the process that takes over if this one dies. */
  readonly onOpened?: OnOpened;
}

type Request = Extract<Line, { kind: "request" }>;
type Call = Extract<Line, { kind: "request" | "notification" }>;
type Response = Extract<Line, { kind: "response" }>;

/** These wait for answers of the agent to requests of our own. */
const LONG = new Set(["session/load", "session/resume", "session/list", "session/close", "session/delete"]);
const LOOK_MS = 20;

/**
 * Stands between an editor and an agent. Everything is recorded before it is passed on, and passed on as it came;
 * messages change only where a session has another id at the agent, where we can do more than the agent, and for an
 * editor that takes the place of another.
 */
export class WrappedAgent {
  readonly #options: WrapOptions;
  readonly #library: Library;
  readonly #listing: MergedList;
  readonly #agents: AgentKeeper;
  #client: Client | null = null;
  #clients = 0;
  readonly #clientRequests = new ClientRequests();
  readonly #agentRequests = new AgentRequests();
  readonly #openedWith: OpenedWith;
  readonly #opener: SessionOpener;
  readonly #reader: AgentReader;

  constructor(options: WrapOptions) {
    const { command, library, log, stderr, onStarted, onOpened } = options;
    this.#options = options;
    this.#library = library;
    this.#listing = new MergedList(library);
    this.#openedWith = new OpenedWith(onOpened);
    this.#reader = new AgentReader({
      ...{ library, log, openedWith: this.#openedWith },
      ...{ clientRequests: this.#clientRequests, agentRequests: this.#agentRequests },
      client: () => this.#client,
      onEnded: (agent) => this.#agents.forget(agent),
    });
    this.#agents = new AgentKeeper({
      ...{ command, log, ...(stderr ? { stderr } : {}) },
      read: (agent) => this.#reader.read(agent),
      onStarted: () => onStarted?.(),
    });
    this.#opener = new SessionOpener({
      ...{ library, agents: this.#agents, openedWith: this.#openedWith },
      show: (session, update) => this.#reader.show(session, update),
      isBack: () => this.#client?.isFirst === false,
    });
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
    return this.#agent !== null && this.#clientRequests.prompts.length > 0;
  }

  /** Starts the agent. Resolves with its end if it ends before it has answered to `initialize`; else with null. */
  async start(): Promise<{ readonly early: Promise<Ended | null> }> {
    const agent = await this.#agents.start();
    return { early: agent.process.ended.then((ended) => (agent.capabilities === null ? ended : null)) };
  }

  /** Takes the place of another process that has died: the editor will not say again what it can do and has open. */
  continueFrom(initialize: Params | null, opened: readonly Opened[]): void {
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
  async read(client: Client, input: AsyncIterable<Buffer>): Promise<void> {
    const lines = new LineReader();
    for await (const chunk of input) for (const line of lines.push(chunk)) await this.#fromClient(client, line);
    const rest = lines.end();
    if (rest) await this.#fromClient(client, rest);
  }

  /** Whether the editor waits for an answer, other than to a prompt. It may still read after it closed its side. */
  owes(client: Client): boolean {
    return client.lanes.isBusy || this.#clientRequests.isOwed(client);
  }

  /** The editor is gone. Nobody can approve anything. */
  async detach(client: Client): Promise<void> {
    if (this.#client !== client) return;
    this.#client = null;
    if (this.#agent) await this.#agentRequests.refuseAll(this.#agent);
  }

  /** Cancels the turns of sessions that no editor has open. */
  async cancelUnheard(): Promise<void> {
    await this.#cancelTurns(({ id }) => this.#client?.hears(id) !== true);
  }

  async #cancelTurns(isMeant: (session: RecordedSession) => boolean): Promise<void> {
    for (const prompted of this.#clientRequests.prompts) {
      const session = this.#library.of(prompted);
      if (!session || !isMeant(session)) continue;
      this.#options.log("a turn is cancelled: nobody waits for it");
      await this.#agent?.send({ method: "session/cancel", params: { sessionId: session.agentSession } });
    }
  }

  /** Cancels what the agent does, closes its sessions, and ends it and everything that it started. */
  async end(): Promise<Ended> {
    const agent = await this.#agents.last();
    try {
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

  // The editor

  /** Resolves when the next line may be read. What is said about a session stays in order. */
  #fromClient(client: Client, line: Line | LongLine): Promise<void> {
    if (!("raw" in line)) {
      this.#options.log(longLineWords("editor", line));
      return line.kind === "response" ? this.#fromClient(client, inPlaceOf(line)) : client.write(refusalOf(line));
    }
    // The agent may wait for this answer before it does what other messages wait for.
    if (line.kind === "response" || line.kind === "other") return this.#handle(client, line);
    return client.lanes.run(this.#laneOf(client, line), line.raw.length, this.#mayTakeLong(line), () =>
      this.#handle(client, line),
    );
  }

  #laneOf(client: Client, { method, params }: Call): string {
    // It must not overtake the request that it cancels.
    const of =
      method === "$/cancel_request"
        ? this.#clientRequests.of(client, params["requestId"] as RequestId)?.params
        : params;
    return method === "session/list" ? method : (stringOf(of?.["sessionId"]) ?? "");
  }

  /** An agent or a session has to be started first, or the agent is asked something for it. */
  #mayTakeLong(message: Call): boolean {
    if (message.kind === "notification" || message.method === "initialize") return false;
    const agent = this.#agent;
    if (LONG.has(message.method) || !agent || !this.#agents.isRunning) return true;
    const known = stringOf(message.params["sessionId"]);
    return known !== null && !agent.sessions.has(this.#library.of(known)?.agentSession ?? known);
  }

  /** Never rejects. */
  async #handle(client: Client, message: Line): Promise<void> {
    try {
      if (message.kind === "request") await this.#request(client, message);
      else if (message.kind === "notification") await this.#forward(client, message);
      else if (message.kind === "response") await this.#answerToAgent(client, message);
      else await this.#agent?.to.write(message.raw);
    } catch (error) {
      // What cannot be recorded is not passed on.
      if (message.kind !== "request") return this.#options.log(`a message was not passed on: ${wordsOf(error)}`);
      if (this.#clientRequests.close(client, message.id)) await client.refuse(message.id, error);
    }
  }

  /** An answer to an agent that has ended is not for the one that runs now, whatever its id is. */
  async #answerToAgent(client: Client, message: Response): Promise<void> {
    const { id, result } = message;
    if (client !== this.#client) return;
    const asked = await this.#agentRequests.answered(id, objectOf(objectOf(result)?.["outcome"]));
    const agent = this.#agent;
    if (!agent) return;
    if (asked) return agent.to.write(changedLine(message, agent.isFirst ? {} : { id: asked.id }));
    if (agent.isFirst || id === null) return agent.to.write(message.raw);
    this.#options.log("an answer to a request that nobody waits for was not passed on");
  }

  async #request(client: Client, message: Request): Promise<void> {
    const { id, method, params } = message;
    // The end of an agent answers what it was asked. This is for the next one.
    if (this.#agent?.process.hasExited) await this.#agent.over;
    this.#clientRequests.asked({ client, id, method, params });
    if (method === "initialize") return this.#initialized(client, message);
    if (this.#agent?.isKnownVersion === false) return this.#pass(client, message);
    switch (method) {
      case "session/prompt":
        return this.#prompt(client, message);
      case "session/load":
      case "session/resume":
        return this.#load(client, message);
      case "session/list":
        return this.#list(client, message);
      case "session/close":
      case "session/delete":
        return this.#close(client, message);
      default:
        return this.#forward(client, message);
    }
  }

  /** In a version of the protocol that we do not know. */
  async #pass(client: Client, message: Request): Promise<void> {
    const { method, params } = message;
    const session = this.#library.of(stringOf(params["sessionId"]) ?? "");
    if (method === "session/prompt") await session?.prompt(params);
    else await session?.beside("client", method, null);
    return this.#send(client, message, null);
  }

  /** An agent is initialized once. An editor that can do other things than the one before it gets another agent. */
  async #initialized(client: Client, message: Request): Promise<void> {
    const { id, params } = message;
    const running = this.#agent;
    if (!client.isFirst && running?.capabilities && isDeepStrictEqual(params, this.#agents.initialize)) {
      return this.#answer(client, id, { result: withOurs(running.capabilities) });
    }
    this.#agents.initialize = params;
    // Those before it are answered when the agent ends.
    this.#clientRequests.close(client, id);
    if (!client.isFirst && running) {
      await running.process.end(STEP_MS);
      await running.over;
    }
    const agent = this.#agent ?? (await this.#agents.start());
    this.#clientRequests.asked({ client, id, method: "initialize", params });
    await agent.to.write(changedLine(message, client.isFirst ? {} : { id: client.idForAgent(id) }));
  }

  async #prompt(client: Client, message: Request): Promise<void> {
    const session = await this.#sessionFor(client, message.params);
    if (!session) return this.#send(client, message, null);
    const untold = await this.#opener.untold(session);
    if (!this.#isOpen(client, message)) return;
    await session.prompt(message.params);
    this.#opener.told(session);
    const params = (own: Params): Params => ({
      ...own,
      prompt: [{ type: "text", text: untold }, ...(Array.isArray(own["prompt"]) ? own["prompt"] : [])],
    });
    return this.#send(client, message, session, untold === null ? {} : { params });
  }

  /** The recorded session, open at the agent that is running now. */
  async #sessionFor(client: Client, params: Params): Promise<RecordedSession | null> {
    // It hears what it talks about, also if it has not loaded it.
    const id = stringOf(params["sessionId"]);
    if (id !== null) client.opened(id);
    return this.#opener.sessionOf(params);
  }

  async #load(client: Client, message: Request): Promise<void> {
    const { id, method, params } = message;
    const session = await this.#library.reopen(stringOf(params["sessionId"]) ?? "");
    // A session from before it was wrapped.
    if (!session) return this.#send(client, message, null);
    await this.#openedWith.set(session.id, params);
    const restored = await this.#opener.restore(session, params);
    await this.#reader.meanwhile(async () => {
      if (method === "session/load")
        for (const update of await session.history())
          await client.writeUpdates(updateLine(session.id, update), session.id, [update]);
      client.opened(session.id);
    });
    await this.#opener.tell(session, restored);
    const { answer, commands } = this.#openedWith.settings(session.id);
    await this.#answer(client, id, { result: { ...restored.answer, ...answer } });
    // An editor knows the session only after the answer.
    if (commands) await this.#reader.show(session.id, commands);
  }

  async #list(client: Client, { id, params }: Request): Promise<void> {
    const agent = await this.#agents.initialized();
    const canList = sessionCapabilities(agent.capabilities)["list"] != null;
    const result = await this.#listing.page(params, canList ? (given) => agent.ask("session/list", given) : null);
    return this.#answer(client, id, { result });
  }

  async #close(client: Client, message: Request): Promise<void> {
    const { id, method, params } = message;
    const known = stringOf(params["sessionId"]) ?? "";
    const agent = await this.#agents.initialized();
    const [, verb = ""] = method.split("/");
    const session = this.#library.of(known);
    const agentSession = session?.agentSession ?? known;
    if (session) await this.#reader.leaveTurn(session, "closed by the editor");
    if (method === "session/delete") await this.#library.remove(known);
    else await this.#library.close(known);
    await this.#openedWith.delete(known);
    agent.sessions.delete(agentSession);
    if (sessionCapabilities(agent.capabilities)[verb] != null) return this.#send(client, message, session);
    await agent.send({ method: "session/cancel", params: { sessionId: agentSession } });
    return this.#answer(client, id, { result: {} });
  }

  /** Anything else about a session, or about none. */
  async #forward(client: Client, message: Call): Promise<void> {
    const { method, params } = message;
    const known = stringOf(params["sessionId"]);
    const isRequest = message.kind === "request" && known !== null;
    const session = isRequest ? await this.#sessionFor(client, params) : this.#library.of(known ?? "");
    // What an editor sets may be secret: that it did is recorded. A turn can be stopped also on a full disk.
    const recorded = session?.beside("client", method, null);
    await (method === "session/cancel" ? recorded?.catch((error) => this.#options.log(String(error))) : recorded);
    if (method !== "$/cancel_request" || client.isFirst) return this.#send(client, message, session);
    const requestId = client.idForAgent(params["requestId"] as RequestId);
    return this.#send(client, message, session, { params: (own) => ({ ...own, requestId }) });
  }

  /** False if the agent has ended meanwhile: the editor was told so, and the next agent is not asked. */
  #isOpen(client: Client, { id }: Request): boolean {
    return this.#clientRequests.of(client, id) !== null;
  }

  async #answer(client: Client, id: RequestId, answer: Params): Promise<void> {
    if (this.#clientRequests.close(client, id)) await client.answer(id, answer);
  }

  /** A message of the editor's, with the ids that the agent knows. */
  async #send(client: Client, message: Call, session: RecordedSession | null, change: Change = {}): Promise<void> {
    const line = changedLine(message, {
      ...change,
      ...(message.kind === "request" && !client.isFirst ? { id: client.idForAgent(message.id) } : {}),
      ...(session && session.agentSession !== session.id ? { session: session.agentSession } : {}),
    });
    // An agent is not started only to be told something.
    if (message.kind !== "request") return this.#agent?.to.write(line);
    const agent = await this.#agents.running();
    if (this.#isOpen(client, message)) await agent.to.write(line);
  }
}
