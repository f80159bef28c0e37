import type { Pool, PoolClient } from "pg";
import pg from "pg";
import { shown } from "./leases.ts";

export interface PoolOptions {
  readonly url: string;
  readonly connections: number;
  readonly app: string;
  readonly answerMs: number;
}

/** A pool of our own, and the way to end it. */
export interface OwnPool {
  readonly pool: Pool;
  /** Does not wait for a server that says nothing. */
  end(): Promise<void>;
}

export function makePool({ url, connections, app, answerMs }: PoolOptions): OwnPool {
  const pool = new pg.Pool({
    connectionString: url,
    max: connections,
    application_name: shown(app),
    connectionTimeoutMillis: answerMs,
    keepAlive: true,
  });
  // For good: a connection may report its end after the pool has.
  tolerate(pool);
  const clients = new Set<PoolClient>();
  pool.on("connect", (client) => clients.add(client));
  // For ever: connections end a little later than their pool, and a server that goes just then ends nobody's process either.
  pool.on("error", () => undefined);
  pool.on("remove", (client) => clients.delete(client));
  return {
    pool,
    end: async () => {
      const timer = setTimeout(() => {
        for (const client of clients) destroy(client);
      }, answerMs);
      await pool.end();
      clearTimeout(timer);
    },
  };
}

/**
 * For as long as the store is open, a connection that is lost ends nobody's process: it is replaced when the next one is needed. While it is idle it says so to the pool; in a statement, to that, and once more
 * to nobody in particular; in the moment in which it is handed over, to nobody at all. Returns the way to stop that: a connection that was used stays harmless.
 */
export function tolerate(pool: Pool): () => void {
  pool.on("error", ignore);
  pool.on("acquire", harmless);
  return () => {
    pool.off("error", ignore);
    pool.off("acquire", harmless);
  };
}

/** Whatever it reports from now on. */
export function harmless(client: PoolClient): void {
  if (!client.listeners("error").includes(ignore)) client.on("error", ignore);
}

const ignore = (): void => undefined;

/** The driver has no way to end a connection whose other end is silent but to take its socket away. */
export function destroy(client: object): void {
  const { connection } = client as { readonly connection?: { readonly stream?: { destroy(): void } } };
  connection?.stream?.destroy();
}
