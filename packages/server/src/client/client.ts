import type { z } from "zod";
import type { Operation } from "../schemas/operation.ts";
import { type OperationId, type Operations, operations } from "../schemas/operations.ts";
import type { Problem } from "../schemas/problem.ts";
import { readEvents, type ServerEvent } from "./event-source.ts";

/** The server refused a request. `code` is one of docs/ERRORS.md. */
export class ServerError extends Error {
  override readonly name = "ServerError";
  readonly code: string;
  readonly status: number;
  readonly facts: Readonly<Record<string, unknown>>;

  constructor({ code, status, detail, facts = {} }: Pick<Problem, "code" | "status" | "detail" | "facts">) {
    super(detail);
    this.code = code;
    this.status = status;
    this.facts = facts;
  }
}

type In<T> = T extends z.ZodType ? z.input<T> : Record<string, never>;
type Success<A> = A extends { readonly 200: infer T }
  ? T
  : A extends { readonly 201: infer T }
    ? T
    : A extends { readonly 202: infer T }
      ? T
      : null;
type Out<T> = T extends z.ZodType ? z.output<T> : T extends string ? string : undefined;

export interface CallInput<Id extends OperationId> {
  readonly params?: In<Operations[Id] extends { readonly params: infer P } ? P : null>;
  readonly query?: In<Operations[Id] extends { readonly query: infer Q } ? Q : null>;
  readonly body?: In<Operations[Id] extends { readonly body: infer B } ? B : null>;
}

export type CallOutput<Id extends OperationId> = Out<Success<Operations[Id]["answers"]>>;

export interface ClientOptions {
  /** Such as `http://127.0.0.1:4040`. */
  readonly url: string;
  readonly token: string;
  /** How long a request may take before it is given up. Default: ten minutes, because a summary takes a while. */
  readonly timeoutMs?: number;
}

const TIMEOUT_MS = 600_000;
/** The server sends a sign of life every 15 seconds. */
const SILENCE_MS = 45_000;

/** A client of the HTTP interface: one call for each operation, and the events of a session. */
export class HoldfastClient {
  readonly url: string;
  readonly #token: string;
  readonly #timeoutMs: number;

  constructor({ url, token, timeoutMs = TIMEOUT_MS }: ClientOptions) {
    this.url = url.replace(/\/+$/, "");
    this.#token = token;
    this.#timeoutMs = timeoutMs;
  }

  /** Throws ServerError, with UNREACHABLE if there is no connection. */
  async call<Id extends OperationId>(id: Id, input: CallInput<Id> = {}): Promise<CallOutput<Id>> {
    const operation: Operation = operations[id];
    const {
      params = {},
      query = {},
      body,
    } = input as {
      readonly params?: Record<string, unknown>;
      readonly query?: Record<string, unknown>;
      readonly body?: unknown;
    };
    const response = await this.#fetch(addressOf(operation, params, query), {
      method: operation.method.toUpperCase(),
      signal: AbortSignal.timeout(this.#timeoutMs),
      ...(operation.body ? { body: JSON.stringify(body ?? {}), headers: { "content-type": "application/json" } } : {}),
    });
    if (response.status === 204) return undefined as CallOutput<Id>;
    const isText = Object.values(operation.answers).some((answer) => typeof answer === "string");
    try {
      return (isText ? await response.text() : await response.json()) as CallOutput<Id>;
    } catch (error) {
      throw unreachable(this.url, error);
    }
  }

  /**
   * The events of a session, once: ends when the connection does, or when `signal` fires. Throws ServerError. `lastId`
   * of each event is where to go on.
   */
  async *events(
    session: string,
    { after = "", isBrief = false, signal }: { after?: string; isBrief?: boolean; signal?: AbortSignal } = {},
  ): AsyncGenerator<ServerEvent, void, undefined> {
    const query = { ...(isBrief ? { records: "brief" } : {}), ...(after === "" ? {} : { after }) };
    const ending = new AbortController();
    const stop = (): void => ending.abort();
    signal?.addEventListener("abort", stop, { once: true });
    let silence = setTimeout(stop, SILENCE_MS);
    try {
      if (signal?.aborted) return;
      const response = await this.#fetch(addressOf(operations.followEvents, { id: session }, query), {
        signal: ending.signal,
        headers: { accept: "text/event-stream" },
      });
      yield* readEvents(response.body!, after === "end" || after === "start" ? "" : after, () => {
        clearTimeout(silence);
        silence = setTimeout(stop, SILENCE_MS);
      });
    } catch (error) {
      // The caller has left: what it did not wait for is no failure of the server.
      if (signal?.aborted) return;
      if (error instanceof ServerError) throw error;
      // A cut connection ends the events, like any other end of it.
      if (!(error instanceof Error)) throw error;
    } finally {
      clearTimeout(silence);
      signal?.removeEventListener("abort", stop);
      ending.abort();
    }
  }

  async #fetch(path: string, init: RequestInit & { headers?: Record<string, string> }): Promise<Response> {
    let response: Response;
    try {
      response = await fetch(`${this.url}${path}`, {
        ...init,
        redirect: "error",
        headers: { ...init.headers, authorization: `Bearer ${this.#token}` },
      });
    } catch (error) {
      throw unreachable(this.url, error);
    }
    if (response.ok) return response;
    throw await refusal(this.url, response);
  }
}

function unreachable(url: string, cause: unknown): ServerError {
  const detail = `The server at ${url} cannot be reached. Its sessions are safe, and turns go on if it runs. Try again, or start it with "holdfast serve".`;
  return Object.assign(new ServerError({ code: "SERVER_UNREACHABLE", status: 0, detail }), { cause });
}

async function refusal(url: string, response: Response): Promise<ServerError> {
  const isProblem = response.headers.get("content-type")?.startsWith("application/problem+json") === true;
  const found = isProblem ? ((await response.json().catch(() => null)) as Problem | null) : null;
  if (found && typeof found.code === "string" && typeof found.detail === "string") return new ServerError(found);
  const detail = `${url} answered with status ${response.status}, which is not from a Holdfast server. Nothing was touched. Check the address.`;
  return new ServerError({ code: "SERVER_UNKNOWN", status: response.status, detail });
}

function addressOf(
  { path }: Operation,
  params: Readonly<Record<string, unknown>>,
  query: Readonly<Record<string, unknown>>,
): string {
  const filled = path.replaceAll(/:(\w+)/g, (_, name: string) => encodeURIComponent(String(params[name])));
  const search = new URLSearchParams();
  for (const [name, value] of Object.entries(query))
    for (const one of Array.isArray(value) ? value : [value]) if (one !== undefined) search.append(name, String(one));
  return search.size > 0 ? `${filled}?${search}` : filled;
}
