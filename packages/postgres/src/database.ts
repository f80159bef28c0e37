import { setTimeout as sleep } from "node:timers/promises";
import { type Durability, HoldfastError } from "holdfast";
import { storeClosed } from "holdfast/kit";
import pg, { type Pool, type PoolClient, type QueryConfig, type QueryResult } from "pg";
import { databaseFailure, haveMet, isPassing, isStarting } from "./failure.ts";
import { harmless } from "./pools.ts";

export type Row = Record<string, unknown>;
/** `answerMs`: how long its answer is waited for, if that is another time than for others. */
export type Query = (text: string, values?: readonly unknown[], answerMs?: number) => Promise<QueryResult<Row>>;

/** Between two tries, doubled each time up to the longest. */
const PAUSE_MS = 20;
const PAUSE_MS_MAX = 1000;
/** Whatever reads or removes much gets so many times as long as an append to answer. */
const LONG_STATEMENTS = 6;

/** How often a transaction that has met another one is begun. */
const TRIES = 10;

/** The first version that can end a transaction by time (S25). */
const TRANSACTION_TIMEOUT = 170000;

export interface DatabaseOptions {
  /** The address without its password, for people. */
  readonly name: string;
  /** Quoted, as it stands in statements. */
  readonly schema: string;
  /** How long a statement is tried again while the server is away. */
  readonly patienceMs: number;
  /** How long a short statement waits for its answer. Then its connection is taken for lost. */
  readonly answerMs: number;
}

/** The pool, whoever it belongs to. Every statement is complete in itself, so that any pooler will do (S24). */
export class Database {
  readonly name: string;
  readonly schema: string;
  readonly answerMs: number;
  readonly #pool: Pool;
  /** The pool itself waits for a connection only for so long. An application's own may wait for ever. */
  readonly #isBounded: boolean;
  readonly #patienceMs: number;
  readonly #closing = new AbortController();
  /** As the server tells it (`server_version_num`). */
  serverVersion = 0;

  constructor(pool: Pool, { name, schema, patienceMs, answerMs }: DatabaseOptions) {
    this.#pool = pool;
    this.#isBounded = (pool.options?.connectionTimeoutMillis ?? 0) > 0;
    this.name = name;
    this.schema = schema;
    this.answerMs = answerMs;
    this.#patienceMs = patienceMs;
  }

  /**
   * In a statement, as a CTE that is named in it: it waits for the disk, also where the server, the role or a pooler says `off`. What the operator chose beyond that (`remote_apply`, `local`) stays.
   */
  get power(): string {
    return this.settings("power");
  }

  /** The same, without waiting. */
  get noWait(): string {
    return this.settings("process");
  }

  /** Either of them, for a statement that may take longer than others. */
  settings(durability: Durability, answerMs = this.answerMs): string {
    const chosen = "current_setting('synchronous_commit')";
    const wait = durability === "process" ? "'off'" : `CASE ${chosen} WHEN 'off' THEN 'on' ELSE ${chosen} END`;
    // A worker that stops, or whose network goes, between two packets of a statement would keep its session locked for everybody: the server ends that when nobody waits for the answer any more.
    const ends = this.#endsByTime ? `, ${timeout(answerMs)}` : "";
    return `power AS (SELECT set_config('synchronous_commit', ${wait}, true)${ends})`;
  }

  /** The same as a condition on a row, which always holds: the setting is a side effect. That costs less than a CTE. */
  settles(durability: Durability, answerMs = this.answerMs): string {
    const wait =
      durability === "process"
        ? "set_config('synchronous_commit', 'off', true) IS NOT NULL"
        : "(current_setting('synchronous_commit') <> 'off' OR set_config('synchronous_commit', 'on', true) IS NOT NULL)";
    return this.#endsByTime ? `${wait} AND ${timeout(answerMs)} IS NOT NULL` : wait;
  }

  /** One statement, which may be sent again if the connection is lost: for those that do no harm twice. `what` is being done, for the error. */
  query(what: string, text: string, values: readonly unknown[] = []): Promise<QueryResult<Row>> {
    return this.retry(what, () => this.once(text, values, this.answerMs * LONG_STATEMENTS));
  }

  /** One statement, sent once. Throws what the driver throws. */
  async once(text: string, values: readonly unknown[] = [], answerMs = this.answerMs): Promise<QueryResult<Row>> {
    // A connection that is half open never answers: one that has not for so long is given up, and the pool makes another.
    const statement = { text, values: values as unknown[], query_timeout: answerMs };
    if (this.#isBounded) return this.#pool.query<Row>(statement);
    // In the line of a pool that waits for ever, it would be sent when nobody waits for it any more: and take a lease that nobody gives back.
    const client = await this.#connected();
    let broken = true;
    try {
      const answer = await client.query<Row>(statement);
      broken = false;
      return answer;
    } finally {
      client.release(broken);
    }
  }

  /**
   * Statements without parameters, sent once and in one message, which is a transaction of its own. Rows are handed over as they come, each as a list. If nothing comes for long, they are given up with their connection.
   * Throws what the driver throws, or what `take` does.
   */
  async rows(text: string, take: (row: readonly unknown[]) => void): Promise<void> {
    const client = await this.#connected();
    // Of the driver that made the connection: an application's own may be another release than ours, or the native one.
    const { Query = pg.Query } = client.constructor as { readonly Query?: typeof pg.Query };
    const query = client.query(new Query<unknown[]>({ text, rowMode: "array" } as QueryConfig));
    // A pool with a limit for each statement has the driver listen for itself, which then keeps all rows, and tells nobody else of an error. Called, it stops its clock.
    const heard = query as { callback?: (() => void) | undefined };
    heard.callback?.();
    heard.callback = undefined;
    const { promise, resolve, reject } = Promise.withResolvers<void>();
    const lost = (): void => reject(new Error("Query read timeout"));
    const silence = setTimeout(lost, this.answerMs * LONG_STATEMENTS);
    const onRow = (row: readonly unknown[]): void => {
      silence.refresh();
      try {
        take(row);
      } catch (error) {
        query.off("row", onRow);
        reject(error);
      }
    };
    query.on("row", onRow);
    query.on("error", reject);
    query.on("end", () => resolve());
    let broken = true;
    try {
      await promise;
      broken = false;
    } finally {
      clearTimeout(silence);
      query.off("row", onRow);
      client.release(broken);
    }
  }

  /** Until it answers, the patience ends, or it fails in a way that does not pass. */
  async retry<T>(what: string, work: () => Promise<T>, patienceMs = this.#patienceMs): Promise<T> {
    const since = performance.now();
    for (let pauseMs = PAUSE_MS; ; pauseMs = Math.min(pauseMs * 2, PAUSE_MS_MAX)) {
      try {
        return await work();
      } catch (error) {
        // One that is just starting is no wrong address.
        const until = since + (isStarting(error) ? this.#patienceMs : patienceMs);
        const isOver = this.#closing.signal.aborted || performance.now() + pauseMs > until;
        if (isOver || !isPassing(error)) throw this.failure(error, what);
      }
      await this.pause(pauseMs);
    }
  }

  /** Until the time has passed, or the store is closed. */
  async pause(ms: number): Promise<void> {
    const { signal } = this.#closing;
    await sleep(ms, undefined, { signal }).catch((error: unknown) => {
      if (!signal.aborted) throw error;
    });
  }

  /**
   * Several statements that count together or not at all. Begun again if they met others; and also if the connection is lost, if it does no harm to have done them twice (`mayRepeat`).
   */
  transaction<T>(what: string, work: (query: Query) => Promise<T>, mayRepeat = false): Promise<T> {
    return this.retry(what, () => this.#transactedAtLast(work), mayRepeat ? this.#patienceMs : 0);
  }

  async #transactedAtLast<T>(work: (query: Query) => Promise<T>): Promise<T> {
    for (let tries = 1; ; tries++) {
      try {
        return await this.#transacted(work);
      } catch (error) {
        if (tries === TRIES || !haveMet(error)) throw error;
      }
    }
  }

  async #transacted<T>(work: (query: Query) => Promise<T>): Promise<T> {
    let client: PoolClient | null = null;
    let broken = true;
    try {
      client = await this.#connected();
      const connected = client;
      const query: Query = (text, values = [], answerMs = this.answerMs * LONG_STATEMENTS) =>
        connected.query<Row>({ text, values: values as unknown[], query_timeout: answerMs } as QueryConfig);
      // What a worker that stops, or whose network goes, between two statements has locked would be locked for hours: the server ends that. Whoever has waited for a lock must see what the other did, whatever the role's own isolation is.
      const timeoutMs = this.answerMs * LONG_STATEMENTS;
      await query(`BEGIN ISOLATION LEVEL READ COMMITTED; SET LOCAL idle_in_transaction_session_timeout = ${timeoutMs}`);
      const result = await work(query);
      await query("COMMIT");
      broken = false;
      return result;
    } catch (error) {
      if (client) broken = !(await rolledBack(client, this.answerMs));
      throw error;
    } finally {
      client?.release(broken);
    }
  }

  async #connected(): Promise<PoolClient> {
    const coming = this.#pool.connect();
    try {
      const client = await (this.#isBounded ? coming : within(coming, this.answerMs));
      // A connection that is lost says so to its statement, and once more to nobody in particular: that must not end the process, whoever made the pool.
      harmless(client);
      return client;
    } catch (error) {
      // One that comes later is for others.
      coming.then(
        (client) => client.release(),
        () => undefined,
      );
      throw error;
    }
  }

  failure(error: unknown, what: string): unknown {
    if (error instanceof HoldfastError) return error;
    if (this.#closing.signal.aborted) return storeClosed(this.name);
    return databaseFailure(error, what, this.name);
  }

  get #endsByTime(): boolean {
    return this.serverVersion >= TRANSACTION_TIMEOUT;
  }

  /** Nothing is tried again from now on. */
  close(): void {
    this.#closing.abort();
  }
}

/** In the words of a pool that has a limit of its own. */
function within<T>(work: Promise<T>, ms: number): Promise<T> {
  return new Promise((resolve, reject) => {
    const timer = setTimeout(() => reject(new Error("timeout exceeded when trying to connect")), ms);
    work.finally(() => clearTimeout(timer)).then(resolve, reject);
  });
}

function timeout(ms: number): string {
  return `set_config('transaction_timeout', '${ms}', true)`;
}

async function rolledBack(client: PoolClient, answerMs: number): Promise<boolean> {
  try {
    await client.query({ text: "ROLLBACK", query_timeout: answerMs } as QueryConfig);
    return true;
  } catch {
    // The connection is gone, or silent, and the transaction ends with it.
    return false;
  }
}
