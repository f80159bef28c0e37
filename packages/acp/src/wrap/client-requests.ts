import { type Params, type RequestId, stringOf } from "../record/message.ts";
import type { RecordedSession } from "../record/recorded-session.ts";
import type { Client } from "./client.ts";

const PROMPT = "session/prompt";

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
