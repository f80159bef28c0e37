import { INTERNAL, lineOf, type Params, type RequestId } from "../record/message.ts";
import type { RecordedSession } from "../record/recorded-session.ts";
import type { Client } from "./client.ts";
import type { RunningAgent } from "./running-agent.ts";

const PERMISSION = "session/request_permission";

interface Asked {
  /** The agent's id of the request. */
  readonly id: RequestId;
  readonly method: string;
  readonly session: RecordedSession | null;
}

/** What the agent has asked the editor, and has no answer to yet. */
export class AgentRequests {
  /** By the id that the editor knows. */
  readonly #open = new Map<RequestId, Asked>();

  asked(agent: RunningAgent, asked: Asked): void {
    this.#open.set(agent.idForClient(asked.id), asked);
  }

  /** Records what the editor decided. Returns the request; null if the agent does not wait for this. */
  async answered(id: RequestId, outcome: Params | null): Promise<Asked | null> {
    const asked = this.#open.get(id);
    this.#open.delete(id);
    if (asked?.method === PERMISSION) await asked.session?.beside("client", PERMISSION, outcome);
    return asked ?? null;
  }

  /** Nobody is there to answer: nothing is approved. */
  async refuse(agent: RunningAgent, { id, method, session }: Asked, why = "the editor was gone"): Promise<void> {
    this.#open.delete(agent.idForClient(id));
    if (method !== PERMISSION) {
      void agent.send({ id, error: { code: INTERNAL, message: `Not asked: ${why}.` } });
      return;
    }
    const outcome = { outcome: "cancelled" };
    try {
      await session?.beside("client", PERMISSION, { ...outcome, reason: why });
    } finally {
      // A refusal counts also if it cannot be recorded. It is not waited for: an agent that does not read it may be
      // waiting to be read itself.
      void agent.send({ id, result: { outcome } });
    }
  }

  async refuseAll(agent: RunningAgent): Promise<void> {
    await Promise.allSettled([...this.#open.values()].map((asked) => this.refuse(agent, asked)));
  }

  /** The agent has ended, or a session of it: the editor's questions to the person disappear. */
  async withdraw(client: Client | null, session?: RecordedSession): Promise<void> {
    const ids = [...this.#open].filter(([, asked]) => !session || asked.session === session).map(([id]) => id);
    for (const requestId of ids) {
      this.#open.delete(requestId);
      await client?.write(lineOf({ method: "$/cancel_request", params: { requestId } }));
    }
  }
}
