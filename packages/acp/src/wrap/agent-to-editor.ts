import { isHoldfastError } from "holdfast";
import { withOurs } from "../record/capabilities.ts";
import { AgentEnded } from "../record/holdfast-to-agent.ts";
import type { Library } from "../record/library.ts";
import { changedLine, type Line, objectOf, type Params, recordable, stringOf, updateLine } from "../record/message.ts";
import type { RecordedSession } from "../record/recorded-session.ts";
import { wordsOf } from "../record/words-of.ts";
import { STEP_MS } from "./agent-process.ts";
import type { Client, OpenedWith } from "./client.ts";
import { inPlaceOf, type LongLine, longLineError, longLineWords, refusalOf } from "./long-line.ts";
import type { AgentRequests, ClientRequests, FromClient } from "./open-requests.ts";
import type { RunningAgent } from "./restartable-agent.ts";
import type { TurnFinisher } from "./turn-finisher.ts";

export interface AgentToEditorParts {
  readonly library: Library;
  readonly openedWith: OpenedWith;
  readonly clientRequests: ClientRequests;
  readonly agentRequests: AgentRequests;
  /** The editor that the agent talks to now. */
  readonly client: () => Client | null;
  /** It has ended, and that is handled. */
  readonly onEnded: (agent: RunningAgent) => void;
  /** Continues turns that the end of an agent cut off; null if nobody does. */
  readonly finishing: Finishing | null;
  readonly log: (line: string) => void;
}

/** How turns go on by themselves. */
export interface Finishing {
  /** Also when an editor opens a session with such a turn. */
  readonly onLoad: boolean;
  /** Decides about a request for permission in a turn that goes on by itself; null leaves it to the editor. */
  readonly permit: Permit;
  readonly finisher: () => TurnFinisher;
}

/** Returns the outcome for the agent. `cwd`: the folder of the session. */
export type Permit = (cwd: string, request: Params) => Params | null;

type Response = Extract<Line, { kind: "response" }>;

/** What a run of lines has in common: they are recorded together, and then passed on together. */
interface Run {
  readonly session: RecordedSession;
  readonly updates: Params[];
  readonly out: Buffer[];
}

const LOADS = new Set(["session/load", "session/resume"]);
const MAKES = new Set(["session/new", "session/fork"]);

/** What the agent says: recorded, and then passed on to the editor. */
export class AgentToEditor {
  readonly #parts: AgentToEditorParts;
  /** The lines of the agent that are being handled. */
  #handling: Promise<void> = Promise.resolve();
  /** Until it resolves, the agent waits: a session is being replayed. */
  #replaying: Promise<void> | null = null;

  constructor(parts: AgentToEditorParts) {
    this.#parts = parts;
  }

  /** Never rejects. */
  async read(agent: RunningAgent): Promise<void> {
    try {
      for await (const lines of agent.lines()) {
        while (this.#replaying) await this.#replaying;
        this.#handling = this.#linesFromAgent(agent, lines);
        await this.#handling;
      }
    } catch (error) {
      this.#handling = Promise.resolve();
      this.#parts.log(`reading the agent failed: ${wordsOf(error)}`);
      void agent.process.end(0);
    }
    // One that says nothing any more is of no use to anybody.
    await agent.process.end(STEP_MS);
    await this.#died(agent);
  }

  /** What arrived together. Updates of a session in a row are recorded together, and then passed on together. */
  async #linesFromAgent(agent: RunningAgent, lines: readonly (Line | LongLine)[]): Promise<void> {
    let run: Run | null = null;
    for (const message of lines) {
      if (!("raw" in message)) {
        if (run) await this.#passOn(agent, run);
        run = null;
        await this.#longLine(agent, message);
        continue;
      }
      const session = this.#updated(agent, message);
      if (run && run.session !== session) {
        await this.#passOn(agent, run);
        run = null;
      }
      if (!session || message.kind !== "notification") {
        await this.#fromAgent(agent, message);
        continue;
      }
      run ??= { session, updates: [], out: [] };
      const update = objectOf(message.params["update"]) ?? {};
      run.updates.push(update);
      if (this.#setsAnew(session, update)) await this.#parts.openedWith.chose(session.id);
      run.out.push(changedLine(message, { session: session.id }));
    }
    if (run) await this.#passOn(agent, run);
  }

  /**
   * Does not pass on a line that is too long. If it is a request or an answer, its sender or receiver gets an error; if
   * it is an update, the turn of its session ends. Throws if its beginning does not show which session it belongs to.
   */
  async #longLine(agent: RunningAgent, long: LongLine): Promise<void> {
    this.#parts.log(longLineWords("agent", long));
    if (long.kind === "response") return this.#fromAgent(agent, inPlaceOf(long));
    // Not awaited: an agent that does not read may be waiting to be read itself.
    if (long.kind === "request") return void agent.to.write(refusalOf(long));
    const { session: agentSession } = long;
    if (agentSession === null) throw longLineError();
    if (agent.unrecorded.has(agentSession) || agent.replays.drops(agentSession)) return;
    const session = this.#parts.library.ofAgent(agentSession);
    if (session) return this.#fail(agent, session, longLineError());
    const content = { type: "text", text: longLineError().message };
    await this.show(agentSession, { sessionUpdate: "agent_thought_chunk", content });
  }

  /** The recorded session that this is an update of. */
  #updated(agent: RunningAgent, message: Line): RecordedSession | null {
    if (message.kind !== "notification" || message.method !== "session/update") return null;
    const agentSession = stringOf(message.params["sessionId"]) ?? "";
    if (agent.unrecorded.has(agentSession) || agent.replays.isMuted(agentSession)) return null;
    return this.#parts.library.ofAgent(agentSession);
  }

  /** Takes in what an update says about a session's settings. Returns whether that changes what the person chose. */
  #setsAnew({ id }: RecordedSession, update: Params): boolean {
    return this.#parts.openedWith.settings(id).updated(update);
  }

  async #passOn(agent: RunningAgent, { session, updates, out }: Run): Promise<void> {
    try {
      await session.updates(updates);
    } catch (error) {
      return this.#fail(agent, session, error);
    }
    const client = this.#parts.client();
    const lines = out.length === 1 ? out[0]! : Buffer.concat(out);
    if (client?.hears(session.id)) await client.writeUpdates(lines, session.id, updates);
  }

  async #fromAgent(agent: RunningAgent, message: Line): Promise<void> {
    if (message.kind === "other") return this.#parts.client()?.write(message.raw);
    if (message.kind === "response") return this.#answerToClient(agent, message);
    const { method, params } = message;
    const agentSession = stringOf(params["sessionId"]);
    const session = agentSession === null ? null : this.#parts.library.ofAgent(agentSession);
    if (agentSession !== null && method === "session/update" && agent.replays.drops(agentSession)) {
      // Its commands and settings are not part of the conversation that it replays.
      if (session && this.#setsAnew(session, objectOf(params["update"]) ?? {}))
        await this.#parts.openedWith.chose(session.id);
      return;
    }
    const asked = message.kind === "request" ? { id: message.id, method, params, session } : null;
    if (agentSession !== null && agent.unrecorded.has(agentSession))
      return asked ? this.#parts.agentRequests.refuse(agent, { ...asked, session: null }, UNRECORDED) : undefined;
    try {
      if (method === "session/request_permission") await session?.permission(params);
      else await session?.beside("agent", method, recordable(method, params));
    } catch (error) {
      await this.#fail(agent, session!, error);
      return asked ? this.#parts.agentRequests.refuse(agent, { ...asked, session: null }, UNRECORDED) : undefined;
    }
    const outcome = asked && session ? this.#permitted(session, method, params) : null;
    if (asked && outcome) {
      await session!
        .decided(params, outcome, "the permission rules")
        .catch((error) => this.#fail(agent, session!, error));
      // Not awaited: an agent that does not read may be waiting to be read itself.
      return void agent.send({
        id: asked.id,
        result: { outcome: session!.failure ? { outcome: "cancelled" } : outcome },
      });
    }
    const client = this.#parts.client();
    const isHeard = client?.hears(session?.id ?? null) === true;
    if (asked) {
      // The driver has gone, and the turn with it: the next driver decides.
      if (!isHeard && session && this.#parts.finishing?.onLoad === false) return;
      if (!isHeard)
        return this.#parts.agentRequests.refuse(agent, asked).catch((error) => this.#fail(agent, session!, error));
      this.#parts.agentRequests.asked(agent, asked);
    }
    const moved = session && session.id !== agentSession ? { session: session.id } : {};
    if (!isHeard) return;
    const line = changedLine(message, { ...agent.changeForClient(message), ...moved });
    // One that is not recorded.
    if (method === "session/update" && agentSession !== null)
      return client!.writeUpdates(line, agentSession, [objectOf(params["update"]) ?? {}]);
    if (!asked) return client!.write(line);
    const call = stringOf(objectOf(params["toolCall"])?.["toolCallId"]);
    return client!.writeRequest(line, agent.idForClient(asked.id), session?.id ?? agentSession, call);
  }

  /** What the rules say, while the turn goes on by itself. */
  #permitted(session: RecordedSession, method: string, params: Params): Params | null {
    const { finishing } = this.#parts;
    if (method !== "session/request_permission" || !finishing?.finisher().sessions.includes(session.id)) return null;
    return finishing.permit(session.cwd ?? process.cwd(), params);
  }

  /** A session that cannot be recorded is not passed on: its turn ends here. The other sessions go on. */
  async #fail(agent: RunningAgent, session: RecordedSession, error: unknown): Promise<void> {
    this.#parts.log(`session ${session.id}: recording failed: ${wordsOf(error)}`);
    session.failure = unrecorded(error);
    agent.unrecorded.add(session.agentSession);
    // The next prompt opens it again, in one of the ways in which a session is restored.
    agent.sessions.delete(session.agentSession);
    await this.#parts.agentRequests.withdraw(this.#parts.client(), session);
    await this.#letGo(session);
    void agent.send({ method: "session/cancel", params: { sessionId: session.agentSession } });
    // Another process has taken the session over: an agent that nobody watches may not go on.
    if (this.#parts.finishing && isHoldfastError(error, "LEASE_LOST")) void agent.process.end(0);
    for (const { client, id } of this.#parts.clientRequests.refusePrompts(session))
      if (client === this.#parts.client()) await client.refuse(id, unrecorded(error));
  }

  /** Releases a session. What could not be recorded has been reported. */
  async #letGo({ id }: RecordedSession): Promise<void> {
    await this.#parts.library.close(id).catch((error: unknown) => {
      this.#parts.log(`session ${id} could not be closed: ${wordsOf(error)}`);
    });
  }

  async #answerToClient(agent: RunningAgent, message: Response): Promise<void> {
    const { id, result, error } = message;
    if (agent.answered(message)) return;
    const { asked, isRefused } = this.#parts.clientRequests.answered(id);
    if (isRefused) return;
    if (!asked) return this.#parts.client()?.write(message.raw);
    let made: string | null;
    try {
      made = await this.#recordAnswer(agent, asked, result, error);
    } catch (failure) {
      const session = this.#parts.library.of(stringOf(asked.params["sessionId"]) ?? "");
      if (session) await this.#fail(agent, session, failure);
      if (asked.client === this.#parts.client()) await asked.client.refuse(asked.id, unrecorded(failure));
      return;
    }
    if (asked.method === "initialize") agent.capabilities = objectOf(result);
    if (asked.client !== this.#parts.client()) return;
    const ours = asked.method === "initialize" && error === undefined ? withOurs(objectOf(result) ?? {}) : null;
    if (ours) return asked.client.answer(asked.id, { result: ours });
    if (made !== null && this.#parts.finishing?.onLoad === false) {
      // A driver names the session to a person by the id that lists show.
      const _meta = { ...objectOf(objectOf(result)?.["_meta"]), [JOURNAL]: this.#parts.library.of(made)?.journal };
      return asked.client.answer(asked.id, { result: { ...objectOf(result), sessionId: made, _meta } });
    }
    if (made !== null && made !== objectOf(result)?.["sessionId"])
      return asked.client.answer(asked.id, { result: { ...objectOf(result), sessionId: made } });
    return asked.client.write(changedLine(message, asked.client.isFirst ? {} : { id: asked.id }), asked.id);
  }

  /** Returns the id of the session that was made, for the editor; null if none was. */
  async #recordAnswer(agent: RunningAgent, asked: FromClient, result: unknown, error: unknown): Promise<string | null> {
    const { method, params } = asked;
    const known = this.#parts.library.of(stringOf(params["sessionId"]) ?? "");
    if (known && method === "session/prompt") {
      const closing = await known.ended(result, error);
      // An editor that came back does not get this answer, which would tell it that the turn has ended.
      if (asked.client !== this.#parts.client()) for (const update of closing) await this.show(known.id, update);
    }
    if (error !== undefined) return null;
    // One that is not recorded: the agent was asked to open it as it came.
    if (LOADS.has(method) && !known) agent.sessions.add(stringOf(params["sessionId"]) ?? "");
    if (known && this.#parts.openedWith.settings(known.id).accepted(method, params, result))
      await this.#parts.openedWith.chose(known.id);
    return MAKES.has(method) ? this.#created(agent, asked, known, objectOf(result) ?? {}) : null;
  }

  /** Returns the id for the editor. */
  async #created(
    agent: RunningAgent,
    { client, params }: FromClient,
    source: RecordedSession | null,
    answer: Params,
  ): Promise<string | null> {
    const { library, openedWith } = this.#parts;
    const made = stringOf(answer["sessionId"]);
    if (made === null) return null;
    // One that had this id at an agent that has ended is opened again when it is needed.
    const before = library.ofAgent(made);
    if (before && before !== source) await this.#letGo(before);
    const { id } = await library.add(made, stringOf(params["cwd"]) ?? source?.cwd ?? process.cwd(), source);
    openedWith.settings(id).opened(answer);
    await openedWith.set(id, params);
    agent.sessions.add(made);
    client.opened(id);
    return id;
  }

  /** Tells the editor, closes what was open, and waits: the agent is started again when it is needed. */
  async #died(agent: RunningAgent): Promise<void> {
    agent.failRequests();
    for (const session of this.#parts.library.open) {
      try {
        await this.#agentLeft(session, "the agent has ended");
      } catch (error) {
        this.#parts.log(`session ${session.id}: recording failed: ${wordsOf(error)}`);
        await this.#letGo(session);
      }
    }
    await this.#parts.agentRequests.withdraw(this.#parts.client());
    const cutOff: FromClient[] = [];
    for (const asked of this.#parts.clientRequests.takeAll()) {
      if (asked.client !== this.#parts.client()) continue;
      if (this.#parts.finishing?.finisher().isEnding === false && asked.method === "session/prompt") cutOff.push(asked);
      else await asked.client.refuse(asked.id, new AgentEnded());
    }
    // Last: until then, what is for the next agent waits for this end.
    this.#parts.onEnded(agent);
    for (const asked of cutOff) void this.#continue(asked);
  }

  /** A turn that goes on with the next agent stays open. */
  async #agentLeft(session: RecordedSession, why: string): Promise<void> {
    const finisher = this.#parts.finishing?.finisher();
    if (!finisher || !session.isRunning) return this.leaveTurn(session, why);
    // That of the finisher is its own to record, and at the end the turn is recorded as handed over, or as cut off.
    if (!finisher.isEnding && !finisher.sessions.includes(session.id)) await session.pause(why);
  }

  /** The editor's prompt is answered when the turn has ended, by whichever agent. */
  async #continue({ client, id, params }: FromClient): Promise<void> {
    const session = this.#parts.library.of(stringOf(params["sessionId"]) ?? "");
    try {
      if (!session) throw new AgentEnded();
      const result = await this.#parts.finishing!.finisher().finish(session, false);
      if (client === this.#parts.client()) await client.answer(id, { result: result ?? { stopReason: "end_turn" } });
    } catch (error) {
      if (client === this.#parts.client()) await client.refuse(id, error);
    }
  }

  async leaveTurn(session: RecordedSession, why: string): Promise<void> {
    for (const update of await session.interrupted(why)) await this.show(session.id, update);
  }

  /** What the agent says meanwhile comes after it. */
  async meanwhile(replay: () => Promise<void>): Promise<void> {
    while (this.#replaying) await this.#replaying;
    const { promise, resolve } = Promise.withResolvers<void>();
    this.#replaying = promise;
    try {
      await this.#handling;
      await replay();
    } finally {
      this.#replaying = null;
      resolve();
    }
  }

  /** Shows the editor an update, if it has the session open. */
  async show(session: string, update: Params): Promise<void> {
    const client = this.#parts.client();
    if (client?.hears(session)) await client.writeUpdates(updateLine(session, update), session, [update]);
  }
}

/** Beside the id of a new session: the id of its record. */
export const JOURNAL = "holdfast/journal";

const UNRECORDED = "the session could not be recorded";

function unrecorded(error: unknown): Error {
  const words = `The session could not be recorded, so its turn was stopped. What was recorded before is safe. ${wordsOf(error)}`;
  return new Error(words, { cause: error });
}
