import { randomUUID } from "node:crypto";
import { expect } from "vitest";
import type { Operation } from "../src/index.ts";
import { operations, problem } from "../src/index.ts";
import { problemsOf } from "../src/openapi/document.ts";
import type { Recording, RecordToMake, recorderOperations } from "../src/schemas/recorder.ts";

type RecorderOperation = keyof typeof recorderOperations;

export interface Answered {
  readonly status: number;
  // biome-ignore lint/suspicious/noExplicitAny: the schemas have checked it.
  readonly body: any;
  readonly headers: Headers;
}

/** Every answer of an operation of the recorder so far, as `record 200`. */
export const seen = new Set<string>();

/** Sends a request, and checks the answer against the schemas of the operation. */
export async function send(
  server: { readonly url: string; readonly token: string },
  id: RecorderOperation,
  input: {
    session?: string;
    query?: Record<string, string>;
    body?: unknown;
    raw?: string;
    headers?: Record<string, string>;
  },
): Promise<Answered> {
  const operation: Operation = operations[id];
  const path = operation.path.replace(":id", input.session ?? "");
  const query = input.query ? `?${new URLSearchParams(input.query)}` : "";
  const hasBody = operation.body !== undefined;
  const response = await fetch(`${server.url}${path}${query}`, {
    method: operation.method.toUpperCase(),
    headers: {
      authorization: `Bearer ${server.token}`,
      ...(hasBody ? { "content-type": "application/json" } : {}),
      ...input.headers,
    },
    ...(hasBody ? { body: input.raw ?? JSON.stringify(input.body ?? {}) } : {}),
  });
  const text = await response.text();
  const { status, headers } = response;
  seen.add(`${id} ${status}`);
  const schema = operation.answers[status];
  if (status < 300) {
    expect(schema, `${id} ${status}`).not.toBe(undefined);
    if (schema === null) expect(text).toBe("");
    else expect((schema as { parse(value: unknown): unknown }).parse(JSON.parse(text))).toEqual(JSON.parse(text));
  } else {
    expect(headers.get("content-type")).toMatch(/^application\/problem\+json/);
    expect(problem.parse(JSON.parse(text))).toMatchObject({ status });
    expect(problemsOf(operation), `${id}: ${text}`).toContain(status);
  }
  return { status, body: text === "" ? null : JSON.parse(text), headers };
}

/** An agent elsewhere that has nothing but HTTP. */
export class Agent {
  readonly server: { readonly url: string; readonly token: string };
  readonly session: string;
  recorder: string;
  readonly #run = randomUUID();
  #keys = 0;

  constructor(server: { readonly url: string; readonly token: string }, { session, recorder }: Recording) {
    this.server = server;
    this.session = session;
    this.recorder = recorder!;
  }

  static async create(server: { readonly url: string; readonly token: string }, body: object = {}): Promise<Agent> {
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
