import type { Server } from "node:http";
import type { AddressInfo } from "node:net";
import { createAdaptorServer } from "@hono/node-server";
import { RESPONSE_ALREADY_SENT } from "@hono/node-server/utils/response";
import type { AllowedNames } from "../access/check-request.ts";
import { Credentials, type ShareFile, sharesInMemory } from "../access/credentials.ts";
import type { ServedHost } from "../contract/served-host.ts";
import { Streams } from "../handlers/streams.ts";
import { finishInterrupted } from "../hosting/finish-interrupted.ts";
import { Hosting } from "../hosting/hosting.ts";
import { makeApp, type RequestLine } from "./app.ts";
import { readPage } from "./page-files.ts";

export interface ServerOptions {
  readonly host: ServedHost;
  readonly token: string;
  readonly version: string;
  /** Default 4040; 0 for any free one. */
  readonly port?: number;
  /** Default 127.0.0.1. */
  readonly address?: string;
  readonly allowed?: Partial<AllowedNames>;
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
  readonly connections: number;
  readonly headerBytes: number;
  /** A session that nobody uses is closed after this time. */
  readonly idleMs: number;
}

export const LIMITS: ServerLimits = {
  bodyBytes: 32 * 1024 * 1024,
  streams: 1000,
  connections: 2000,
  headerBytes: 16 * 1024,
  idleMs: 60_000,
};

export const DEFAULT_PORT = 4040;

export interface RunningServer {
  readonly address: string;
  readonly port: number;
  /** For people and clients, without the token. */
  readonly url: string;
  readonly hosting: Hosting;
  readonly streams: Streams;
  /**
   * Accepts no new turns, gives running ones `graceMs` (default: 10 seconds) to end, records the others as aborted by
   * "server", and closes every session. When `hurry` fires, it does not wait for them any longer. The host stays open.
   */
  stop(graceMs?: number, hurry?: AbortSignal): Promise<void>;
}

export const GRACE_MS = 10_000;

export async function startServer(options: ServerOptions): Promise<RunningServer> {
  const { host, token, version, port = DEFAULT_PORT, address = "127.0.0.1" } = options;
  const limits: ServerLimits = { ...LIMITS, ...options.limits };
  const hosting = new Hosting(host, { idleMs: limits.idleMs });
  const streams = new Streams(limits.streams);
  let bound = port;
  const app = makeApp({
    hosting,
    streams,
    credentials: new Credentials(token, options.shares ?? sharesInMemory()),
    version,
    facts: { model: options.model ?? "offline", cwd: options.cwd ?? process.cwd() },
    // Browsers send a cookie to every port of a host.
    cookieName: () => `holdfast-${bound}`,
    allowed: { hosts: options.allowed?.hosts ?? [], origins: options.allowed?.origins ?? [] },
    bodyBytesMax: limits.bodyBytes,
    page: options.page === undefined ? new Map() : readPage(options.page),
    log: options.log ?? (() => {}),
  });
  const server = createAdaptorServer({
    fetch: async (request, env) => {
      const response = await app.fetch(request, env);
      // Event streams write by themselves.
      return env.outgoing.headersSent ? RESPONSE_ALREADY_SENT : response;
    },
    serverOptions: { maxHeaderSize: limits.headerBytes },
  }) as Server;
  server.maxConnections = limits.connections;
  await listen(server, port, address);
  bound = (server.address() as AddressInfo).port;
  void finishInterrupted(hosting).catch((error: unknown) => process.emitWarning(error as Error));
  let stopping: Promise<void> | null = null;
  return {
    address,
    port: bound,
    url: `http://${address.includes(":") ? `[${address}]` : address}:${bound}`,
    hosting,
    streams,
    stop(graceMs = GRACE_MS, hurry) {
      stopping ??= (async () => {
        // Requests are still answered meanwhile, so that clients see their turns end.
        await hosting.stop(graceMs, hurry);
        streams.end();
        await new Promise<void>((resolve) => {
          server.close(() => resolve());
          server.closeAllConnections();
        });
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
