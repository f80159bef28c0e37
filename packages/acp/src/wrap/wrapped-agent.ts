import type { Readable } from "node:stream";
import { setTimeout as passed } from "node:timers/promises";
import { isDeepStrictEqual } from "node:util";
import type { Ended } from "./agent-process.ts";
import { AgentRequests } from "./agent-requests.ts";
import { sessionCapabilities, withOurs } from "./capabilities.ts";
import { Client, type ClientOutput, type FromClient, type OnOpened, OpenedWith } from "./client.ts";
import type { Library } from "./library.ts";
import { LineSplitter } from "./lines.ts";
import { MergedList } from "./merged-list.ts";
import {
  type Change,
  changed,
  INTERNAL,
  type Message,
  messageIn,
  objectOf,
  type Params,
  type RequestId,
  SECRET,
  stringOf,
  updateLine,
} from "./message.ts";
import type { RecordedSession } from "./recorded-session.ts";
import { type Restored, restore, restoredWords, SERVERS_UNKNOWN } from "./restore.ts";
import { RunningAgent } from "./running-agent.ts";
import { transcriptOf } from "./transcript.ts";

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

type Request = Extract<Message, { kind: "request" }>;

/** What a run of lines has in common: they are recorded together, and then passed on together. */
interface Run {
  readonly session: RecordedSession;
  readonly updates: Params[];
  readonly out: Buffer[];
}

const ENDED = "The agent has ended. What it did so far is recorded. Send the next prompt to start it again.";
const LOADS = new Set(["session/load", "session/resume"]);
const MAKES = new Set(["session/new", "session/fork"]);
/** How long an agent has to do each of these without an editor: end its turn, close its sessions, end. */
const STEP_MS = 1_500;
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
  #client: Client | null = null;
  #clients = 0;
  #agent: RunningAgent | null = null;
  #initialize: Params | null = null;
  /** By the id that the agent knows. */
  readonly #clientRequests = new Map<RequestId, FromClient>();
  readonly #agentRequests = new AgentRequests();
  /** Sessions whose next prompt tells the agent what was said before. */
  readonly #forgotten = new Set<string>();
  readonly #openedWith: OpenedWith;
  /** The lines of the agent that are being handled. */
  #handling: Promise<void> = Promise.resolve();
  /** Until it resolves, the agent waits: a session is being replayed. */
  #replaying: Promise<void> | null = null;

  constructor(options: WrapOptions) {
    this.#options = options;
    this.#library = options.library;
    this.#listing = new MergedList(options.library);
    this.#openedWith = new OpenedWith(options.onOpened);
  }

  /** The agent's process, if it runs. */
  get agent(): { readonly pid: number; readonly mark: string } | null {
    return this.#agent?.process ?? null;
  }

  /** The agent works on a prompt. */
  get isBusy(): boolean {
    return this.#agent !== null && [...this.#clientRequests.values()].some(({ method }) => method === "session/prompt");
  }

  /** Starts the agent. Resolves with its end if it ends before it has answered to `initialize`; else with null. */
  async start(): Promise<{ readonly early: Promise<Ended | null> }> {
    const agent = await this.#start();
    return { early: agent.process.ended.then((ended) => (agent.capabilities === null ? ended : null)) };
  }

  /** Takes the place of another process that has died: the editor will not say again what it can do and has open. */
  continueFrom(initialize: Params | null, opened: readonly (readonly [string, Params])[]): void {
    this.#initialize = initialize;
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
    const lines = new LineSplitter();
    for await (const chunk of input) for (const line of lines.push(chunk)) await this.#fromClient(client, line);
    const rest = lines.end();
    if (rest) await this.#fromClient(client, rest);
  }

  /** Whether the editor waits for an answer, other than to a prompt. It may still read after it closed its side. */
  owes(client: Client): boolean {
    return [...this.#clientRequests.values()].some((of) => of.client === client && of.method !== "session/prompt");
  }

  /** The editor is gone. Nobody can approve anything. */
  async detach(client: Client): Promise<void> {
    if (this.#client !== client) return;
    this.#client = null;
    if (this.#agent) await this.#agentRequests.refuseAll(this.#agent);
  }

  /** Cancels the turns of sessions that no editor has open. */
  async cancelUnheard(): Promise<void> {
    for (const { method, params } of [...this.#clientRequests.values()]) {
      const session = method === "session/prompt" ? this.#library.of(stringOf(params["sessionId"]) ?? "") : null;
      if (!session || this.#client?.hears(session.id)) continue;
      this.#options.log("a turn without an editor is cancelled");
      await this.#agent?.send({ method: "session/cancel", params: { sessionId: session.agentSession } });
    }
  }

  /** Cancels what the agent does, closes its sessions, and ends it and everything that it started. */
  async end(): Promise<Ended> {
    const agent = this.#agent;
    if (!agent) {
      await this.#library.closeAll();
      return { code: 0, signal: null };
    }
    await this.cancelUnheard();
    const until = performance.now() + STEP_MS;
    while (this.isBusy && performance.now() < until) await passed(LOOK_MS);
    await agent.closeSessions(STEP_MS);
    const ended = await agent.process.end(STEP_MS);
    await this.#library.closeAll();
    return ended;
  }

  // The editor

  async #fromClient(client: Client, raw: Buffer): Promise<void> {
    const message = messageIn(raw);
    try {
      if (message.kind === "request") await this.#request(client, message);
      else if (message.kind === "notification") await this.#forward(client, message);
      else await this.#answerToAgent(message);
    } catch (error) {
      // What cannot be recorded is not passed on.
      if (message.kind !== "request") return this.#options.log(`a message was not passed on: ${String(error)}`);
      if (this.#clientRequests.delete(client.idForAgent(message.id))) await client.refuse(message.id, error);
    }
  }

  async #answerToAgent(message: Extract<Message, { kind: "response" | "other" }>): Promise<void> {
    if (message.kind === "response")
      await this.#agentRequests.answered(message.id, objectOf(objectOf(message.result)?.["outcome"]));
    await this.#agent?.to.write(message.raw);
  }

  async #request(client: Client, message: Request): Promise<void> {
    const { id, method, params } = message;
    // The end of an agent answers what it was asked. This is for the next one.
    if (this.#agent?.process.hasExited) await this.#agent.over;
    this.#clientRequests.set(client.idForAgent(id), { client, id, method, params });
    switch (method) {
      case "initialize":
        return this.#initialized(client, message);
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

  /** An agent is initialized once. An editor that can do other things than the one before it gets another agent. */
  async #initialized(client: Client, { id, params, raw }: Request): Promise<void> {
    const running = this.#agent;
    if (!client.isFirst && running?.capabilities && isDeepStrictEqual(params, this.#initialize))
      return this.#answer(client, id, { result: withOurs(running.capabilities) });
    this.#initialize = params;
    // Those before it are answered when the agent ends.
    this.#clientRequests.delete(client.idForAgent(id));
    if (!client.isFirst && running) {
      await running.process.end(STEP_MS);
      await running.over;
    }
    const agent = this.#agent ?? (await this.#start());
    this.#clientRequests.set(client.idForAgent(id), { client, id, method: "initialize", params });
    await agent.to.write(changed(raw, client.isFirst ? {} : { id: client.idForAgent(id) }));
  }

  async #prompt(client: Client, message: Request): Promise<void> {
    const session = await this.#sessionFor(client, message.params);
    if (!session) return this.#send(client, message, null);
    const isForgotten = this.#forgotten.has(session.id);
    const told = isForgotten ? [{ type: "text", text: transcriptOf(await session.history()) }] : [];
    if (!this.#isOpen(client, message)) return;
    await session.prompt(message.params);
    this.#forgotten.delete(session.id);
    const params = (own: Params): Params => ({
      ...own,
      prompt: [...told, ...(Array.isArray(own["prompt"]) ? own["prompt"] : [])],
    });
    return this.#send(client, message, session, isForgotten ? { params } : {});
  }

  /** The recorded session, open at the agent that is running now. */
  async #sessionFor(client: Client, params: Params): Promise<RecordedSession | null> {
    const known = stringOf(params["sessionId"]) ?? "";
    const agent = await this.#running();
    const session = this.#library.of(known) ?? (agent.sessions.has(known) ? null : await this.#library.reopen(known));
    if (!session || agent.sessions.has(session.agentSession)) return session;
    const openedWith = this.#openedWith.of(session.id);
    const { rung } = await this.#restore(session, openedWith ?? { cwd: session.cwd ?? process.cwd() });
    client.opened(session.id);
    await this.#tell(session, rung, openedWith !== null);
    return session;
  }

  async #load(client: Client, message: Request): Promise<void> {
    const { id, method, params } = message;
    const session = await this.#library.reopen(stringOf(params["sessionId"]) ?? "");
    // A session from before it was wrapped.
    if (!session) return this.#send(client, message, null);
    await this.#openedWith.set(session.id, params);
    const restored = await this.#restore(session, params);
    const { promise, resolve } = Promise.withResolvers<void>();
    this.#replaying = promise;
    try {
      // What the agent says meanwhile comes after the replay, and is not in it.
      await this.#handling;
      if (method === "session/load")
        for (const update of await session.history()) await client.write(updateLine(session.id, update));
      client.opened(session.id);
    } finally {
      this.#replaying = null;
      resolve();
    }
    await this.#tell(session, restored.rung);
    return this.#answer(client, id, { result: restored.answer });
  }

  async #restore(session: RecordedSession, params: Params): Promise<Restored> {
    const agent = await this.#running();
    const restored = await restore({ session, params, ...agent.restoring(session.agentSession) });
    agent.sessions.add(session.agentSession);
    if (restored.rung === "new" && !session.isEmpty) this.#forgotten.add(session.id);
    return restored;
  }

  /** Which of the ways it was, for the person. */
  async #tell(session: RecordedSession, rung: Restored["rung"], isOpenedWith = true): Promise<void> {
    const restored = session.isEmpty ? null : restoredWords(rung, this.#client?.isFirst === false);
    const text = [restored, isOpenedWith ? null : SERVERS_UNKNOWN].filter((one) => one !== null).join(" ");
    if (text === "") return;
    await this.#update(session.id, { sessionUpdate: "agent_thought_chunk", content: { type: "text", text } });
  }

  async #list(client: Client, { id, params }: Request): Promise<void> {
    const agent = await this.#running();
    const canList = sessionCapabilities(agent.capabilities)["list"] != null;
    const result = await this.#listing.page(params, canList ? (given) => agent.ask("session/list", given) : null);
    return this.#answer(client, id, { result });
  }

  async #close(client: Client, message: Request): Promise<void> {
    const { id, method, params } = message;
    const known = stringOf(params["sessionId"]) ?? "";
    const agent = await this.#running();
    const [, verb = ""] = method.split("/");
    const session = this.#library.of(known);
    const agentSession = session?.agentSession ?? known;
    if (session) await this.#leaveTurn(session, "closed by the editor");
    if (method === "session/delete") await this.#library.remove(known);
    else await this.#library.close(known);
    await this.#openedWith.delete(known);
    agent.sessions.delete(agentSession);
    if (sessionCapabilities(agent.capabilities)[verb] != null) return this.#send(client, message, session);
    await agent.send({ method: "session/cancel", params: { sessionId: agentSession } });
    return this.#answer(client, id, { result: {} });
  }

  /** Anything else about a session, or about none. */
  async #forward(client: Client, message: Extract<Message, { kind: "request" | "notification" }>): Promise<void> {
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

  // The agent

  async #start(): Promise<RunningAgent> {
    const agent = await RunningAgent.start(this.#options.command, this.#options.stderr);
    this.#agent = agent;
    agent.over = this.#readAgent(agent);
    this.#options.onStarted?.();
    return agent;
  }

  /** Starts the agent again if it has died. */
  async #running(): Promise<RunningAgent> {
    if (this.#agent?.process.hasExited) await this.#agent.over;
    if (this.#agent) return this.#agent;
    const agent = await this.#start();
    this.#options.log("the agent was started again");
    const answer = await agent.ask("initialize", this.#initialize ?? { protocolVersion: 1 });
    agent.capabilities = objectOf(answer) ?? {};
    return agent;
  }

  async #readAgent(agent: RunningAgent): Promise<void> {
    try {
      for await (const lines of agent.lines()) {
        while (this.#replaying) await this.#replaying;
        this.#handling = this.#linesFromAgent(agent, lines);
        await this.#handling;
      }
    } catch (error) {
      // The journal cannot be written: what cannot be recorded is not passed on, and the editor is told.
      this.#handling = Promise.resolve();
      this.#options.log(`recording failed: ${error instanceof Error ? error.message : String(error)}`);
      void agent.process.end(0);
    }
    await agent.process.ended;
    await this.#died(agent);
  }

  /** What arrived together. Updates of a session in a row are recorded together, and then passed on together. */
  async #linesFromAgent(agent: RunningAgent, lines: readonly Buffer[]): Promise<void> {
    let run: Run | null = null;
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
      run.out.push(session.id === session.agentSession ? raw : changed(raw, { session: session.id }));
    }
    if (run) await this.#passOn(run);
  }

  /** The recorded session that this is an update of. */
  #updated(agent: RunningAgent, message: Message): RecordedSession | null {
    if (message.kind !== "notification" || message.method !== "session/update") return null;
    const agentSession = stringOf(message.params["sessionId"]) ?? "";
    return agent.isMuted(agentSession) ? null : this.#library.ofAgent(agentSession);
  }

  async #passOn({ session, updates, out }: Run): Promise<void> {
    await session.updates(updates);
    if (!this.#client?.hears(session.id)) return;
    await this.#client.write(out.length === 1 ? out[0]! : Buffer.concat(out));
  }

  async #fromAgent(agent: RunningAgent, message: Message): Promise<void> {
    const { raw } = message;
    if (message.kind === "other") return this.#client?.write(raw);
    if (message.kind === "response") return this.#answerToClient(agent, message);
    const { method, params } = message;
    const agentSession = stringOf(params["sessionId"]);
    if (agentSession !== null && agent.isMuted(agentSession) && method === "session/update") return;
    const session = agentSession === null ? null : this.#library.ofAgent(agentSession);
    if (method === "session/request_permission") await session?.permission(params);
    else await session?.beside("agent", method, SECRET.test(method) ? null : params);
    const client = this.#client;
    const isHeard = client?.hears(session?.id ?? null) === true;
    if (message.kind === "request") {
      if (!isHeard) return this.#agentRequests.refuse(agent, message.id, { method, session });
      this.#agentRequests.asked(message.id, { method, session });
    }
    if (isHeard)
      await client!.write(changed(raw, session && session.id !== agentSession ? { session: session.id } : {}));
  }

  async #answerToClient(agent: RunningAgent, message: Extract<Message, { kind: "response" }>): Promise<void> {
    const { id, result, error, raw } = message;
    if (agent.answered(message)) return;
    const asked = this.#clientRequests.get(id);
    this.#clientRequests.delete(id);
    if (!asked) return this.#client?.write(raw);
    await this.#recordAnswer(agent, asked, result, error);
    if (asked.method === "initialize") agent.capabilities = objectOf(result);
    if (asked.client !== this.#client) return;
    const ours = asked.method === "initialize" && error === undefined ? withOurs(objectOf(result) ?? {}) : null;
    if (ours) return asked.client.answer(asked.id, { result: ours });
    return asked.client.write(changed(raw, asked.client.isFirst ? {} : { id: asked.id }), asked.id);
  }

  async #recordAnswer(agent: RunningAgent, asked: FromClient, result: unknown, error: unknown): Promise<void> {
    const known = this.#library.of(stringOf(asked.params["sessionId"]) ?? "");
    const made = stringOf(objectOf(result)?.["sessionId"]);
    const closing = asked.method === "session/prompt" ? await known?.ended(result, error) : [];
    // An editor that came back does not get this answer, which would tell it that the turn has ended.
    if (asked.client !== this.#client) for (const update of closing ?? []) await this.#update(known!.id, update);
    // One that is not recorded: the agent was asked to open it as it came.
    if (LOADS.has(asked.method) && !known && error === undefined)
      agent.sessions.add(stringOf(asked.params["sessionId"]) ?? "");
    if (!MAKES.has(asked.method) || made === null) return;
    const cwd = stringOf(asked.params["cwd"]) ?? known?.cwd ?? process.cwd();
    await (known ? this.#library.fork(known, made, cwd) : this.#library.create(made, cwd));
    await this.#openedWith.set(made, asked.params);
    agent.sessions.add(made);
    asked.client.opened(made);
  }

  /** Tells the editor, closes what was open, and waits: the agent is started again when it is needed. */
  async #died(agent: RunningAgent): Promise<void> {
    if (this.#agent === agent) this.#agent = null;
    agent.failRequests();
    for (const session of this.#library.open) await this.#leaveTurn(session, "the agent has ended");
    await this.#agentRequests.withdraw(this.#client);
    const error = { code: INTERNAL, message: ENDED, data: { interrupted: true } };
    const unanswered = [...this.#clientRequests.values()];
    this.#clientRequests.clear();
    for (const { client, id } of unanswered) if (client === this.#client) await client.answer(id, { error });
  }

  async #leaveTurn(session: RecordedSession, why: string): Promise<void> {
    for (const update of await session.interrupted(why)) await this.#update(session.id, update);
  }

  /** False if the agent has ended meanwhile: the editor was told so, and the next agent is not asked. */
  #isOpen(client: Client, { id }: Request): boolean {
    return this.#clientRequests.has(client.idForAgent(id));
  }

  async #answer(client: Client, id: RequestId, answer: Params): Promise<void> {
    if (this.#clientRequests.delete(client.idForAgent(id))) await client.answer(id, answer);
  }

  async #update(session: string, update: Params): Promise<void> {
    if (this.#client?.hears(session)) await this.#client.write(updateLine(session, update));
  }

  /** A message of the editor's, with the ids that the agent knows. */
  async #send(
    client: Client,
    message: Extract<Message, { kind: "request" | "notification" }>,
    session: RecordedSession | null,
    change: Change = {},
  ): Promise<void> {
    const line = changed(message.raw, {
      ...change,
      ...(message.kind === "request" && !client.isFirst ? { id: client.idForAgent(message.id) } : {}),
      ...(session && session.agentSession !== session.id ? { session: session.agentSession } : {}),
    });
    // An agent is not started only to be told something.
    if (message.kind !== "request") return this.#agent?.to.write(line);
    const agent = await this.#running();
    if (this.#isOpen(client, message)) await agent.to.write(line);
  }
}
