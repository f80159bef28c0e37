import { randomUUID } from "node:crypto";
import { expect } from "vitest";
import { operations } from "../src/index.ts";
import type { Operation } from "../src/schemas/operation.ts";
import type { Recording, RecordToMake, recordingOperations } from "../src/schemas/recordings.ts";
import { Prober } from "./probe.ts";

type RecorderOperation = keyof typeof recordingOperations;

export interface Answered {
  readonly status: number;
  // biome-ignore lint/suspicious/noExplicitAny: the schemas have checked it.
  readonly body: any;
  readonly headers: Headers;
}

/** Every answer goes through it: it validates them, and knows which statuses were seen. */
export const prober = new Prober();

export interface Address {
  readonly url: string;
  readonly token: string;
}

export interface RequestParts {
  readonly session?: string;
  readonly query?: Record<string, string>;
  readonly body?: unknown;
  /** Instead of the body, as it is. */
  readonly raw?: string;
  readonly headers?: Record<string, string>;
}

/** Sends a request, and checks the answer against the schemas of the operation. */
export async function send({ url, token }: Address, id: RecorderOperation, sent: RequestParts): Promise<Answered> {
  const { path, method, body } = operations[id] as Operation;
  const query = sent.query ? `?${new URLSearchParams(sent.query)}` : "";
  const response = await fetch(`${url}${path.replace(":id", sent.session ?? "")}${query}`, {
    method: method.toUpperCase(),
    headers: {
      authorization: `Bearer ${token}`,
      // A kept connection would lead to a server that was stopped.
      connection: "close",
      ...(body ? { "content-type": "application/json" } : {}),
      ...sent.headers,
    },
    ...(body ? { body: sent.raw ?? JSON.stringify(sent.body ?? {}) } : {}),
  });
  return prober.check(id, response);
}

/** An agent elsewhere that has nothing but HTTP. */
export class Agent {
  readonly server: Address;
  readonly session: string;
  recorder: string;
  readonly #run = randomUUID();
  #keys = 0;

  constructor(server: Address, { session, recorder }: Recording) {
    this.server = server;
    this.session = session;
    this.recorder = recorder!;
  }

  static async create(server: Address, body: object = {}): Promise<Agent> {
    const { status, body: recording } = await send(server, "createRecording", {
      body: { dialect: "anthropic", ...body },
    });
    expect(status).toBe(201);
    return new Agent(server, recording);
  }

  post(record: RecordToMake | object, key = `${this.#run} ${++this.#keys}`): Promise<Answered> {
    return send(this.server, "record", { session: this.session, body: { recorder: this.recorder, key, record } });
  }

  /** The same for a record that must be made. */
  async makes(record: RecordToMake | object, key?: string): Promise<Answered["body"]> {
    const { status, body } = await this.post(record, key);
    expect(status, JSON.stringify(body)).toBe(200);
    return body;
  }

  /** The same for one that must be refused; returns the code. */
  async refused(record: RecordToMake | object, key?: string): Promise<string> {
    const { status, body } = await this.post(record, key);
    expect(status, JSON.stringify(body)).toBeGreaterThanOrEqual(400);
    return body.code;
  }

  request(dialect?: string): Promise<Answered> {
    const body = { recorder: this.recorder, ...(dialect ? { dialect } : {}) };
    return send(this.server, "requestModel", { session: this.session, body });
  }

  messages(query: Record<string, string> = {}): Promise<Answered> {
    return send(this.server, "getRecordedMessages", { session: this.session, query });
  }

  take(take = false): Promise<Answered> {
    return send(this.server, "takeRecording", { session: this.session, body: { take } });
  }

  state(recorder?: string): Promise<Answered> {
    return send(this.server, "getRecording", { session: this.session, ...(recorder ? { query: { recorder } } : {}) });
  }

  release(recorder = this.recorder): Promise<Answered> {
    return send(this.server, "releaseRecording", { session: this.session, query: { recorder } });
  }
}
