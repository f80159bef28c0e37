import type { Socket } from "node:net";
import type { HttpBindings } from "@hono/node-server";
import { type Context, Hono, type MiddlewareHandler } from "hono";
import { bodyLimit } from "hono/body-limit";
import type { z } from "zod";
import { checkRequest } from "../access/check-request.ts";
import type { Caller } from "../access/credentials.ts";
import { problemOf } from "../access/problem-of.ts";
import { refuse } from "../access/request-error.ts";
import type { Answer, HandlerContext, Handlers, RequestContext } from "../handlers/context.ts";
import { readingHandlers } from "../handlers/reading.ts";
import { recordingHandlers } from "../handlers/recordings.ts";
import { serverHandlers, WRONG_TOKEN } from "../handlers/server.ts";
import { sessionHandlers } from "../handlers/sessions.ts";
import { turnHandlers } from "../handlers/turns.ts";
import { redactAnswer } from "../hosting/redacted-view.ts";
import { recordingId } from "../recordings/http-recordings.ts";
import { POSITION } from "../schemas/events.ts";
import type { Operation } from "../schemas/operation.ts";
import { type OperationId, operations } from "../schemas/operations.ts";
import type { PageFile } from "./page-files.ts";
import { FORWARDED, type Peers, REDACTED } from "./peers.ts";
import { ReaderLanes } from "./reader-lanes.ts";

export interface AppOptions extends HandlerContext {
  readonly bodyBytesMax: number;
  /** A request with a valid token came over this connection. */
  readonly onCaller: (socket: Socket, caller: Caller) => void;
  readonly page: ReadonlyMap<string, PageFile>;
  /** In place of the sessions, for readers who may not see credentials: they reach only what reads. */
  readonly redacted: Pick<HandlerContext, "hosting" | "histories">;
  readonly peers: Peers;
  /** One line for each request, without its query, headers and body. */
  readonly log: (line: RequestLine) => void;
}

export interface RequestLine {
  readonly method: string;
  readonly path: string;
  readonly status: number;
  readonly ms: number;
  readonly access: Caller["access"] | "none";
  readonly code?: string;
  /** For an error that is not ours. */
  readonly error?: unknown;
}

type Env = { Bindings: HttpBindings };

const handlers: Handlers = {
  ...serverHandlers,
  ...sessionHandlers,
  ...readingHandlers,
  ...turnHandlers,
  ...recordingHandlers,
};

const HEADERS: Readonly<Record<string, string>> = {
  "cache-control": "no-store",
  "content-security-policy": "default-src 'none'; frame-ancestors 'none'",
  "cross-origin-resource-policy": "same-origin",
  "referrer-policy": "no-referrer",
  "x-content-type-options": "nosniff",
  "x-frame-options": "DENY",
};

/** The HTTP application. It checks who asks and what, and passes everything else on. */
export function makeApp(options: AppOptions): Hono<Env> {
  const { allowed, bodyBytesMax, page, log } = options;
  const app = new Hono<Env>();
  const readers = new ReaderLanes();

  app.use(async (c, next) => {
    const start = performance.now();
    for (const [name, value] of Object.entries(HEADERS)) c.header(name, value);
    await next();
    const ms = Math.round(performance.now() - start);
    const { error, code } = c.var as { readonly error?: unknown; readonly code?: string };
    const access = (c.var as { readonly caller?: Caller | null }).caller?.access ?? "none";
    log({
      method: c.req.method,
      path: c.req.path,
      status: c.res.status,
      ms,
      access,
      ...(code === undefined ? {} : { code }),
      ...(error === undefined ? {} : { error }),
    });
  });
  app.use(async (c, next) => {
    const cookies = cookiesNamed(options.cookieName(), c.req.header("cookie"));
    const token = bearerIn(c.req.header("authorization"));
    checkRequest(
      {
        method: c.req.method,
        host: c.req.header("host"),
        origin: c.req.header("origin"),
        fetchSite: c.req.header("sec-fetch-site"),
        byCookie: token === null && cookies.length > 0,
      },
      allowed,
    );
    const { credentials } = options;
    const caller = token !== null ? credentials.byToken(token) : firstOf(cookies, (one) => credentials.byCookie(one));
    c.set("caller" as never, caller as never);
    if (caller) options.onCaller(c.env.incoming.socket, caller);
    allowOrigin(c, allowed.origins);
    if (c.req.method === "OPTIONS") return c.body(null, 204);
    await next();
  });
  for (const [id, operation] of Object.entries<Operation>(operations)) {
    // Check access before reading the body.
    const admit: MiddlewareHandler<Env> = async (c, next) => {
      assertAccess(operation, { ...options, c, caller: callerOf(c) });
      await next();
      // A client that mirrors the session knows from it whether it has heard what this request did, or failed to do.
      const feed = options.hosting.feed(c.req.param("id") ?? "");
      if (feed && id !== "followEvents") c.header(POSITION, feed.position);
    };
    // A stream lasts; there is a limit of its own for those.
    const line: MiddlewareHandler<Env> = async (c, next) => {
      const caller = callerOf(c);
      if (caller?.access !== "read" || id === "followEvents") return next();
      const leave = await readers.enter(caller.share);
      try {
        await next();
      } finally {
        leave();
      }
    };
    const limit = limitBody(operation.access === "open" ? OPEN_BODY_BYTES_MAX : bodyBytesMax);
    app.on(operation.method.toUpperCase(), operation.path, admit, line, limit, async (c) => {
      const isRedacted = isForRedacted(c);
      const context = { ...options, ...(isRedacted ? options.redacted : {}), c, caller: callerOf(c) };
      const input = await readInput(operation, c);
      const handler = handlers[id as OperationId] as (input: unknown, context: RequestContext) => Promise<Answer>;
      const session = c.req.param("id") ?? keyedSession(id as OperationId, input.body);
      const answer = await answered(id as OperationId, session, context, () => handler(input, context));
      if ("response" in answer) return answer.response;
      if (answer.body === undefined) return c.body(null, answer.status as 204);
      const { host } = options.hosting;
      return c.json(isRedacted ? redactAnswer(host, answer.body as object) : answer.body, answer.status as 200);
    });
  }
  app.get("*", (c, next) => {
    const file = page.get(c.req.path);
    if (!file) return next();
    // Also with a 304: a browser takes the policy of the answer, not that of the copy it has.
    for (const [name, value] of Object.entries(file.headers)) c.header(name, value);
    if (hasTag(c.req.header("if-none-match"), file.headers["etag"]!)) return c.body(null, 304);
    return c.body(file.bytes);
  });
  app.all("*", (c) => {
    const known = [...new Set(methodsAt(c.req.path))];
    if (known.length === 0) throw refuse("NO_SUCH_PATH", "The server has nothing at this path. See /openapi.json.");
    c.header("allow", known.join(", "));
    throw refuse("METHOD_REFUSED", `This path takes ${known.join(", ")}. Nothing was touched.`);
  });
  app.onError((error, c) => {
    const { problem, isUnexpected } = problemOf(isCutOff(error, c.req.raw.signal) ? cutOff() : error);
    c.set("code" as never, problem.code as never);
    if (isUnexpected) c.set("error" as never, error as never);
    for (const [name, value] of Object.entries(HEADERS)) c.header(name, value);
    if (problem.status === 401) c.header("www-authenticate", 'Bearer realm="holdfast"');
    if (problem.status === 503) c.header("retry-after", "2");
    return c.json(problem, problem.status as 500, { "content-type": "application/problem+json" });
  });
  return app;
}

/** Answers here, or has the server answer that has the session open. */
async function answered(
  id: OperationId,
  session: string | undefined,
  context: RequestContext & Pick<AppOptions, "peers">,
  answerHere: () => Promise<Answer> | Answer,
): Promise<Answer> {
  const { c, hosting, recordings, peers } = context;
  if (session === undefined) return answerHere();
  const isHere = (): boolean => hosting.feed(session) !== null || recordings.has(session);
  if (c.req.header(FORWARDED) !== undefined) {
    if (isHere()) return answerHere();
    throw refuse("SESSION_ELSEWHERE", `This server does not have session ${session} open. Nothing was touched.`);
  }
  if (peers.goFirst(id, operations[id]) && !isHere()) {
    const response = await passOn(id, context);
    if (response) return { response };
  }
  try {
    return await answerHere();
  } catch (error) {
    const response = peers.canHelp(error) ? await passOn(id, context) : null;
    if (response) return { response };
    throw error;
  }
}

/** Passes the request on. An event stream from another server counts like one of this server's own. */
async function passOn(
  id: OperationId,
  { c, peers, streams, caller }: RequestContext & Pick<AppOptions, "peers">,
): Promise<Response | null> {
  if (id !== "followEvents") return peers.answer(c, isForRedacted(c));
  const opened = streams.reserve(caller!);
  const [ending, ended] = [new AbortController(), new AbortController()];
  try {
    const response = await peers.answer(c, isForRedacted(c), ending.signal);
    if (!response) return null;
    c.env.outgoing.once("close", () => ended.abort());
    streams.add({ signal: ended.signal, waitingBytes: 0, end: () => ending.abort() }, caller!);
    return response;
  } finally {
    opened();
  }
}

/** The session that a request with a key is about, before anybody knows whether it exists. */
function keyedSession(id: OperationId, body: unknown): string | undefined {
  const { key } = body as { readonly key?: unknown };
  return id === "createRecording" && typeof key === "string" ? recordingId(key) : undefined;
}

/** What anybody may send. */
const OPEN_BODY_BYTES_MAX = 4096;

function limitBody(maxSize: number): MiddlewareHandler {
  return bodyLimit({
    maxSize,
    onError: () => {
      const message = `The body is larger than ${maxSize} bytes. Nothing was recorded. Send less, for example smaller images.`;
      throw refuse("BODY_TOO_LARGE", message, { max: maxSize });
    },
  });
}

/** The client left, or sent less than it had announced. */
function isCutOff(error: unknown, { aborted }: AbortSignal): boolean {
  const { code, message, name } = (error ?? {}) as NodeJS.ErrnoException;
  return (code === "ECONNRESET" && message === "aborted") || (aborted && name === "AbortError");
}

function cutOff(): Error {
  return refuse("REQUEST_INVALID", "The connection ended before the whole request had arrived. Nothing was touched.");
}

/** A page on another port of this host can set a cookie of the same name: it must not hide the right one. */
function cookiesNamed(name: string, header: string | undefined): string[] {
  const pairs = (header ?? "").split(";").map((pair) => pair.trim());
  return pairs.filter((pair) => pair.startsWith(`${name}=`)).map((pair) => pair.slice(name.length + 1));
}

function firstOf<T, U>(list: readonly T[], of: (one: T) => U | null): U | null {
  for (const one of list) {
    const found = of(one);
    if (found !== null) return found;
  }
  return null;
}

/** Whether a list of entity tags has this one. They are compared weakly, as RFC 9110 says. */
function hasTag(list: string | undefined, tag: string): boolean {
  const tags = (list ?? "").split(",").map((one) => one.trim().replace(/^W\//, ""));
  return tags.includes(tag) || tags.includes("*");
}

function callerOf(c: Context<Env>): Caller | null {
  return (c.var as { readonly caller?: Caller | null }).caller ?? null;
}

/** Whether the one who asks may not see credentials, here or at the server that passed the request on. */
function isForRedacted(c: Context<Env>): boolean {
  const caller = callerOf(c);
  return caller?.access === "read" ? caller.redact === true : c.req.header(FORWARDED) === REDACTED;
}

function bearerIn(header: string | undefined): string | null {
  const [, token] = /^Bearer +(\S+)$/i.exec(header ?? "") ?? [];
  return token ?? null;
}

/** A read-only token opens what is marked so, for its session. */
function assertAccess({ access }: Operation, { caller, c }: RequestContext): void {
  if (access === "open") return;
  if (caller === null) {
    const isGiven = c.req.header("authorization") !== undefined || c.req.header("cookie") !== undefined;
    throw refuse(
      "TOKEN_MISSING",
      isGiven
        ? WRONG_TOKEN
        : 'Every request needs the server\'s token: "Authorization: Bearer <token>". "holdfast serve --show-token" shows it.',
    );
  }
  if (caller.access === "owner") return;
  const session = c.req.param("id");
  if (access === "read" && (session === undefined || session === caller.session)) return;
  throw refuse(
    "TOKEN_READ_ONLY",
    "This token is for reading one session, and does not allow this. Nothing was touched.",
  );
}

/** For web pages from elsewhere that the user has allowed. */
function allowOrigin(c: Context<Env>, origins: readonly string[]): void {
  const origin = c.req.header("origin");
  if (origin === undefined || !origins.includes(origin)) return;
  c.header("access-control-allow-origin", origin);
  c.header("vary", "Origin");
  c.header("cross-origin-resource-policy", "cross-origin");
  if (c.req.method !== "OPTIONS") return;
  c.header("access-control-allow-methods", "GET, POST, PATCH, DELETE");
  c.header("access-control-allow-headers", "authorization, content-type, last-event-id");
  c.header("access-control-max-age", "600");
}

async function readInput({ params, query, body }: Operation, c: Context<Env>): Promise<RequestInput> {
  return {
    params: check("path", params, c.req.param()),
    query: check("query", query, queryOf(c)),
    body: body ? check("body", body, await bodyOf(c)) : {},
  };
}

interface RequestInput {
  readonly params: unknown;
  readonly query: unknown;
  readonly body: unknown;
}

function queryOf(c: Context<Env>): Record<string, string | string[]> {
  return Object.fromEntries(
    Object.entries(c.req.queries()).map(([name, values]) => [name, values.length === 1 ? values[0]! : values]),
  );
}

const UTF8 = new TextDecoder("utf-8", { fatal: true });

async function bodyOf(c: Context<Env>): Promise<unknown> {
  const bytes = await c.req.arrayBuffer();
  if (bytes.byteLength === 0) return {};
  const type = c.req.header("content-type") ?? "";
  const [, charset = "utf-8"] = /;\s*charset="?([^";\s]+)/i.exec(type) ?? [];
  const isPlain = /^(?:identity)?$/i.test(c.req.header("content-encoding") ?? "");
  if (!/^application\/json(?:$|[; ])/i.test(type) || !/^utf-?8$/i.test(charset) || !isPlain)
    throw refuse(
      "BODY_NOT_JSON",
      'The body must be JSON in UTF-8, not compressed, with "Content-Type: application/json". Nothing was touched.',
    );
  try {
    return JSON.parse(UTF8.decode(bytes));
  } catch (error) {
    // Replacing what is not a character would record something else than was sent.
    if (error instanceof TypeError)
      throw refuse("REQUEST_INVALID", "The body is not valid UTF-8. Nothing was touched.", { in: "body" });
    if (error instanceof SyntaxError)
      throw refuse("REQUEST_INVALID", "The body is not valid JSON. Nothing was touched.", { in: "body" });
    throw error;
  }
}

function check(place: string, schema: z.ZodObject | undefined, value: unknown): unknown {
  if (!schema) return {};
  const { success, data, error } = schema.safeParse(value);
  if (success) return data;
  const wrong = error.issues.map(({ path, message }) => ({ at: path.join("."), message }));
  const words = wrong.map(({ at, message }) => (at === "" ? message : `${at}: ${message}`)).join("; ");
  throw refuse("REQUEST_INVALID", `The ${place} of the request is not valid: ${words}. Nothing was touched.`, {
    in: place,
    wrong,
  });
}

function methodsAt(path: string): string[] {
  return Object.values<Operation>(operations)
    .filter((operation) => new RegExp(`^${operation.path.replaceAll(/:\w+/g, "[^/]+")}$`).test(path))
    .map(({ method }) => method.toUpperCase());
}
