import type { Client } from "./client.ts";
import { INTERNAL, lineOf, type Params, type RequestId } from "./message.ts";
import type { RecordedSession } from "./recorded-session.ts";
import type { RunningAgent } from "./running-agent.ts";

const PERMISSION = "session/request_permission";

interface Asked {
  readonly method: string;
  readonly session: RecordedSession | null;
}

/** What the agent has asked the editor, and has no answer to yet. */
export class AgentRequests {
  readonly #open = new Map<RequestId, Asked>();

  asked(id: RequestId, asked: Asked): void {
    this.#open.set(id, asked);
  }

  /** Records what the editor decided. */
  async answered(id: RequestId, outcome: Params | null): Promise<void> {
    const asked = this.#open.get(id);
    this.#open.delete(id);
    if (asked?.method === PERMISSION) await asked.session?.beside("client", PERMISSION, outcome);
  }

  /** Nobody is there to answer: nothing is approved. */
  async refuse(agent: RunningAgent, id: RequestId, { method, session }: Asked): Promise<void> {
    this.#open.delete(id);
    if (method !== PERMISSION) {
      await agent.send({ id, error: { code: INTERNAL, message: "The editor has disconnected." } });
      return;
    }
    const outcome = { outcome: "cancelled" };
    await session?.beside("client", PERMISSION, { ...outcome, reason: "the editor was gone" });
    await agent.send({ id, result: { outcome } });
  }

  async refuseAll(agent: RunningAgent): Promise<void> {
    for (const [id, asked] of [...this.#open]) await this.refuse(agent, id, asked);
  }

  /** The agent has ended: the editor's questions to the person disappear. */
  async withdraw(client: Client | null): Promise<void> {
    const ids = [...this.#open.keys()];
    this.#open.clear();
    for (const requestId of ids) await client?.write(lineOf({ method: "$/cancel_request", params: { requestId } }));
  }
}
