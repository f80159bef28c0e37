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
import { STEP_MS } from "./agent-process.ts";
import type { AgentToEditor, Finishing } from "./agent-to-editor.ts";
import type { Client, OpenedWith } from "./client.ts";
import { LineReader } from "./lines.ts";
import { inPlaceOf, type LongLine, longLineWords, refusalOf } from "./long-line.ts";
import type { AgentRequests, ClientRequests } from "./open-requests.ts";
import type { RestartableAgent, RunningAgent } from "./restartable-agent.ts";
import type { SessionOpener } from "./session-opener.ts";

export interface EditorToAgentParts {
  readonly library: Library;
  readonly openedWith: OpenedWith;
  readonly agents: RestartableAgent;
  readonly clientRequests: ClientRequests;
  readonly agentRequests: AgentRequests;
  readonly toEditor: AgentToEditor;
  readonly opener: SessionOpener;
  /** Null if turns go on only when the editor says so. */
  readonly finishing: Finishing | null;
  /** The editor that the agent talks to now. */
  readonly client: () => Client | null;
  readonly log: (line: string) => void;
}

type Request = Extract<Line, { kind: "request" }>;
type Call = Extract<Line, { kind: "request" | "notification" }>;
type Response = Extract<Line, { kind: "response" }>;

/** These wait for answers of the agent to requests of our own. */
const LONG = new Set([
  "_holdfast/finish",
  "session/load",
  "session/resume",
  "session/list",
  "session/close",
  "session/delete",
]);

/**
 * A request of our own driver, with what opens the session: finish its interrupted turn. `asked`: also one that failed
 * or was stopped; `retry`: also one that is parked.
 */
export const FINISH = "_holdfast/finish";

/** What the editor says: recorded, and then passed on to the agent, or answered here. */
export class EditorToAgent {
  readonly #parts: EditorToAgentParts;
  readonly #listing: MergedList;
  readonly #opener: SessionOpener;

  constructor(parts: EditorToAgentParts) {
    this.#parts = parts;
    this.#listing = new MergedList(parts.library);
    this.#opener = parts.opener;
  }

  get #agent(): RunningAgent | null {
    return this.#parts.agents.agent;
  }

  /** Reads what the editor says, until it says no more. */
  async read(client: Client, input: AsyncIterable<Buffer>): Promise<void> {
    const lines = new LineReader();
    for await (const chunk of input) for (const line of lines.push(chunk)) await this.#fromClient(client, line);
    const rest = lines.end();
    if (rest) await this.#fromClient(client, rest);
  }

  /** Resolves when the next line may be read. What is said about a session stays in order. */
  #fromClient(client: Client, line: Line | LongLine): Promise<void> {
    if (!("raw" in line)) {
      this.#parts.log(longLineWords("editor", line));
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
        ? this.#parts.clientRequests.of(client, params["requestId"] as RequestId)?.params
        : params;
    return method === "session/list" ? method : (stringOf(of?.["sessionId"]) ?? "");
  }

  /** An agent or a session has to be started first, or the agent is asked something for it. */
  #mayTakeLong(message: Call): boolean {
    if (message.kind === "notification" || message.method === "initialize") return false;
    const agent = this.#agent;
    if (LONG.has(message.method) || !agent || !this.#parts.agents.isRunning) return true;
    const known = stringOf(message.params["sessionId"]);
    return known !== null && !agent.sessions.has(this.#parts.library.of(known)?.agentSession ?? known);
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
      if (message.kind !== "request") return this.#parts.log(`a message was not passed on: ${wordsOf(error)}`);
      if (this.#parts.clientRequests.close(client, message.id)) await client.refuse(message.id, error);
    }
  }

  /** An answer to an agent that has ended is not for the one that runs now, whatever its id is. */
  async #answerToAgent(client: Client, message: Response): Promise<void> {
    const { id, result } = message;
    if (client !== this.#parts.client()) return;
    const asked = await this.#parts.agentRequests.answered(id, objectOf(objectOf(result)?.["outcome"]));
    const agent = this.#agent;
    if (!agent) return;
    if (asked) return agent.to.write(changedLine(message, agent.isFirst ? {} : { id: asked.id }));
    if (agent.isFirst || id === null) return agent.to.write(message.raw);
    this.#parts.log("an answer to a request that nobody waits for was not passed on");
  }

  async #request(client: Client, message: Request): Promise<void> {
    const { id, method, params } = message;
    // The end of an agent answers what it was asked. This is for the next one.
    if (this.#agent?.process.hasExited) await this.#agent.over;
    this.#parts.clientRequests.asked({ client, id, method, params });
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
      case FINISH:
        return this.#parts.finishing ? this.#finish(client, message) : this.#forward(client, message);
      default:
        return this.#forward(client, message);
    }
  }

  /** In a version of the protocol that we do not know. */
  async #pass(client: Client, message: Request): Promise<void> {
    const { method, params } = message;
    const session = this.#parts.library.of(stringOf(params["sessionId"]) ?? "");
    if (method === "session/prompt") await session?.prompt(params);
    else await session?.beside("client", method, null);
    return this.#send(client, message, null);
  }

  /** An agent is initialized once. An editor that can do other things than the one before it gets another agent. */
  async #initialized(client: Client, message: Request): Promise<void> {
    const { id, params } = message;
    const running = this.#agent;
    if (!client.isFirst && running?.capabilities && isDeepStrictEqual(params, this.#parts.agents.initialize)) {
      return this.#answer(client, id, { result: withOurs(running.capabilities) });
    }
    this.#parts.agents.initialize = params;
    // Those before it are answered when the agent ends.
    this.#parts.clientRequests.close(client, id);
    if (!client.isFirst && running) {
      await running.process.end(STEP_MS);
      await running.over;
    }
    const agent = this.#agent ?? (await this.#parts.agents.start());
    this.#parts.clientRequests.asked({ client, id, method: "initialize", params });
    await agent.to.write(changedLine(message, client.isFirst ? {} : { id: client.idForAgent(id) }));
  }

  async #prompt(client: Client, message: Request): Promise<void> {
    const finisher = this.#parts.finishing?.finisher();
    const id = stringOf(message.params["sessionId"]) ?? "";
    // The interrupted turn is finished first. A cancellation does not wait for that.
    if (finisher?.sessions.includes(id)) {
      client.opened(id);
      return void finisher.settled(id).then(() => this.#handle(client, message));
    }
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
    const session = await this.#parts.library.reopen(stringOf(params["sessionId"]) ?? "");
    // A session from before it was wrapped.
    if (!session) return this.#send(client, message, null);
    await this.#parts.openedWith.set(session.id, params);
    session.folder = stringOf(params["cwd"]);
    const restored = await this.#opener.restore(session, params);
    await this.#parts.toEditor.meanwhile(async () => {
      if (method === "session/load")
        for (const update of await session.history())
          await client.writeUpdates(updateLine(session.id, update), session.id, [update]);
      client.opened(session.id);
    });
    await this.#opener.tell(session, restored);
    const { answer, commands } = this.#parts.openedWith.settings(session.id);
    await this.#answer(client, id, { result: { ...restored.answer, ...answer } });
    // An editor knows the session only after the answer.
    if (commands) await this.#parts.toEditor.show(session.id, commands);
    this.#finishLoaded(session);
  }

  /** Not awaited: its cancellation comes later on the same way. */
  #finish(client: Client, { id, params }: Request): void {
    // It outlives the agents that answer it.
    this.#parts.clientRequests.close(client, id);
    void this.#finished(client, params).then(
      (result) => client.answer(id, { result }),
      (error: unknown) => client.refuse(id, error),
    );
  }

  async #finished(client: Client, { asked, retry, ...given }: Params): Promise<Params> {
    const { library, openedWith, finishing } = this.#parts;
    const session = await library.reopen(stringOf(given["sessionId"]) ?? "");
    if (!session) throw new Error("There is no such session.");
    if (openedWith.of(session.id) === null) await openedWith.set(session.id, given);
    session.folder = stringOf(openedWith.of(session.id)?.["cwd"]);
    client.opened(session.id);
    if (retry === true) await session.retry();
    const result = await finishing!.finisher().finish(session, asked === true);
    return { ...result, finished: result !== null, turns: session.turns };
  }

  /** An editor has opened a session whose last turn was cut off: nobody has to ask for its end. */
  #finishLoaded(session: RecordedSession): void {
    const { finishing, toEditor } = this.#parts;
    if (!finishing?.onLoad || session.isRunning) return;
    finishing
      .finisher()
      .finish(session, false)
      .catch((error: unknown) => {
        const content = { type: "text", text: `The turn that was cut off was not finished: ${wordsOf(error)}` };
        return toEditor.show(session.id, { sessionUpdate: "agent_thought_chunk", content });
      });
  }

  async #list(client: Client, { id, params }: Request): Promise<void> {
    const agent = await this.#parts.agents.initialized();
    const canList = sessionCapabilities(agent.capabilities)["list"] != null;
    const result = await this.#listing.page(params, canList ? (given) => agent.ask("session/list", given) : null);
    return this.#answer(client, id, { result });
  }

  async #close(client: Client, message: Request): Promise<void> {
    const { id, method, params } = message;
    const known = stringOf(params["sessionId"]) ?? "";
    const agent = await this.#parts.agents.initialized();
    const [, verb = ""] = method.split("/");
    const session = this.#parts.library.of(known);
    const agentSession = session?.agentSession ?? known;
    if (session) await this.#parts.toEditor.leaveTurn(session, "closed by the editor");
    if (method === "session/delete") await this.#parts.library.remove(known);
    else await this.#parts.library.close(known);
    await this.#parts.openedWith.delete(known);
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
    const session = isRequest ? await this.#sessionFor(client, params) : this.#parts.library.of(known ?? "");
    // What an editor sets may be secret: that it did is recorded. A turn can be stopped also on a full disk.
    const recorded = session?.beside("client", method, null);
    await (method === "session/cancel" ? recorded?.catch((error) => this.#parts.log(String(error))) : recorded);
    if (method !== "$/cancel_request" || client.isFirst) return this.#send(client, message, session);
    const requestId = client.idForAgent(params["requestId"] as RequestId);
    return this.#send(client, message, session, { params: (own) => ({ ...own, requestId }) });
  }

  /** False if the agent has ended meanwhile: the editor was told so, and the next agent is not asked. */
  #isOpen(client: Client, { id }: Request): boolean {
    return this.#parts.clientRequests.of(client, id) !== null;
  }

  async #answer(client: Client, id: RequestId, answer: Params): Promise<void> {
    if (this.#parts.clientRequests.close(client, id)) await client.answer(id, answer);
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
    const agent = await this.#parts.agents.running();
    if (this.#isOpen(client, message)) await agent.to.write(line);
  }
}
