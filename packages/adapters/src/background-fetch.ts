import { AsyncLocalStorage } from "node:async_hooks";
import { setTimeout as sleep } from "node:timers/promises";
import type { Json, Turn, TurnRequest } from "holdfast";

type Fetch = typeof globalThis.fetch;

/** A request to the model whose answer is recorded. */
export interface RecordedRequest {
  /** What its answer can be fetched by, if the provider has accepted it. */
  readonly handle: Json | null;
  /** Durable when it resolves. */
  accepted(handle: Json): Promise<void>;
  /** Its answer cannot be fetched: it is sent again. */
  forget(): void;
}

export interface BackgroundFetchOptions {
  /** Sends the requests. Default: the global `fetch`. */
  readonly fetch?: Fetch;
  /** The time between two questions whether an answer that does not stream is complete. Default: 2,000. */
  readonly pollMs?: number;
}

const asking = new AsyncLocalStorage<{ request: RecordedRequest | null }>();

/** While the model is asked, until its answer begins: requests by `backgroundFetch` belong to this one. */
export async function whileAsking<T>(request: RecordedRequest, ask: () => PromiseLike<T>): Promise<T> {
  const scope: { request: RecordedRequest | null } = { request };
  try {
    return await asking.run(scope, ask);
  } finally {
    // What the application does with the answer, such as running tools that ask a model, may keep the scope.
    scope.request = null;
  }
}

/**
 * The turn's next request. A framework takes an answer for one to all messages that it sent, so an answer that has not
 * seen the last of them is not fetched.
 */
export function nextRequest<M>(turn: Turn<M>): TurnRequest<M> {
  const request = turn.request();
  return request.accepted?.saidSince ? turn.request() : request;
}

/**
 * For clients of OpenAI's Responses API: `createOpenAI({ fetch: backgroundFetch() })`, `new OpenAI({ fetch: … })`.
 * Requests that the adapter records are made with `background: true` and `store: true`, and the id of the response is
 * on disk before its answer is read. If the process dies, the resumed turn fetches the answer by that id instead of
 * asking again. If the answer is no longer there, or failed, the request is sent again. All else passes unchanged:
 * requests outside of a recorded run, and those in which the application sets `background` itself.
 */
export function backgroundFetch({ fetch: send, pollMs = 2000 }: BackgroundFetchOptions = {}): Fetch {
  const background = new Background(send ?? ((...args) => globalThis.fetch(...args)), pollMs);
  return async (input, init) => {
    const request = asking.getStore()?.request;
    const given = request ? responseRequest(input, init) : null;
    return request && given ? background.answer(given, request) : background.send(input, init);
  };
}

interface ResponseRequest {
  readonly url: URL;
  readonly init: RequestInit;
  readonly body: { readonly stream?: boolean; readonly include?: readonly string[] };
}

/** Null if it is not a request for a response, or not one to be made in the background. */
function responseRequest(input: Parameters<Fetch>[0], init: RequestInit = {}): ResponseRequest | null {
  const { method, body } = init;
  if (method?.toUpperCase() !== "POST" || typeof body !== "string" || input instanceof Request) return null;
  const url = new URL(input);
  if (!url.pathname.endsWith("/responses")) return null;
  const given = JSON.parse(body) as ResponseRequest["body"];
  return "background" in given ? null : { url, init, body: given };
}

class Background {
  readonly send: Fetch;
  readonly #pollMs: number;

  constructor(send: Fetch, pollMs: number) {
    this.send = send;
    this.#pollMs = pollMs;
  }

  async answer(given: ResponseRequest, request: RecordedRequest): Promise<Response> {
    const id = idOf(request.handle);
    if (id !== null) {
      const fetched = await this.#fetched(given, id);
      if (fetched) return fetched;
    }
    if (request.handle !== null) request.forget();
    const { url, init, body } = given;
    const asked = JSON.stringify({ ...body, background: true, store: true });
    const response = await this.send(url, { ...init, body: asked });
    if (!response.ok) return response;
    return body.stream ? accepted(response, request) : this.#polled(given, response, request);
  }

  /** The answer to an accepted request. Null if there will never be one. */
  async #fetched(given: ResponseRequest, id: string): Promise<Response | null> {
    const found = await this.#get(given, id, {});
    if (found.status === 404) return null;
    if (!found.ok) return found;
    const { status } = (await found.clone().json()) as { readonly status?: string };
    if (status === "failed" || status === "cancelled") return null;
    if (!given.body.stream) return this.#polled(given, found, null);
    // From the first event on. Refused if it was not asked for as a stream.
    const streamed = await this.#get(given, id, { stream: "true" });
    return streamed.ok || streamed.status >= 500 ? streamed : null;
  }

  /** Waits until the response is complete. */
  async #polled(given: ResponseRequest, first: Response, request: RecordedRequest | null): Promise<Response> {
    let response = first;
    for (let isNew = true; ; isNew = false) {
      const { id, status } = (await response.clone().json()) as { readonly id?: unknown; readonly status?: unknown };
      if (isNew && typeof id === "string") await request?.accepted(handleOf(id));
      if (typeof id !== "string" || (status !== "queued" && status !== "in_progress")) return response;
      await sleep(this.#pollMs, undefined, given.init.signal ? { signal: given.init.signal } : {});
      response = await this.#get(given, id, {});
      if (!response.ok) return response;
    }
  }

  #get({ url, init, body }: ResponseRequest, id: string, query: Record<string, string>): Promise<Response> {
    const at = new URL(url);
    at.pathname += `/${encodeURIComponent(id)}`;
    for (const name of body.include ?? []) at.searchParams.append("include[]", name);
    for (const [name, value] of Object.entries(query)) at.searchParams.set(name, value);
    const { body: _body, ...others } = init;
    const headers = new Headers(init.headers);
    headers.delete("content-length");
    headers.delete("content-type");
    return this.send(at, { ...others, headers, method: "GET" });
  }
}

const API = "openai-responses";

function handleOf(id: string): Json {
  return { api: API, id };
}

/** Null if it was recorded by something else. */
function idOf(handle: Json | null): string | null {
  const { api, id } = (handle ?? {}) as { readonly api?: unknown; readonly id?: unknown };
  return api === API && typeof id === "string" ? id : null;
}

/** How much of a stream may come before the event that names the response. */
const HEAD_CHARS_MAX = 1024 * 1024;

/** The stream, once the id that its first event names is recorded. */
async function accepted(response: Response, request: RecordedRequest): Promise<Response> {
  if (!response.body) return response;
  const reader = response.body.getReader();
  const decoder = new TextDecoder();
  const read: Uint8Array[] = [];
  let head = "";
  let id: string | null = null;
  for (let isOver = false; !isOver && id === null && head.length < HEAD_CHARS_MAX; ) {
    const { done, value } = await reader.read();
    isOver = done;
    if (!value) continue;
    read.push(value);
    head += decoder.decode(value, { stream: true });
    id = createdIn(head);
  }
  if (id !== null) {
    try {
      await request.accepted(handleOf(id));
    } catch (error) {
      void reader.cancel(error).catch(() => {});
      throw error;
    }
  }
  const body = new ReadableStream<Uint8Array>({
    async pull(controller) {
      const first = read.shift();
      if (first) return controller.enqueue(first);
      const { done, value } = await reader.read();
      if (done) controller.close();
      else controller.enqueue(value);
    },
    cancel: (reason) => reader.cancel(reason),
  });
  return new Response(body, { status: response.status, headers: response.headers });
}

/** The id in the event `response.created`, if it is there as a whole. */
function createdIn(head: string): string | null {
  for (const line of head.split(/\r?\n/).slice(0, -1)) {
    if (!line.startsWith("data:")) continue;
    try {
      const { response } = JSON.parse(line.slice(5)) as { readonly response?: { readonly id?: unknown } };
      if (typeof response?.id === "string") return response.id;
    } catch {
      // Not JSON, such as [DONE].
    }
  }
  return null;
}
