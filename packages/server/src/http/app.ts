import type { HttpBindings } from "@hono/node-server";
import { type Context, Hono } from "hono";
import { bodyLimit } from "hono/body-limit";
import { getCookie } from "hono/cookie";
import type { z } from "zod";
import { type AllowedNames, checkRequest } from "../access/check-request.ts";
import type { Caller } from "../access/credentials.ts";
import { problemOf } from "../access/problem-of.ts";
import { refuse } from "../access/request-error.ts";
import type { Answer, Handlers, RequestContext, Served } from "../handlers/context.ts";
import { readingHandlers } from "../handlers/reading.ts";
import { serverHandlers, WRONG_TOKEN } from "../handlers/server.ts";
import { sessionHandlers } from "../handlers/sessions.ts";
import { turnHandlers } from "../handlers/turns.ts";
import type { Operation } from "../schemas/operation.ts";
import { type OperationId, operations } from "../schemas/operations.ts";
import type { PageFile } from "./page-files.ts";

export interface AppOptions extends Served {
  readonly allowed: AllowedNames;
  readonly bodyBytesMax: number;
  readonly page: ReadonlyMap<string, PageFile>;
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

const handlers: Handlers = { ...serverHandlers, ...sessionHandlers, ...readingHandlers, ...turnHandlers };

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
    const cookie = getCookie(c, options.cookieName());
    const token = bearerIn(c.req.header("authorization"));
    checkRequest(
      {
        method: c.req.method,
        host: c.req.header("host"),
        origin: c.req.header("origin"),
        fetchSite: c.req.header("sec-fetch-site"),
        byCookie: token === null && cookie !== undefined,
      },
      allowed,
    );
    const caller =
      token !== null
        ? options.credentials.byToken(token)
        : cookie !== undefined
          ? options.credentials.byCookie(cookie)
          : null;
    c.set("caller" as never, caller as never);
    allowOrigin(c, allowed.origins);
    if (c.req.method === "OPTIONS") return c.body(null, 204);
    await next();
  });
  app.use(
    bodyLimit({
      maxSize: bodyBytesMax,
      onError: () => {
        const message = `The body is larger than ${bodyBytesMax} bytes. Nothing was recorded. Send less, for example smaller images.`;
        throw refuse("BODY_TOO_LARGE", message, { max: bodyBytesMax });
      },
    }),
  );
  for (const [id, operation] of Object.entries<Operation>(operations)) {
    app.on(operation.method.toUpperCase(), operation.path, async (c) => {
      const context: RequestContext = { ...options, c, caller: callerOf(c) };
      assertAccess(operation, context);
      const input = await readInput(operation, c);
      const handler = handlers[id as OperationId] as (input: unknown, context: RequestContext) => Promise<Answer>;
      const answer = await handler(input, context);
      if ("response" in answer) return answer.response;
      if (answer.body === undefined) return c.body(null, answer.status as 204);
      return c.json(answer.body, answer.status as 200);
    });
  }
  app.get("*", (c, next) => {
    const file = page.get(c.req.path);
    if (!file) return next();
    if (c.req.header("if-none-match") === file.headers["etag"]) return c.body(null, 304);
    for (const [name, value] of Object.entries(file.headers)) c.header(name, value);
    return c.body(file.bytes);
  });
  app.all("*", (c) => {
    const known = [...new Set(methodsAt(c.req.path))];
    if (known.length === 0) throw refuse("NO_SUCH_PATH", "The server has nothing at this path. See /openapi.json.");
    c.header("allow", known.join(", "));
    throw refuse("METHOD_REFUSED", `This path takes ${known.join(", ")}. Nothing was touched.`);
  });
  app.onError((error, c) => {
    const { problem, isUnexpected } = problemOf(error);
    c.set("code" as never, problem.code as never);
    if (isUnexpected) c.set("error" as never, error as never);
    for (const [name, value] of Object.entries(HEADERS)) c.header(name, value);
    if (problem.status === 401) c.header("www-authenticate", 'Bearer realm="holdfast"');
    if (problem.status === 503) c.header("retry-after", "2");
    return c.json(problem, problem.status as 500, { "content-type": "application/problem+json" });
  });
  return app;
}

function callerOf(c: Context<Env>): Caller | null {
  return (c.var as { readonly caller?: Caller | null }).caller ?? null;
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

async function readInput({ params, query, body }: Operation, c: Context<Env>): Promise<object> {
  return {
    params: check("path", params, c.req.param()),
    query: check("query", query, queryOf(c)),
    body: body ? check("body", body, await bodyOf(c)) : {},
  };
}

function queryOf(c: Context<Env>): Record<string, string | string[]> {
  return Object.fromEntries(
    Object.entries(c.req.queries()).map(([name, values]) => [name, values.length === 1 ? values[0]! : values]),
  );
}

async function bodyOf(c: Context<Env>): Promise<unknown> {
  const text = await c.req.text();
  if (text === "") return {};
  if (!/^application\/json(?:$|[; ])/i.test(c.req.header("content-type") ?? ""))
    throw refuse("BODY_NOT_JSON", 'The body must be JSON, with "Content-Type: application/json". Nothing was touched.');
  try {
    return JSON.parse(text);
  } catch (error) {
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
