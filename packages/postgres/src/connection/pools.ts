import type { Pool, PoolClient } from "pg";
import pg from "pg";
import { limitsOf, prepare } from "./backend.ts";

/** A name for people, without characters that the database cannot store. */
export function displayName(app: string): string {
  return app.replaceAll("\0", "\ufffd").toWellFormed();
}

export interface PoolOptions {
  readonly url: string;
  readonly connections: number;
  readonly app: string;
  readonly answerMs: number;
}

/** Our own pool, and how to end it. */
export interface OwnPool {
  readonly pool: Pool;
  /** Waits neither for a silent server nor for an application that keeps a connection. */
  end(): Promise<void>;
}

export function makePool({ url, connections, app, answerMs }: PoolOptions): OwnPool {
  const pool = new pg.Pool({
    connectionString: url,
    max: connections,
    application_name: displayName(app),
    connectionTimeoutMillis: answerMs,
    keepAlive: true,
    // The pool waits for it.
    onConnect: (client) => prepare(client, limitsOf(answerMs)),
  });
  // Permanently: a connection may report its end after the pool has ended.
  tolerate(pool);
  const clients = new Set<PoolClient>();
  pool.on("connect", (client) => clients.add(client));
  // Permanently: connections end a little later than their pool, and a server that goes away just then must not end the
  // process.
  pool.on("error", () => undefined);
  pool.on("remove", (client) => clients.delete(client));
  return {
    pool,
    end: async () => {
      const { promise: waited, resolve } = Promise.withResolvers<void>();
      const timer = setTimeout(() => {
        for (const client of clients) destroy(client);
        resolve();
      }, answerMs);
      await Promise.race([pool.end(), waited]);
      clearTimeout(timer);
    },
  };
}

/**
 * While the store is open, a lost connection must not end the process; the pool replaces it when needed. An idle
 * connection reports its loss to the pool; one that runs a statement, to the statement, and again as an unhandled
 * event; one that is just being handed over, only as an unhandled event. Returns a function that stops this;
 * connections that were used keep ignoring errors.
 */
export function tolerate(pool: Pool): () => void {
  pool.on("error", ignore);
  pool.on("acquire", ignoreErrors);
  return () => {
    pool.off("error", ignore);
    pool.off("acquire", ignoreErrors);
  };
}

/** Ignores all errors that the connection reports from now on. */
export function ignoreErrors(client: PoolClient): void {
  if (!client.listeners("error").includes(ignore)) client.on("error", ignore);
}

const ignore = (): void => undefined;

/** The driver cannot end a connection whose other end is silent, so destroy its socket. */
export function destroy(client: object): void {
  const { connection } = client as { readonly connection?: { readonly stream?: { destroy(): void } } };
  connection?.stream?.destroy();
}
