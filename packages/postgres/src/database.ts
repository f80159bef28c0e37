import { setTimeout as sleep } from "node:timers/promises";
import { HoldfastError } from "holdfast";
import type { Pool, PoolClient, QueryResult } from "pg";
import { databaseFailure, isPassing } from "./failure.ts";

export type Row = Record<string, unknown>;
export type Query = (text: string, values?: readonly unknown[]) => Promise<QueryResult<Row>>;

/** Between two tries, doubled each time up to the longest. */
const PAUSE_MS = 20;
const PAUSE_MS_MAX = 1000;

export interface DatabaseOptions {
  /** The address without its password, for people. */
  readonly name: string;
  /** Quoted, as it stands in statements. */
  readonly schema: string;
  /** How long a statement is tried again while the server is away. */
  readonly patienceMs: number;
}

/** The pool, whoever it belongs to. Every statement is complete in itself, so that any pooler will do (S24). */
export class Database {
  readonly name: string;
  readonly schema: string;
  readonly #pool: Pool;
  readonly #patienceMs: number;
  #closed = false;

  constructor(pool: Pool, { name, schema, patienceMs }: DatabaseOptions) {
    this.#pool = pool;
    this.name = name;
    this.schema = schema;
    this.#patienceMs = patienceMs;
  }

  /** One statement, which may be sent again if the connection is lost: for those that do no harm twice. `what` is being done, for the error. */
  query(what: string, text: string, values: readonly unknown[] = []): Promise<QueryResult<Row>> {
    return this.retry(what, () => this.once(text, values));
  }

  /** One statement, sent once. Throws what the driver throws. */
  once(text: string, values: readonly unknown[] = []): Promise<QueryResult<Row>> {
    return this.#pool.query<Row>(text, values as unknown[]);
  }

  /** Until it answers, the patience ends, or it fails in a way that does not pass. */
  async retry<T>(what: string, work: () => Promise<T>): Promise<T> {
    const until = performance.now() + this.#patienceMs;
    for (let pauseMs = PAUSE_MS; ; pauseMs = Math.min(pauseMs * 2, PAUSE_MS_MAX)) {
      try {
        return await work();
      } catch (error) {
        if (this.#closed || !isPassing(error) || performance.now() + pauseMs > until) throw this.failure(error, what);
      }
      await sleep(pauseMs);
    }
  }

  /** Several statements that count together or not at all. Not tried again: for what is rare. */
  async transaction<T>(what: string, work: (query: Query) => Promise<T>): Promise<T> {
    let client: PoolClient | null = null;
    let broken = true;
    try {
      client = await this.#pool.connect();
      const connected = client;
      await connected.query("BEGIN");
      const result = await work((text, values = []) => connected.query<Row>(text, values as unknown[]));
      await connected.query("COMMIT");
      broken = false;
      return result;
    } catch (error) {
      if (client) broken = !(await rolledBack(client));
      throw this.failure(error, what);
    } finally {
      client?.release(broken);
    }
  }

  failure(error: unknown, what: string): unknown {
    if (error instanceof HoldfastError) return error;
    return databaseFailure(error, what, this.name);
  }

  /** Nothing is tried again from now on. */
  close(): void {
    this.#closed = true;
  }
}

async function rolledBack(client: PoolClient): Promise<boolean> {
  try {
    await client.query("ROLLBACK");
    return true;
  } catch {
    // The connection is gone, and the transaction with it.
    return false;
  }
}
