import { basename } from "node:path";
import { errorKind, HoldfastError, isHoldfastError, type Json, type Store } from "holdfast";
import { sessionCapabilities, withOurs } from "../record/capabilities.ts";
import { AgentError, OwnRequests } from "../record/holdfast-to-agent.ts";
import { Lanes } from "../record/lanes.ts";
import { Library } from "../record/library.ts";
import { mergeChunks } from "../record/merge-chunks.ts";
import { MergedList } from "../record/merged-list.ts";
import {
  changed,
  INTERNAL,
  type Message,
  messageOf,
  NOT_FOUND,
  objectOf,
  type Params,
  type RequestId,
  stringOf,
} from "../record/message.ts";
import { MutedReplays } from "../record/muted-replays.ts";
import type { RecordedSession } from "../record/recorded-session.ts";
import { restore, restoredWords } from "../record/restore.ts";
import { transcriptOf } from "../record/transcript.ts";
import { wordsOf } from "../record/words-of.ts";
import { rebuildBy } from "./rebuild.ts";
import { RecordedHistory } from "./recorded-history.ts";
import type { DurableOptions, MessageStream } from "./surface.ts";

type Request = Extract<Message, { kind: "request" }>;
type Response = Extract<Message, { kind: "response" }>;
type Call = Extract<Message, { kind: "request" | "notification" }>;

/** JSON-RPC's code for parameters that cannot be used. */
const INVALID_PARAMS = -32602;
/** So many messages may wait for the agent. */
const WAITING_MAX = 64;
/** Answered here. They may take a while, and the agent may ask the client things meanwhile. */
const LONG = new Set(["session/load", "session/resume", "session/list", "session/close", "session/delete"]);

interface PendingRequest {
  readonly method: string;
  readonly params: Params;
}

/** The agent's answer to `initialize`, and what depends on it. */
interface Agent {
  readonly answer: Params;
  readonly library: Library;
  readonly listing: MergedList;
}

/** Both directions between a client and an agent in this process. */
export class DurableConnection {
  readonly readable: ReadableStream<unknown>;
  readonly writable: WritableStream<unknown>;
  readonly #store: Store;
  readonly #options: DurableOptions;
  readonly #client: WritableStreamDefaultWriter<unknown>;
  #toAgent!: ReadableStreamDefaultController<unknown>;
  #wanted: (() => void) | null = null;
  /** Null until the protocol's version 1 is agreed on: until then, and in other versions, everything passes. */
  #agent: Agent | null = null;
  readonly #clientRequests = new Map<RequestId, PendingRequest>();
  readonly #agentRequests = new Map<RequestId, PendingRequest>();
  readonly #own = new OwnRequests((request) => this.#give(request));
  /** Resolves when the agent has answered `initialize`: what follows needs to know what it can do. */
  #initializing: { readonly done: Promise<void>; readonly resolve: () => void } | null = null;
  readonly #lanes = new Lanes();
  /** The agent's own replays, which are not shown. */
  readonly #replays = new MutedReplays();
  /** The next prompt of these tells the agent what was said before. */
  readonly #forgotten = new Set<string>();
  /** Recording failed, so nothing more of the agent's turn is passed on. By the client's ids, and the agent's. */
  readonly #failed = new Map<string, string>();
  #isClientGone = false;

  constructor(stream: MessageStream<unknown>, store: Store, options: DurableOptions) {
    this.#store = store;
    this.#options = options;
    this.#client = stream.writable.getWriter();
    // A client that is gone is noticed by the next write, and by the end of its messages.
    this.#client.closed.catch(() => undefined);
    const reader = stream.readable.getReader();
    this.readable = new ReadableStream<unknown>(
      {
        start: (controller) => {
          this.#toAgent = controller;
          void this.#readClient(reader);
        },
        pull: () => this.#wanted?.(),
        cancel: (reason) => reader.cancel(reason),
      },
      { highWaterMark: WAITING_MAX },
    );
    this.writable = new WritableStream<unknown>({
      write: (value) => this.#fromAgent(messageOf(value)),
      close: () => this.#client.close(),
      abort: (reason) => this.#client.abort(reason),
    });
  }

  async checkpoint(sessionId: string, value: Json): Promise<void> {
    const session = this.#agent?.library.ofAgent(sessionId) ?? this.#agent?.library.of(sessionId);
    if (!session)
      throw new HoldfastError("SESSION_NOT_FOUND", `Session ${sessionId} is not open. Nothing was recorded.`, {
        id: sessionId,
      });
    await RecordedHistory.of(session).checkpoint(value);
  }

  // The client

  async #readClient(reader: ReadableStreamDefaultReader<unknown>): Promise<void> {
    try {
      for (;;) {
        while ((this.#toAgent.desiredSize ?? 1) <= 0)
          await new Promise<void>((resolve) => {
            this.#wanted = resolve;
          });
        const { done, value } = await reader.read();
        if (done) break;
        await this.#fromClient(messageOf(value));
      }
      this.#isClientGone = true;
      this.#toAgent.close();
    } catch (error) {
      this.#isClientGone = true;
      this.#toAgent.error(error);
    }
    for (const { id, isRunning } of this.#agent?.library.open ?? []) if (!isRunning) await this.#letGo(id);
  }

  /** Resolves when the next message may follow. Messages of a session stay in order. */
  #fromClient(message: Message): Promise<void> {
    if (message.kind === "request") {
      const { id, method, params } = message;
      this.#clientRequests.set(id, { method, params });
    }
    const initialized = message.kind === "response" ? undefined : this.#initializing?.done;
    const isLong = message.kind === "request" && LONG.has(message.method) && this.#agent !== null;
    if (message.kind === "request" && message.method === "initialize") {
      const { promise: answered, resolve } = Promise.withResolvers<void>();
      this.#initializing = { done: answered, resolve };
    }
    // Nothing stops the reading: an answer that the agent waits for may be behind many messages.
    return this.#lanes.run(this.#laneOf(message), 0, isLong || initialized !== undefined, () =>
      initialized ? initialized.then(() => this.#handle(message)) : this.#handle(message),
    );
  }

  #laneOf(message: Message): string {
    if (message.kind !== "request" && message.kind !== "notification") return "";
    const { method, params } = message;
    // It must not overtake the request that it cancels.
    const of =
      method === "$/cancel_request" ? this.#clientRequests.get(params["requestId"] as RequestId)?.params : params;
    return method === "session/list" ? "session/list" : (stringOf(of?.["sessionId"]) ?? "");
  }

  /** Never rejects. */
  async #handle(message: Message): Promise<void> {
    if (this.#agent === null || message.kind === "other") return this.#give(message.value);
    try {
      if (message.kind === "request") await this.#request(this.#agent, message);
      else if (message.kind === "response") await this.#answerToAgent(this.#agent, message);
      else await this.#forward(this.#agent, message);
    } catch (error) {
      if (message.kind === "request") await this.#refuse(message.id, error);
      else this.#log(`a message was not passed on: ${wordsOf(error)}`);
    }
  }

  #request(agent: Agent, message: Request): Promise<void> {
    switch (message.method) {
      case "session/prompt":
        return this.#prompt(agent, message);
      case "session/load":
      case "session/resume":
        return this.#load(agent, message);
      case "session/list":
        return this.#list(agent, message);
      case "session/close":
      case "session/delete":
        return this.#end(agent, message);
      default:
        return this.#forward(agent, message);
    }
  }

  async #prompt({ library }: Agent, { id, params, value }: Request): Promise<void> {
    const sessionId = stringOf(params["sessionId"]) ?? "";
    let session = library.of(sessionId);
    if (!session && this.#failed.has(sessionId)) {
      // The agent still has it: recording is tried again, and this prompt fails if it fails again.
      session = await library.reopen(sessionId);
      if (session) this.#failed.delete(sessionId);
    }
    if (!session) {
      const message = `Session ${sessionId} is not open. Load it, or start a new one. The prompt was not passed on.`;
      return this.#answer(id, { error: { code: NOT_FOUND, message } });
    }
    const told = this.#forgotten.has(sessionId)
      ? { type: "text", text: transcriptOf(mergeChunks(await session.history())) }
      : null;
    try {
      await session.prompt(params);
    } catch (error) {
      if (isOfStore(error)) {
        this.#failed.set(sessionId, session.agentSession);
        await this.#letGo(sessionId);
      }
      throw error;
    }
    this.#forgotten.delete(sessionId);
    const prompt = Array.isArray(params["prompt"]) ? (params["prompt"] as readonly unknown[]) : [];
    const change = told && { params: (own: Params): Params => ({ ...own, prompt: [told, ...prompt] }) };
    this.#give(changed(value, { session: session.agentSession, ...change }));
  }

  async #load(agent: Agent, { id, method, params, value }: Request): Promise<void> {
    const sessionId = stringOf(params["sessionId"]) ?? "";
    const isOpen = agent.library.of(sessionId) !== null;
    const session = await agent.library.reopen(sessionId);
    if (!session) {
      const isOwn = method === "session/load" ? canLoad(agent) : sessionCapabilities(agent.answer)["resume"] != null;
      // A session from before the agent was durable.
      if (isOwn) return this.#give(value);
      return this.#answer(id, { error: { code: NOT_FOUND, message: `There is no session ${sessionId}.` } });
    }
    let answer: Params;
    let words: string | null = null;
    const before = mergeChunks(await session.history());
    try {
      if (isOpen) answer = {};
      else if (this.#options.restore) answer = await rebuildBy(this.#options.restore, session, params);
      else [answer, words] = await this.#restoreByProtocol(agent, session, params);
    } catch (error) {
      await this.#letGo(sessionId);
      throw error;
    }
    this.#failed.delete(sessionId);
    if (method === "session/load") for (const update of before) await this.#update(sessionId, update);
    if (words !== null && before.length > 0)
      await this.#update(sessionId, { sessionUpdate: "agent_thought_chunk", content: { type: "text", text: words } });
    await this.#answer(id, { result: answer });
  }

  /** By what the agent offers over the protocol. */
  async #restoreByProtocol(agent: Agent, session: RecordedSession, params: Params): Promise<[Params, string | null]> {
    const isEmpty = session.isEmpty;
    const restored = await restore({
      session,
      params,
      capabilities: objectOf(agent.answer["agentCapabilities"]) ?? {},
      isOpen: false,
      request: (method, given) => this.#own.ask(method, given),
      mute: (agentSession) => this.#replays.mute(agentSession),
    });
    if (restored.rung === "new" && !isEmpty) this.#forgotten.add(session.id);
    return [restored.answer, restoredWords(restored, false)];
  }

  async #list({ answer, listing }: Agent, { id, params }: Request): Promise<void> {
    const canList = sessionCapabilities(answer)["list"] != null;
    const result = await listing.page(params, canList ? (given) => this.#own.ask("session/list", given) : null);
    await this.#answer(id, { result });
  }

  async #end(agent: Agent, { id, method, params, value }: Request): Promise<void> {
    const { library, answer } = agent;
    const sessionId = stringOf(params["sessionId"]) ?? "";
    const session = library.of(sessionId);
    const agentSession = session?.agentSession ?? sessionId;
    if (session)
      for (const update of await session.interrupted("closed by the client")) await this.#update(sessionId, update);
    if (method === "session/delete") await library.remove(sessionId);
    else await library.close(sessionId);
    this.#failed.delete(sessionId);
    if (sessionCapabilities(answer)[method.slice("session/".length)] != null)
      return this.#give(changed(value, { session: agentSession }));
    this.#give({ jsonrpc: "2.0", method: "session/cancel", params: { sessionId: agentSession } });
    await this.#answer(id, { result: {} });
  }

  /** Anything else about a session, or about none. What a client sets may be secret: that it did is recorded. */
  async #forward({ library }: Agent, message: Call): Promise<void> {
    const { kind, method, params, value } = message;
    const session = library.of(stringOf(params["sessionId"]) ?? "");
    if (!session) return this.#give(value);
    try {
      await session.beside("client", method, null);
    } catch (error) {
      if (kind === "request") throw error;
      // This also cancels the turn, so that the user can stop an agent whatever happens to the store.
      return this.#fail(session, error);
    }
    this.#give(changed(value, { session: session.agentSession }));
  }

  async #answerToAgent({ library }: Agent, { id, result, value }: Response): Promise<void> {
    const asked = this.#agentRequests.get(id);
    this.#agentRequests.delete(id);
    const session = library.ofAgent(stringOf(asked?.params["sessionId"]) ?? "");
    if (session && asked?.method === "session/request_permission") {
      const outcome = objectOf(objectOf(result)?.["outcome"]);
      try {
        await session.decided(asked.params, outcome);
      } catch (error) {
        // A decision that is not on record is not acted on.
        await this.#fail(session, error);
        return this.#give({ jsonrpc: "2.0", id, result: { outcome: { outcome: "cancelled" } } });
      }
    }
    this.#give(value);
  }

  // The agent

  /** Rejects only if the client cannot be written to. */
  async #fromAgent(message: Message): Promise<void> {
    if (message.kind === "other") return this.#client.write(message.value);
    if (message.kind === "response") return this.#answerToClient(message);
    const agentSession = stringOf(message.params["sessionId"]);
    const session = agentSession === null ? null : (this.#agent?.library.ofAgent(agentSession) ?? null);
    if (agentSession !== null && message.method === "session/update" && this.#replays.drops(agentSession)) return;
    if (session) {
      try {
        await this.#record(session, message);
      } catch (error) {
        await this.#fail(session, error);
      }
    }
    if (agentSession !== null && [...this.#failed.values()].includes(agentSession)) {
      if (message.kind !== "request") return;
      const words = "The session could not be recorded, so the client was not asked.";
      return this.#give({ jsonrpc: "2.0", id: message.id, error: { code: INTERNAL, message: words } });
    }
    if (message.kind === "request")
      this.#agentRequests.set(message.id, { method: message.method, params: message.params });
    await this.#client.write(session ? changed(message.value, { session: session.id }) : message.value);
  }

  async #record(session: RecordedSession, { method, params }: Call): Promise<void> {
    if (method === "session/update") {
      const update = objectOf(params["update"]) ?? {};
      await RecordedHistory.of(session).update(update);
    } else if (method === "session/request_permission") await RecordedHistory.of(session).asked(params);
    // Files, variables and forms may hold secrets: that the agent asked is recorded.
    else await session.beside("agent", method, null);
  }

  async #answerToClient(message: Response): Promise<void> {
    const { id, result, error, value } = message;
    if (this.#own.take(message)) return;
    const asked = this.#clientRequests.get(id);
    // Answered already, when recording failed. An error about a message without an id has no request.
    if (!asked && this.#agent && id !== null) return;
    this.#clientRequests.delete(id);
    if (asked?.method === "initialize") {
      const answer = error === undefined ? { ...value, result: this.#initialized(objectOf(result) ?? {}) } : value;
      this.#initializing?.resolve();
      this.#initializing = null;
      return this.#client.write(answer);
    }
    const made = stringOf(objectOf(result)?.["sessionId"]);
    try {
      if ((asked?.method === "session/new" || asked?.method === "session/fork") && this.#agent && made !== null) {
        const sessionId = await this.#created(this.#agent.library, made, asked);
        return this.#client.write(
          made === sessionId ? value : { ...value, result: { ...objectOf(result), sessionId } },
        );
      }
      if (asked?.method === "session/prompt") await this.#promptEnded(asked, result, error);
    } catch (failure) {
      return this.#client.write({ jsonrpc: "2.0", id, error: { code: INTERNAL, message: unrecorded(failure) } });
    }
    await this.#client.write(value);
  }

  #initialized(answer: Params): Params {
    if (answer["protocolVersion"] !== 1) {
      this.#log(`protocol version ${String(answer["protocolVersion"])}: sessions are not recorded`);
      return answer;
    }
    const named =
      this.#options.app ?? stringOf(objectOf(answer["agentInfo"])?.["name"]) ?? basename(process.argv[1] ?? "agent");
    const library = new Library(this.#store, [named]);
    this.#agent = { answer, library, listing: new MergedList(library) };
    for (const warning of this.#store.warnings) this.#log(warning);
    return withOurs(answer);
  }

  /** Returns the id for the client. */
  async #created(library: Library, made: string, { method, params }: PendingRequest): Promise<string> {
    const source = method === "session/fork" ? library.of(stringOf(params["sessionId"]) ?? "") : null;
    const { id } = await library.add(made, stringOf(params["cwd"]) ?? source?.cwd ?? process.cwd(), source);
    return id;
  }

  async #promptEnded({ params }: PendingRequest, result: unknown, error: unknown): Promise<void> {
    const sessionId = stringOf(params["sessionId"]) ?? "";
    const session = this.#agent?.library.of(sessionId);
    if (session) await RecordedHistory.of(session).ended(result, error);
    if (this.#isClientGone) await this.#letGo(sessionId);
  }

  /**
   * The journal cannot be written. What is not on record is not passed on: the turn ends here, with a message that
   * tells the person why, and the agent has to stop.
   */
  async #fail(session: RecordedSession, error: unknown): Promise<void> {
    const { id: sessionId, agentSession } = session;
    this.#failed.set(sessionId, agentSession);
    this.#log(`session ${sessionId}: recording failed: ${wordsOf(error)}`);
    const prompts = [...this.#clientRequests].filter(
      ([, { method, params }]) => method === "session/prompt" && params["sessionId"] === sessionId,
    );
    this.#give({ jsonrpc: "2.0", method: "session/cancel", params: { sessionId: agentSession } });
    // Before the client learns of it, since it may load the session at once.
    await this.#letGo(sessionId);
    for (const [id] of prompts) await this.#answer(id, { error: { code: INTERNAL, message: unrecorded(error) } });
  }

  /** Releases the lease. What could not be recorded has been reported. */
  async #letGo(sessionId: string): Promise<void> {
    try {
      await this.#agent?.library.close(sessionId);
    } catch (error) {
      this.#log(`session ${sessionId} could not be closed: ${wordsOf(error)}`);
    }
  }

  #refuse(id: RequestId, error: unknown): Promise<void> {
    if (error instanceof AgentError && error.code !== null) {
      const { code, message, data } = error;
      return this.#answer(id, { error: { code, message, ...(data === undefined ? {} : { data }) } });
    }
    const code = isHoldfastError(error, "SESSION_NOT_FOUND")
      ? NOT_FOUND
      : isHoldfastError(error, "MESSAGE_UNFIT")
        ? INVALID_PARAMS
        : INTERNAL;
    this.#log(wordsOf(error));
    return this.#answer(id, { error: { code, message: wordsOf(error) } });
  }

  /** A client that is gone needs no answer. */
  async #answer(id: RequestId, answer: Params): Promise<void> {
    this.#clientRequests.delete(id);
    await this.#client.write({ jsonrpc: "2.0", id, ...answer }).catch(() => undefined);
  }

  async #update(sessionId: string, update: unknown): Promise<void> {
    await this.#client
      .write({ jsonrpc: "2.0", method: "session/update", params: { sessionId, update } })
      .catch(() => undefined);
  }

  #give(value: unknown): void {
    if (!this.#isClientGone) this.#toAgent.enqueue(value);
  }

  #log(line: string): void {
    const { log = (text) => void process.stderr.write(`holdfast: ${text}\n`) } = this.#options;
    log(line);
  }
}

function canLoad({ answer }: Agent): boolean {
  return objectOf(answer["agentCapabilities"])?.["loadSession"] === true;
}

function isOfStore(error: unknown): boolean {
  return errorKind(error) === "store";
}

function unrecorded(error: unknown): string {
  return `The session could not be recorded, so the agent was stopped. What was recorded before is safe. ${wordsOf(error)}`;
}
