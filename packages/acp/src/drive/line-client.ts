import type { Readable, Writable } from "node:stream";
import { type Line, lineOf, objectOf, type Params, type RequestId, stringOf } from "../record/message.ts";
import { LineReader } from "../wrap/lines.ts";
import { Outlet } from "../wrap/outlet.ts";

/** The other side answered with an error, or is gone. */
export class RequestError extends Error {
  readonly code: number | null;
  readonly data: Params;

  constructor(error: unknown) {
    const { code, message, data } = objectOf(error) ?? {};
    super(stringOf(message) ?? "the agent answered with an error");
    this.code = typeof code === "number" ? code : null;
    this.data = objectOf(data) ?? {};
  }

  /** What was asked may have happened or not: a process in between has died. */
  get isInterrupted(): boolean {
    return this.data["interrupted"] === true;
  }
}

export interface LineClientOptions {
  readonly input: Readable;
  readonly output: Writable;
  readonly onUpdate: (update: Params) => void;
  /** Returns the outcome. */
  readonly onPermission: (request: Params) => Params;
}

const METHOD_NOT_FOUND = -32601;

/** The editor's side of the protocol, for a program that shows nothing and offers the agent nothing. */
export class LineClient {
  readonly #options: LineClientOptions;
  readonly #out: Outlet;
  readonly #open = new Map<RequestId, PromiseWithResolvers<Params>>();
  #serial = 0;
  #isOver = false;

  constructor(options: LineClientOptions) {
    this.#options = options;
    this.#out = new Outlet(options.output);
  }

  /** Resolves when the other side has closed its output. Requests without an answer are rejected then. */
  async read(): Promise<void> {
    const lines = new LineReader();
    try {
      for await (const chunk of this.#options.input as AsyncIterable<Buffer>)
        for (const line of lines.push(chunk)) if ("raw" in line) await this.#take(line);
    } finally {
      this.#isOver = true;
      for (const { reject } of this.#open.values()) reject(GONE);
      this.#open.clear();
    }
  }

  async request(method: string, params: Params): Promise<Params> {
    if (this.#isOver) throw GONE;
    this.#serial += 1;
    const id = this.#serial;
    const answer = Promise.withResolvers<Params>();
    this.#open.set(id, answer);
    await this.#out.write(lineOf({ id, method, params }));
    return answer.promise;
  }

  notify(method: string, params: Params): Promise<void> {
    return this.#out.write(lineOf({ method, params }));
  }

  async #take(line: Line): Promise<void> {
    if (line.kind === "response") {
      const answer = this.#open.get(line.id);
      this.#open.delete(line.id);
      if (line.error === undefined) answer?.resolve(objectOf(line.result) ?? {});
      else answer?.reject(new RequestError(line.error));
    } else if (line.kind === "notification") {
      if (line.method === "session/update") this.#options.onUpdate(objectOf(line.params["update"]) ?? {});
    } else if (line.kind === "request") {
      const { id, method, params } = line;
      if (method === "session/request_permission") {
        await this.#out.write(lineOf({ id, result: { outcome: this.#options.onPermission(params) } }));
      } else {
        const message = `This client has no ${method}.`;
        await this.#out.write(lineOf({ id, error: { code: METHOD_NOT_FOUND, message } }));
      }
    }
  }
}

const GONE = new RequestError({ message: "The process that runs and records the agent is gone." });
