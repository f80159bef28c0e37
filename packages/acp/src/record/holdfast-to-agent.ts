import { objectOf, type Params, type RequestId, stringOf } from "./message.ts";

/** JSON-RPC's and the protocol's codes that matter here. */
const AUTH_REQUIRED = -32000;

/** The agent has ended before it answered. This says nothing about what it was asked. */
export class AgentEnded extends Error {
  constructor() {
    super("The agent has ended. What it did so far is recorded. Send the next prompt to start it again.");
  }
}

/** A turn that is not tried again by itself: its agent has ended too often. */
export class TurnParked extends Error {}

/** What an agent answered instead of a result. The editor is told the same, with its code. */
export class AgentError extends Error {
  readonly code: number | null;
  readonly data: unknown;

  constructor(error: unknown) {
    const { code, message, data } = objectOf(error) ?? {};
    super(stringOf(message) ?? "the agent answered with an error");
    this.code = typeof code === "number" ? code : null;
    this.data = data;
  }

  /** The person has to sign in first. Nothing else about the request is wrong. */
  get isAuthRequired(): boolean {
    return this.code === AUTH_REQUIRED;
  }
}

/** An answer of the agent. */
interface Answer {
  readonly id: RequestId;
  readonly result: unknown;
  /** Undefined if it succeeded. */
  readonly error: unknown;
}

type PendingRequest = PromiseWithResolvers<unknown>;

/** Requests to the agent that no client made. */
export class OwnRequests {
  readonly #send: (request: Params) => void;
  readonly #pending = new Map<RequestId, PendingRequest>();
  #serial = 0;
  #hasEnded = false;

  constructor(send: (request: Params) => void) {
    this.#send = send;
  }

  /** Rejects with AgentError, or with AgentEnded. */
  async ask(method: string, params: Params): Promise<unknown> {
    if (this.#hasEnded) throw new AgentEnded();
    this.#serial += 1;
    const id = `holdfast:${this.#serial}`;
    const pending = Promise.withResolvers<unknown>();
    this.#pending.set(id, pending);
    this.#send({ jsonrpc: "2.0", id, method, params });
    return pending.promise;
  }

  /** Whether this was the answer to one of them. */
  take({ id, result, error }: Answer): boolean {
    const pending = this.#pending.get(id);
    this.#pending.delete(id);
    if (error === undefined) pending?.resolve(result);
    else pending?.reject(new AgentError(error));
    return pending !== undefined;
  }

  /** The agent has ended. It answers neither these nor any that follow. */
  failAll(): void {
    this.#hasEnded = true;
    for (const { reject } of this.#pending.values()) reject(new AgentEnded());
    this.#pending.clear();
  }
}
