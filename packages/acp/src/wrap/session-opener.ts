import { AgentEnded } from "../record/holdfast-to-agent.ts";
import type { Library } from "../record/library.ts";
import { type Params, stringOf } from "../record/message.ts";
import type { RecordedSession } from "../record/recorded-session.ts";
import { type Restored, restore, restoredWords, SERVERS_UNKNOWN } from "../record/restore.ts";
import { transcriptOf } from "../record/transcript.ts";
import { wordsOf } from "../record/words-of.ts";
import type { OpenedWith } from "./client.ts";
import type { RestartableAgent, RunningAgent } from "./restartable-agent.ts";

export interface SessionOpenerParts {
  readonly library: Library;
  readonly agents: RestartableAgent;
  readonly openedWith: OpenedWith;
  /** Shows the editor an update of a session. */
  readonly show: (session: string, update: Params) => Promise<void>;
  /** Another editor was there before. */
  readonly isBack: () => boolean;
}

/** Opens recorded sessions at the agent that runs now, and tells the person how. */
export class SessionOpener {
  readonly #parts: SessionOpenerParts;
  /** Sessions whose next prompt tells the agent what was said before. */
  readonly #forgotten = new Set<string>();

  constructor(parts: SessionOpenerParts) {
    this.#parts = parts;
  }

  /** The recorded session that a request is about, open at the agent; null if it is not recorded. */
  async sessionOf(params: Params): Promise<RecordedSession | null> {
    const { library, agents, openedWith } = this.#parts;
    const known = stringOf(params["sessionId"]) ?? "";
    const agent = await agents.running();
    const session = library.of(known) ?? (agent.sessions.has(known) ? null : await library.reopen(known));
    if (!session || (agent.sessions.has(session.agentSession) && !library.isSupplanted(session))) return session;
    const given = openedWith.of(session.id);
    session.folder ??= stringOf(given?.["cwd"]);
    await this.tell(
      session,
      await this.restore(session, given ?? { cwd: session.cwd ?? process.cwd() }),
      given !== null,
    );
    return session;
  }

  async restore(session: RecordedSession, params: Params): Promise<Restored> {
    const { library, agents, openedWith } = this.#parts;
    const agent = await agents.initialized();
    const offered = agent.restoring(session.agentSession);
    // What the agent has under its id is another session.
    const own = library.isSupplanted(session) ? { ...offered, isOpen: false, capabilities: {} } : offered;
    const restored = await restore({ session, params, ...own });
    agent.sessions.add(session.agentSession);
    agent.unrecorded.delete(session.agentSession);
    if (restored.rung === "alive") return restored;
    if (restored.rung === "new" && !session.isEmpty) this.#forgotten.add(session.id);
    openedWith.settings(session.id).opened(restored.answer);
    await this.#chooseAgain(agent, session);
    return restored;
  }

  /** Which of the ways it was, for the person. */
  async tell(session: RecordedSession, restored: Restored, isOpenedWith = true): Promise<void> {
    const words = session.isEmpty ? null : restoredWords(restored, this.#parts.isBack());
    const how = [words, isOpenedWith ? null : SERVERS_UNKNOWN].filter((one) => one !== null).join(" ");
    const text = [how, await lastTurnWords(session)].filter(Boolean).join("\n");
    if (text !== "") await this.#say(session, text);
  }

  /** What the agent has to be told with the next prompt; null if it knows it. */
  async untold(session: RecordedSession): Promise<string | null> {
    if (!this.#forgotten.has(session.id)) return null;
    return transcriptOf(await session.history());
  }

  /** It will be told. */
  told(session: RecordedSession): void {
    this.#forgotten.delete(session.id);
  }

  /** The editor shows a mode, a model and options: an agent that was started again has to have the same. */
  async #chooseAgain(agent: RunningAgent, session: RecordedSession): Promise<void> {
    const settings = this.#parts.openedWith.settings(session.id);
    const refused: string[] = [];
    for (const { method, params } of settings.missing) {
      try {
        settings.accepted(method, params, await agent.ask(method, { sessionId: session.agentSession, ...params }));
      } catch (error) {
        if (error instanceof AgentEnded) throw error;
        settings.refused({ method, params });
        refused.push(`${Object.values(params).join(" = ")} (${wordsOf(error)})`);
      }
    }
    if (refused.length === 0) return;
    await this.#say(session, `The agent did not accept what you had chosen: ${refused.join(", ")}.`);
    for (const update of settings.updates) await this.#parts.show(session.id, update);
  }

  #say(session: RecordedSession, text: string): Promise<void> {
    return this.#parts.show(session.id, { sessionUpdate: "agent_thought_chunk", content: { type: "text", text } });
  }
}

/** What a turn that was cut off left; null if that was told when it ended. */
async function lastTurnWords(session: RecordedSession): Promise<string | null> {
  if (session.isRunning) return null;
  const { state, words, calls } = (await session.read()).account;
  if (state !== "interrupted" && calls.length === 0) return null;
  const lines = calls.map((call) => `${call.name}: ${call.words}.`);
  return [`The last turn: ${words.status}.`, ...words.detail, ...lines].join("\n");
}
