import { createServer, type Server } from "node:http";
import type { AddressInfo, Socket } from "node:net";
import { setTimeout as sleep } from "node:timers/promises";
import { getRequestListener, type HttpBindings } from "@hono/node-server";
import { RESPONSE_ALREADY_SENT } from "@hono/node-server/utils/response";
import type { AllowedNames } from "../access/check-request.ts";
import { Credentials, type ShareFile, sharesInMemory } from "../access/credentials.ts";
import type { ServedHost } from "../contract/served-host.ts";
import { Streams } from "../handlers/streams.ts";
import { finishInterrupted } from "../hosting/finish-interrupted.ts";
import { Hosting } from "../hosting/hosting.ts";
import { redactedView } from "../hosting/redacted-view.ts";
import { Histories } from "../reading/histories.ts";
import { HttpRecordings } from "../recordings/http-recordings.ts";
import { makeApp, type RequestLine } from "./app.ts";
import { asResponse, malformed, refuseConnection } from "./bad-requests.ts";
import { Connections } from "./connections.ts";
import { readPage } from "./page-files.ts";
import { Peers } from "./peers.ts";

export interface ServerOptions {
  readonly host: ServedHost;
  readonly token: string;
  readonly version: string;
  /** Default 4040; 0 for any free one. */
  readonly port?: number;
  /** Default 127.0.0.1. */
  readonly address?: string;
  readonly allowed?: Partial<AllowedNames>;
  /**
   * The URLs of the other servers on the same store, which have the same token. A request for a session that one of
   * them has open is passed on to it.
   */
  readonly peers?: readonly string[];
  readonly shares?: ShareFile;
  /** The folder of the web page's built files; without one there is no page. */
  readonly page?: string;
  /** For new sessions without a model, as people are told. */
  readonly model?: string;
  readonly cwd?: string;
  readonly limits?: Partial<ServerLimits>;
  readonly log?: (line: RequestLine) => void;
}

export interface ServerLimits {
  readonly bodyBytes: number;
  readonly streams: number;
  /** Of these, read-only tokens may have half, and each of them this many. */
  readonly streamsPerShare: number;
  readonly connections: number;
  readonly headerBytes: number;
  /** How long the headers of a request may take to arrive, and a connection may be open without one. */
  readonly headersMs: number;
  /** The same for a whole request. */
  readonly requestMs: number;
  /** A client that has read nothing of an answer for this long is gone. */
  readonly stuckMs: number;
  /** A session that nobody uses is closed after this time. */
  readonly idleMs: number;
  /** A session whose recorder is silent for this time is released. */
  readonly recorderIdleMs: number;
}

export const LIMITS: ServerLimits = {
  bodyBytes: 32 * 1024 * 1024,
  streams: 1000,
  streamsPerShare: 100,
  connections: 2000,
  headerBytes: 16 * 1024,
  headersMs: 20_000,
  requestMs: 300_000,
  stuckMs: 60_000,
  idleMs: 60_000,
  recorderIdleMs: 600_000,
};

export const DEFAULT_PORT = 4040;
/** An event stream outlives its read-only token by at most this. */
const SHARES_CHECKED_MS = 1000;
const CONNECTIONS_CHECKED_MS = 5000;
/** A server that stops gives the answers under way this long. */
const ANSWER_MS = 1000;

export interface RunningServer {
  readonly address: string;
  readonly port: number;
  /** For people and clients, without the token. */
  readonly url: string;
  readonly hosting: Hosting;
  readonly streams: Streams;
  /**
   * Accepts no new turns, hands running ones over to the next start (what they are doing gets `graceMs` to end, by
   * default 10 seconds), and closes every session. When `hurry` fires, they are recorded as aborted by "server"
   * instead. The host stays open.
   */
  stop(graceMs?: number, hurry?: AbortSignal): Promise<void>;
}

export const GRACE_MS = 10_000;

/**
 * Starts a server. It listens when this resolves, and finishes interrupted turns by itself where that is wanted. Throws
 * what `listen` throws, such as EADDRINUSE.
 */
export async function startServer(options: ServerOptions): Promise<RunningServer> {
  const { host, token, version, port = DEFAULT_PORT, address = "127.0.0.1" } = options;
  const limits: ServerLimits = { ...LIMITS, ...options.limits };
  const hosting = new Hosting(host, { idleMs: limits.idleMs });
  const recordings = new HttpRecordings(host.sessions, {
    idleMs: limits.recorderIdleMs,
    messagesIn: async (id, dialect) =>
      JSON.parse((await Array.fromAsync(host.exportAs(id, dialect, false))).join("")) as readonly unknown[],
    onError: (error) => process.emitWarning(error as Error),
  });
  const streams = new Streams(limits.streams, limits.streamsPerShare);
  const connections = new Connections(limits.connections);
  const credentials = new Credentials(token, options.shares ?? sharesInMemory());
  const sweep = setInterval(() => {
    streams.endInvalid(credentials);
    connections.closeStuck(limits.stuckMs);
  }, SHARES_CHECKED_MS).unref();
  const view = redactedView(hosting) as Hosting;
  let bound = port;
  const app = makeApp({
    hosting,
    histories: new Histories(hosting),
    redacted: { hosting: view, histories: new Histories(view) },
    recordings,
    streams,
    credentials,
    version,
    facts: { model: options.model ?? "offline", cwd: options.cwd ?? process.cwd() },
    // Browsers send a cookie to every port of a host.
    cookieName: () => `holdfast-${bound}`,
    allowed: { hosts: options.allowed?.hosts ?? [], origins: options.allowed?.origins ?? [] },
    bodyBytesMax: limits.bodyBytes,
    onCaller: (socket, { access }) => connections.admit(socket, access),
    page: options.page === undefined ? new Map() : readPage(options.page),
    peers: new Peers(options.peers ?? [], token),
    log: options.log ?? (() => {}),
  });
  const listener = getRequestListener(
    async (request, env) => {
      const http1 = env as HttpBindings;
      const response = await app.fetch(request, http1);
      // Event streams write by themselves.
      return http1.outgoing.headersSent ? RESPONSE_ALREADY_SENT : response;
    },
    // What is no request, such as one without a Host.
    { errorHandler: () => asResponse(malformed()) },
  );
  const { headerBytes: maxHeaderSize, headersMs: headersTimeout, requestMs: requestTimeout } = limits;
  const connectionsCheckingInterval = Math.min(headersTimeout, CONNECTIONS_CHECKED_MS);
  const server = createServer(
    // A request without a Host is refused in our own words.
    { maxHeaderSize, headersTimeout, requestTimeout, connectionsCheckingInterval, requireHostHeader: false },
    (incoming, outgoing) => {
      outgoing.once("close", connections.begin(incoming.socket));
      void listener(incoming, outgoing);
    },
  );
  server.on("connection", (socket: Socket) => connections.add(socket));
  server.on("clientError", refuseConnection);
  await listen(server, port, address);
  const at = server.address() as AddressInfo;
  bound = at.port;
  void finishInterrupted(hosting).catch((error: unknown) => process.emitWarning(error as Error));
  let stopping: Promise<void> | null = null;
  return {
    address,
    port: bound,
    // Not by its name: that may lead to two addresses.
    url: `http://${at.family === "IPv6" ? `[${at.address}]` : at.address}:${bound}`,
    hosting,
    streams,
    stop(graceMs = GRACE_MS, hurry) {
      stopping ??= (async () => {
        // Requests are still answered meanwhile, so that clients see their turns end.
        await Promise.all([hosting.stop(graceMs, hurry), recordings.stop(graceMs, hurry)]);
        clearInterval(sweep);
        streams.end();
        const closed = new Promise<void>((resolve) => server.close(() => resolve()));
        // A client must get the refusal that is on its way.
        const until = performance.now() + ANSWER_MS;
        while (connections.areAsking && performance.now() < until) await sleep(5);
        server.closeAllConnections();
        await closed;
      })();
      return stopping;
    },
  };
}

function listen(server: Server, port: number, address: string): Promise<void> {
  return new Promise((resolve, reject) => {
    server.once("error", reject);
    server.listen(port, address, () => {
      server.off("error", reject);
      resolve();
    });
  });
}
