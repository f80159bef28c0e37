import { AgentEnded, AgentError, TurnParked } from "../record/holdfast-to-agent.ts";
import { objectOf, type Params } from "../record/message.ts";
import type { RecordedSession } from "../record/recorded-session.ts";
import type { RestartableAgent } from "./restartable-agent.ts";
import type { SessionOpener } from "./session-opener.ts";

/** So often in a row an agent may end without the end of a call in between. Then its turn is parked. */
export const TRIES_MAX = 3;

export interface TurnFinisherParts {
  readonly agents: RestartableAgent;
  readonly opener: SessionOpener;
  /** Shows the editor an update of a session. */
  readonly show: (session: string, update: Params) => Promise<void>;
  readonly log: (line: string) => void;
}

/** How a turn that went on has ended; null if there was nothing to finish. */
export type FinishedTurn = Params | null;

/**
 * Continues interrupted turns: starts the agent, opens its session, tells it what had happened, and asks it to
 * continue; again if it dies. Nothing that an agent began is done again here: whether it is, the agent decides.
 */
export class TurnFinisher {
  readonly #parts: TurnFinisherParts;
  readonly #running = new Map<string, Promise<FinishedTurn>>();
  #isEnding = false;

  constructor(parts: TurnFinisherParts) {
    this.#parts = parts;
  }

  /** The sessions whose turns go on. */
  get sessions(): readonly string[] {
    return [...this.#running.keys()];
  }

  /** Resolves when nothing is left to finish in this session. */
  async settled(session: string): Promise<void> {
    await this.#running.get(session)?.catch(() => undefined);
  }

  get isEnding(): boolean {
    return this.#isEnding;
  }

  /** From now on no agent is started for a turn. */
  end(): void {
    this.#isEnding = true;
  }

  /**
   * Resolves with the agent's answer when the turn has ended. `isAsked`: a person asks for it, so that it also
   * continues a turn that failed or was stopped. Rejects with TurnParked, with the agent's error, or with that of the
   * record.
   */
  finish(session: RecordedSession, isAsked: boolean): Promise<FinishedTurn> {
    const { id } = session;
    const known = this.#running.get(id);
    if (known) return known;
    const running = this.#finish(session, isAsked).finally(() => this.#running.delete(id));
    running.catch(() => undefined);
    this.#running.set(id, running);
    return running;
  }

  async #finish(session: RecordedSession, isAsked: boolean): Promise<FinishedTurn> {
    while (!this.#isEnding && (await this.#isUnfinished(session, isAsked))) {
      try {
        await session.claim();
        return await this.#continue(session);
      } catch (error) {
        const agent = this.#parts.agents.agent;
        if (session.failure) throw session.failure;
        if (!(error instanceof AgentEnded)) {
          if (error instanceof AgentError) await this.#show(session, await session.ended(null, error));
          throw error;
        }
        this.#parts.log(`session ${session.id}: the agent ended in the middle of its turn`);
        await agent?.over;
        if (!this.#isEnding) await session.pause("the agent has ended");
      }
    }
    if (this.#isEnding) throw new AgentEnded();
    return null;
  }

  /** Throws TurnParked. */
  async #isUnfinished(session: RecordedSession, isAsked: boolean): Promise<boolean> {
    const { reading, account } = await session.read();
    const { interruption } = reading;
    if (!interruption) return false;
    const { attempts, how } = interruption;
    if (how.kind === "suspended" && how.parked !== undefined) throw new TurnParked(account.words.status);
    if (attempts >= TRIES_MAX) {
      const why = how.kind === "suspended" ? how.reason : account.words.status;
      await session.park(why, attempts);
      throw new TurnParked((await session.read()).account.words.status);
    }
    return isAsked || account.state === "interrupted" || account.state === "paused";
  }

  async #continue(session: RecordedSession): Promise<Params> {
    const { agents, opener } = this.#parts;
    await opener.sessionOf({ sessionId: session.id });
    const agent = await agents.running();
    const untold = await opener.untold(session);
    const { prompt, closing } = await session.resume();
    opener.told(session);
    await this.#show(session, closing);
    const told = untold === null ? [] : [{ type: "text", text: untold }];
    const sessionId = session.agentSession;
    const result = objectOf(await agent.ask("session/prompt", { sessionId, prompt: [...told, ...prompt] })) ?? {};
    if (session.failure) throw session.failure;
    await this.#show(session, await session.ended(result, undefined));
    return result;
  }

  async #show({ id }: RecordedSession, updates: readonly Params[]): Promise<void> {
    for (const update of updates) await this.#parts.show(id, update);
  }
}
