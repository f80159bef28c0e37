import { createHash, timingSafeEqual } from "node:crypto";
import { once } from "node:events";
import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import type { AddressInfo, Socket } from "node:net";
import { Connections } from "@holdfast/server/internal";
import { StreamableHTTPServerTransport } from "@modelcontextprotocol/sdk/server/streamableHttp.js";
import { CommandError, EXIT } from "../exit.ts";
import { plainLine } from "../terminal/plain.ts";
import type { CleanOptions } from "./clean.ts";
import { makeServer, type SessionSource } from "./tools.ts";

export const PATH = "/mcp";
/** The largest request of a tool is a few kilobytes. */
const BODY_BYTES_MAX = 256 * 1024;
const CONNECTIONS_MAX = 100;
const CALLS_MAX = 16;
const REQUEST_MS = 30_000;

export interface HttpOptions {
  /** 0: any free port. */
  readonly port: number;
  readonly token: string;
  readonly cleaning: CleanOptions;
}

export interface HttpListener {
  readonly url: string;
  close(): Promise<void>;
}

/**
 * Serves Streamable HTTP on this machine's loopback address. Every request needs the token. Requests from web pages are
 * refused, by Host and Origin, so that no page reaches the server through a name that it makes resolve to 127.0.0.1.
 * Throws CommandError PORT_TAKEN.
 */
export async function serveHttp(source: SessionSource, options: HttpOptions): Promise<HttpListener> {
  const { port, token, cleaning } = options;
  const expected = digest(token);
  const connections = new Connections(CONNECTIONS_MAX);
  let calls = 0;
  const http = createServer({ requestTimeout: REQUEST_MS, headersTimeout: REQUEST_MS }, (request, response) => {
    const refusal = refusalOf(request, (http.address() as AddressInfo).port, expected);
    if (refusal) return refuse(response, refusal);
    connections.admit(request.socket, "owner");
    response.once("close", connections.begin(request.socket));
    if (calls >= CALLS_MAX) return refuse(response, BUSY);
    calls += 1;
    response.once("close", () => {
      calls -= 1;
    });
    answer(request, response, source, cleaning).catch((error: unknown) => {
      process.stderr.write(`holdfast: ${plainLine(String(error))}\n`);
      if (response.headersSent) response.destroy();
      else refuse(response, FAILED);
    });
  });
  http.on("connection", (socket: Socket) => connections.add(socket));
  const sweep = setInterval(() => connections.closeStuck(REQUEST_MS), REQUEST_MS).unref();
  await listen(http, port);
  return {
    url: `http://127.0.0.1:${(http.address() as AddressInfo).port}${PATH}`,
    close: async () => {
      clearInterval(sweep);
      const closed = once(http, "close");
      http.close();
      http.closeIdleConnections();
      await closed;
    },
  };
}

async function listen(http: Server, port: number): Promise<void> {
  http.listen(port, "127.0.0.1");
  try {
    await once(http, "listening");
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (code !== "EADDRINUSE" && code !== "EACCES") throw error;
    const why = code === "EACCES" ? "you may not use it" : "another program uses it";
    const message = `Port ${port} of 127.0.0.1 is not available: ${why}. Nothing was started. Choose another one with --port, or leave --port out for any free one.`;
    throw new CommandError(EXIT.failed, "PORT_TAKEN", message);
  }
}

/** A connection of its own for each request: there is nothing to remember between them. */
async function answer(
  request: IncomingMessage,
  response: ServerResponse,
  source: SessionSource,
  cleaning: CleanOptions,
): Promise<void> {
  const body = await jsonOf(request);
  if (body === TOO_LARGE) return refuse(response, TOO_LARGE);
  const transport = new StreamableHTTPServerTransport({ enableJsonResponse: true });
  const server = makeServer(source, cleaning);
  response.once("close", () => void server.close());
  // The SDK's own type does not fit its interface under exactOptionalPropertyTypes.
  await server.connect(transport as Parameters<typeof server.connect>[0]);
  await transport.handleRequest(request, response, body);
}

/** The body as JSON; undefined if it is not JSON: the SDK then answers in its own words. */
async function jsonOf(request: IncomingMessage): Promise<unknown> {
  const chunks: Buffer[] = [];
  let bytes = 0;
  for await (const chunk of request as AsyncIterable<Buffer>) {
    bytes += chunk.length;
    if (bytes > BODY_BYTES_MAX) return TOO_LARGE;
    chunks.push(chunk);
  }
  try {
    return JSON.parse(Buffer.concat(chunks).toString("utf8")) as unknown;
  } catch (error) {
    if (error instanceof SyntaxError) return {};
    throw error;
  }
}

interface Refusal {
  readonly status: number;
  readonly message: string;
  readonly headers?: Readonly<Record<string, string>>;
}

const BUSY: Refusal = { status: 503, message: "Too many calls at once. Try again.", headers: { "retry-after": "1" } };
const FAILED: Refusal = { status: 500, message: "The request failed. Nothing was changed." };
const TOO_LARGE: Refusal = { status: 413, message: `A request may have at most ${BODY_BYTES_MAX} bytes.` };

function refusalOf(request: IncomingMessage, port: number, expected: Buffer): Refusal | null {
  const { host = "", origin, authorization = "" } = request.headers;
  if (!["127.0.0.1", "localhost", "[::1]"].some((name) => host.toLowerCase() === `${name}:${port}`))
    return { status: 421, message: "This server answers only to 127.0.0.1 and localhost." };
  if (origin !== undefined) return { status: 403, message: "This server does not answer web pages." };
  const [, token = ""] = /^Bearer +(\S+)$/i.exec(authorization) ?? [];
  if (!timingSafeEqual(digest(token), expected))
    return {
      status: 401,
      message: "A token is required: Authorization: Bearer <token>.",
      headers: { "www-authenticate": 'Bearer realm="holdfast"' },
    };
  if (new URL(request.url ?? "/", "http://127.0.0.1").pathname !== PATH)
    return { status: 404, message: `The server is at ${PATH}.` };
  if (request.method !== "POST")
    return { status: 405, message: "This server keeps no streams open: use POST.", headers: { allow: "POST" } };
  return null;
}

/** As JSON-RPC, which is what clients expect. */
function refuse(response: ServerResponse, { status, message, headers = {} }: Refusal): void {
  // What the client still sends is not read.
  response.writeHead(status, { "content-type": "application/json", connection: "close", ...headers });
  response.end(JSON.stringify({ jsonrpc: "2.0", error: { code: -32000, message }, id: null }));
}

function digest(token: string): Buffer {
  return createHash("sha256").update(token).digest();
}
