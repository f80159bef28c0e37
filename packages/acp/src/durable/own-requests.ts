import { objectOf, type Params, type RequestId, stringOf } from "../wrap/message.ts";
import type { Response } from "./rpc.ts";

/** Requests to the agent that no client made. */
export class OwnRequests {
  readonly #send: (request: Params) => void;
  readonly #asked = new Map<RequestId, (answer: Response) => void>();
  #serial = 0;

  constructor(send: (request: Params) => void) {
    this.#send = send;
  }

  /** Rejects with the agent's error. */
  ask(method: string, params: Params): Promise<unknown> {
    this.#serial += 1;
    const id = `holdfast:${this.#serial}`;
    return new Promise((resolve, reject) => {
      this.#asked.set(id, ({ result, error }) => {
        if (error === undefined) resolve(result);
        else reject(new Error(stringOf(objectOf(error)?.["message"]) ?? "the agent answered with an error"));
      });
      this.#send({ jsonrpc: "2.0", id, method, params });
    });
  }

  /** Whether this was the answer to one of them. */
  take(answer: Response): boolean {
    const settle = this.#asked.get(answer.id);
    this.#asked.delete(answer.id);
    settle?.(answer);
    return settle !== undefined;
  }
}
