import { objectOf, type Params, type RequestId, stringOf } from "./message.ts";

/** JSON-RPC's and the protocol's codes that matter here. */
const AUTH_REQUIRED = -32000;

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

/** Requests to the agent that no client made. */
export class OwnRequests {
  readonly #send: (request: Params) => void;
  readonly #asked = new Map<RequestId, (answer: Omit<Answer, "id">) => void>();
  #serial = 0;

  constructor(send: (request: Params) => void) {
    this.#send = send;
  }

  /** Rejects with AgentError. */
  ask(method: string, params: Params): Promise<unknown> {
    this.#serial += 1;
    const id = `holdfast:${this.#serial}`;
    return new Promise((resolve, reject) => {
      this.#asked.set(id, ({ result, error }) => {
        if (error === undefined) resolve(result);
        else reject(new AgentError(error));
      });
      this.#send({ jsonrpc: "2.0", id, method, params });
    });
  }

  /** Whether this was the answer to one of them. */
  take(answer: Answer): boolean {
    const settle = this.#asked.get(answer.id);
    this.#asked.delete(answer.id);
    settle?.(answer);
    return settle !== undefined;
  }

  /** The agent has ended, and will not answer. */
  failAll(): void {
    const waiting = [...this.#asked.values()];
    this.#asked.clear();
    for (const settle of waiting) settle({ result: undefined, error: { message: "the agent has ended" } });
  }
}
