import type { IncomingHttpHeaders, IncomingMessage } from "node:http";
import { text } from "node:stream/consumers";
import type { z } from "zod";
import { ProvenSender, plainAddress, UnprovenError } from "../proof/proven-agent.ts";
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
  /**
   * Asked when the server is not at its address any more: where it is now, or null. It has to prove itself there, as it
   * did before.
   */
  readonly locate?: () => string | null;
}

const TIMEOUT_MS = 600_000;
/** The server sends a sign of life every 15 seconds. */
const SILENCE_MS = 45_000;

/** A client of the HTTP interface: one call for each operation, and the events of a session. */
export class HoldfastClient {
  readonly #sender: ProvenSender;
  readonly #timeoutMs: number;
  readonly #locate: () => string | null;
  #url: string;

  constructor({ url, token, timeoutMs = TIMEOUT_MS, locate = () => null }: ClientOptions) {
    this.#url = plainAddress(url);
    this.#locate = locate;
    this.#sender = new ProvenSender(token);
    this.#timeoutMs = timeoutMs;
  }

  /** Where the server is, or was last. */
  get url(): string {
    return this.#url;
  }

  /**
   * Throws ServerError: SERVER_UNREACHABLE without a connection, SERVER_UNPROVEN if it is not a server of yours.
   * `onAnswer` hears the headers of the answer, also of a refusal.
   */
  async call<Id extends OperationId>(
    id: Id,
    input: CallInput<Id> = {},
    onAnswer?: (headers: IncomingHttpHeaders) => void,
  ): Promise<CallOutput<Id>> {
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
    const init = {
      method: operation.method.toUpperCase(),
      signal: AbortSignal.timeout(this.#timeoutMs),
      headers: operation.body ? { "content-type": "application/json" } : {},
      ...(operation.body ? { body: JSON.stringify(body ?? {}) } : {}),
    };
    const response = await this.#fetch(addressOf(operation, params, query), init, onAnswer);
    const isText = Object.values(operation.answers).some((answer) => typeof answer === "string");
    try {
      const answer = await text(response);
      if (response.statusCode === 204) return undefined as CallOutput<Id>;
      return (isText ? answer : JSON.parse(answer)) as CallOutput<Id>;
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
        method: "GET",
        signal: ending.signal,
        headers: { accept: "text/event-stream" },
      });
      yield* readEvents(response, after === "end" || after === "start" ? "" : after, () => {
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

  async #fetch(
    path: string,
    request: Parameters<ProvenSender["send"]>[1],
    onAnswer?: (headers: IncomingHttpHeaders) => void,
  ): Promise<IncomingMessage> {
    let response: IncomingMessage;
    try {
      response = await this.#sender.send(`${this.url}${path}`, request);
    } catch (error) {
      const isUnproven = error instanceof UnprovenError;
      // Nobody has read the request: it can be sent elsewhere.
      const isUnread = isUnproven || (error as NodeJS.ErrnoException).code === "ECONNREFUSED";
      if (isUnread && this.#move()) return this.#fetch(path, request, onAnswer);
      throw isUnproven ? unproven(this.url, error) : unreachable(this.url, error);
    }
    onAnswer?.(response.headers);
    if (response.statusCode! < 300) return response;
    throw await refusal(this.url, response);
  }

  /** Whether the server is elsewhere by now. */
  #move(): boolean {
    const found = this.#locate();
    const url = found === null ? this.#url : plainAddress(found);
    const hasMoved = url !== this.#url;
    this.#url = url;
    return hasMoved;
  }
}

function unreachable(url: string, cause: unknown): ServerError {
  const detail = `The server at ${url} cannot be reached. Its sessions are safe, and turns go on if it runs. Try again, or start it with "holdfast serve".`;
  return Object.assign(new ServerError({ code: "SERVER_UNREACHABLE", status: 0, detail }), { cause });
}

/** In our own words: nobody knows who it is. */
function unproven(url: string, { status }: UnprovenError): ServerError {
  if (status === 401) {
    const detail = `The token is not one of the server's at ${url}. Nothing was touched. "holdfast serve --show-token" shows it.`;
    return new ServerError({ code: "TOKEN_MISSING", status, detail });
  }
  if (status !== 0 && status !== 421 && status !== 204) return unknown(url, status);
  const why = `What listens at ${url} did not prove that it is your server, so the token was not sent. Nothing was touched.`;
  const detail = `${why} Another user's program may listen there. If it is your server, behind a proxy or a tunnel, start it with --allow-host ${new URL(url).host}, or use HTTPS.`;
  return new ServerError({ code: "SERVER_UNPROVEN", status, detail });
}

function unknown(url: string, status: number): ServerError {
  const detail = `${url} answered with status ${status}, which is not from a Holdfast server of this version. Nothing was touched. Check the address.`;
  return new ServerError({ code: "SERVER_UNKNOWN", status, detail });
}

async function refusal(url: string, response: IncomingMessage): Promise<ServerError> {
  const isProblem = response.headers["content-type"]?.startsWith("application/problem+json") === true;
  const found = problemIn(await text(response).catch(() => ""));
  return isProblem && found ? new ServerError(found) : unknown(url, response.statusCode!);
}

function problemIn(answer: string): Problem | null {
  try {
    const found = JSON.parse(answer) as Problem | null;
    return found && typeof found.code === "string" && typeof found.detail === "string" ? found : null;
  } catch (error) {
    if (error instanceof SyntaxError) return null;
    throw error;
  }
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
