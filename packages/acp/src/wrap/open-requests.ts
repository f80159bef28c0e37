import { INTERNAL, lineOf, type Params, type RequestId, stringOf } from "../record/message.ts";
import type { RecordedSession } from "../record/recorded-session.ts";
import type { Client } from "./client.ts";
import type { RunningAgent } from "./restartable-agent.ts";

const PROMPT = "session/prompt";
const PERMISSION = "session/request_permission";

/** A request of an editor that the agent has not answered. */
export interface FromClient {
  readonly client: Client;
  /** As the editor knows it. */
  readonly id: RequestId;
  readonly method: string;
  readonly params: Params;
}

/** What editors have asked, and have no answer to yet. */
export class ClientRequests {
  /** By the id that the agent knows. */
  readonly #open = new Map<RequestId, FromClient>();
  /** Answered for the agent, which does not know that, and answers too. */
  readonly #refused = new Set<RequestId>();

  asked(request: FromClient): void {
    this.#open.set(request.client.idForAgent(request.id), request);
  }

  of(client: Client, id: RequestId): FromClient | null {
    return this.#open.get(client.idForAgent(id)) ?? null;
  }

  /** Returns whether it was open. */
  close(client: Client, id: RequestId): boolean {
    return this.#open.delete(client.idForAgent(id));
  }

  /** The request that the agent answers; null if nobody asked that. `isRefused`: the editor has been told an error. */
  answered(id: RequestId): { readonly asked: FromClient | null; readonly isRefused: boolean } {
    const asked = this.#open.get(id) ?? null;
    this.#open.delete(id);
    return { asked, isRefused: this.#refused.delete(id) };
  }

  /** The prompts that the agent works on, with the ids of their sessions. */
  get prompts(): readonly string[] {
    return [...this.#open.values()].flatMap(({ method, params }) =>
      method === PROMPT ? [stringOf(params["sessionId"]) ?? ""] : [],
    );
  }

  /** Whether this editor waits for an answer, other than to a prompt. */
  isOwed(client: Client): boolean {
    return [...this.#open.values()].some((one) => one.client === client && one.method !== PROMPT);
  }

  /** Takes the prompts of a session. The agent's answers to them are not passed on. */
  refusePrompts({ id }: RecordedSession): readonly FromClient[] {
    const prompts = [...this.#open].filter(([, { method, params }]) => method === PROMPT && params["sessionId"] === id);
    for (const [known] of prompts) {
      this.#open.delete(known);
      this.#refused.add(known);
    }
    return prompts.map(([, request]) => request);
  }

  /** Takes all of them: the agent has ended. */
  takeAll(): readonly FromClient[] {
    const all = [...this.#open.values()];
    this.#open.clear();
    this.#refused.clear();
    return all;
  }
}

/** A request of the agent that the editor has not answered. */
export interface FromAgent {
  /** The agent's id of the request. */
  readonly id: RequestId;
  readonly method: string;
  readonly params: Params;
  readonly session: RecordedSession | null;
}

/** What the agent has asked the editor, and has no answer to yet. */
export class AgentRequests {
  /** By the id that the editor knows. */
  readonly #open = new Map<RequestId, FromAgent>();

  asked(agent: RunningAgent, asked: FromAgent): void {
    this.#open.set(agent.idForClient(asked.id), asked);
  }

  /** Records what the editor decided. Returns the request; null if the agent does not wait for this. */
  async answered(id: RequestId, outcome: Params | null): Promise<FromAgent | null> {
    const asked = this.#open.get(id);
    this.#open.delete(id);
    if (asked?.method === PERMISSION) await asked.session?.decided(asked.params, outcome);
    return asked ?? null;
  }

  /** Nobody is there to answer: nothing is approved. */
  async refuse(
    agent: RunningAgent,
    { id, method, params, session }: FromAgent,
    why = "the editor was gone",
  ): Promise<void> {
    this.#open.delete(agent.idForClient(id));
    if (method !== PERMISSION) {
      void agent.send({ id, error: { code: INTERNAL, message: `Not asked: ${why}.` } });
      return;
    }
    const outcome = { outcome: "cancelled" };
    try {
      await session?.decided(params, outcome, why);
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
