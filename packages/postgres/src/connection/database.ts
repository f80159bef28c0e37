import { setTimeout as sleep } from "node:timers/promises";
import { HoldfastError } from "holdfast";
import { storeClosed } from "holdfast/internal";
import type { Durability } from "holdfast/store";
import pg, { type Pool, type PoolClient, type QueryConfig, type QueryResult } from "pg";
import {
  CommitUnconfirmed,
  databaseFailure,
  isConflict,
  isGivenUp,
  isPassing,
  isReadOnly,
  isStarting,
} from "../failure.ts";
import { cancel, isPrepared, limitsOf, wasUnconfirmed, watchCommits } from "./backend.ts";
import { CopiedRows } from "./copied-rows.ts";
import { Metrics, type StoreMetrics } from "./metrics.ts";
import { ignoreErrors } from "./pools.ts";

export type Row = Record<string, unknown>;
/** `answerMs`: how long to wait for the answer, if not the default. */
export type Query = (text: string, values?: readonly unknown[], answerMs?: number) => Promise<QueryResult<Row>>;

export interface Statement {
  readonly text: string;
  readonly values: unknown[];
  /** The server keeps it under this name. */
  readonly name?: string;
}

/** Between two tries; doubles up to the maximum. */
const PAUSE_MS = 20;
const PAUSE_MS_MAX = 1000;

/** A connection that delivers rows is not silent. To note that for each row would take a while. */
const ROWS_PER_REFRESH = 64;

/** How often a transaction is started again after a conflict. */
const TRIES = 10;

/** The first version with `transaction_timeout` (S25). */
const TRANSACTION_TIMEOUT = 170000;

export interface DatabaseOptions {
  /** The address without its password, for messages. */
  readonly name: string;
  /** Quoted for use in statements. */
  readonly schema: string;
  /** How long to retry a statement while the server is away. */
  readonly patienceMs: number;
  /** How long a short statement waits for its answer before its connection counts as lost. */
  readonly answerMs: number;
}

/** A pool, ours or the application's. Every statement is complete in itself, so any pooler works (S24). */
export class Database {
  readonly name: string;
  readonly schema: string;
  readonly answerMs: number;
  readonly metrics = new Metrics();
  readonly patienceMs: number;
  readonly #pool: Pool;
  /** The pool limits the wait for a connection. An application's own pool may wait forever. */
  readonly #isBounded: boolean;
  readonly #closing = new AbortController();
  /** As the server reports it (`server_version_num`). */
  serverVersion = 0;
  /** This worker has written: if the server is read-only later, it is a standby about to become the primary. */
  hasWritten = false;

  constructor(pool: Pool, { name, schema, patienceMs, answerMs }: DatabaseOptions) {
    this.#pool = pool;
    this.#isBounded = (pool.options?.connectionTimeoutMillis ?? 0) > 0;
    this.name = name;
    this.schema = schema;
    this.answerMs = answerMs;
    this.patienceMs = patienceMs;
  }

  /**
   * A CTE to name in a statement: the commit waits for the disk, even if the server, the role or a pooler sets `off`.
   * Stricter or weaker choices of the operator (`remote_apply`, `local`) stay.
   */
  get power(): string {
    return this.settings("power");
  }

  /**
   * CTEs for a statement that reads from `durable` too. What it finds stays there: a backend that was terminated may
   * have committed it without waiting for the disk or a standby. It writes an empty message to the WAL, which touches
   * no row, needs no rights and waits for no lock; the commit then waits for everything before it.
   */
  get durable(): string {
    return `${this.power}, durable AS MATERIALIZED (SELECT pg_logical_emit_message(true, 'holdfast', '') FROM power)`;
  }

  /** As `power`, without waiting for the disk. */
  get noWait(): string {
    return this.settings("process");
  }

  /** The same, waiting for the server's own disk, and for no standby. */
  get local(): string {
    return this.settings("local");
  }

  /**
   * Any of them, for a statement that may take longer. It also limits how long the statement can wait in the server:
   * one that we have given up, or whose worker is gone, must not keep others waiting. `own`: the connection has these
   * limits itself.
   */
  settings(durability: Durability | "local", answerMs = this.answerMs, own = false): string {
    const wait = {
      process: "'off'",
      local: `CASE ${CHOSEN} WHEN 'off' THEN 'off' ELSE 'local' END`,
      power: POWER,
    }[durability];
    const set = [
      `set_config('synchronous_commit', ${wait}, true)`,
      // A worker that stops, or loses its network, between two packets of a statement would keep its session locked for
      // everybody. The server ends the transaction once nobody waits for the answer.
      ...(this.#endsByTime ? [timeout(answerMs)] : []),
      ...(own ? [] : [lockTimeout(answerMs)]),
      ...(own || durability !== "power" ? [] : [`CASE ${MESSAGES} WHEN 'error' THEN ${WARNINGS} END`]),
    ];
    return `power AS (SELECT ${set.join(", ")})`;
  }

  /** The same without waiting for the disk, for a statement that `query` sends, which may take long. */
  get longNoWait(): string {
    return this.settings("process", limitsOf(this.answerMs).longMs);
  }

  /** The settings for the end of a transaction of any age: nothing limits the whole of it. */
  get commitSettings(): readonly string[] {
    return [
      `set_config('synchronous_commit', ${POWER}, true)`,
      lockTimeout(this.answerMs),
      `CASE ${MESSAGES} WHEN 'error' THEN ${WARNINGS} END`,
      // If COMMIT does not arrive, what it has locked must not stay locked.
      `set_config('idle_in_transaction_session_timeout', '${this.answerMs}', true)`,
    ];
  }

  /** The same as an always-true condition on a row, with the settings as a side effect. It costs less than a CTE. */
  settingsCondition(durability: Durability, answerMs = this.answerMs, own = false): string {
    const conditions = [
      durability === "process"
        ? "set_config('synchronous_commit', 'off', true) IS NOT NULL"
        : "(current_setting('synchronous_commit') <> 'off' OR set_config('synchronous_commit', 'on', true) IS NOT NULL)",
      ...(this.#endsByTime ? [`${timeout(answerMs)} IS NOT NULL`] : []),
      ...(own ? [] : [`${lockTimeout(answerMs)} IS NOT NULL`]),
      ...(own || durability !== "power" ? [] : [`(${MESSAGES} <> 'error' OR ${WARNINGS} IS NOT NULL)`]),
    ];
    return conditions.join(" AND ");
  }

  /**
   * Runs one statement, and sends it again if the connection is lost: only for statements that are safe to repeat.
   * `what` describes it in errors.
   */
  query(what: string, text: string, values: readonly unknown[] = []): Promise<QueryResult<Row>> {
    return this.retry(what, () => this.once(text, values, limitsOf(this.answerMs).longMs));
  }

  /** Sends one statement once. Throws the driver's error. */
  once(text: string, values: readonly unknown[] = [], answerMs = this.answerMs): Promise<QueryResult<Row>> {
    return this.onceOver(() => ({ text, values: values as unknown[] }), answerMs);
  }

  /**
   * The same for a statement that is shorter on a connection of our own, which has its limits already. Throws
   * CommitUnconfirmed too.
   */
  onceOver(statementFor: (own: boolean) => Statement, answerMs = this.answerMs): Promise<QueryResult<Row>> {
    return this.metrics.statement(() => this.#send(statementFor, answerMs));
  }

  async #send(statementFor: (own: boolean) => Statement, answerMs: number): Promise<QueryResult<Row>> {
    // In the queue of a pool without a limit, the statement could run after we gave up waiting, and take a lease that
    // nobody returns.
    const client = await this.connect();
    let broken = true;
    try {
      // A half-open connection never answers. After this time it is given up, and the pool opens another.
      const answer = await client.query<Row>({
        ...statementFor(isPrepared(client)),
        query_timeout: answerMs,
      } as QueryConfig);
      broken = false;
      if (wasUnconfirmed(client)) throw new CommitUnconfirmed();
      return answer;
    } catch (error) {
      if (isGivenUp(error)) cancel(client);
      throw error;
    } finally {
      client.release(broken);
    }
  }

  /**
   * Sends a SELECT of a bigint and a text, without parameters, and passes each row to `take` as it arrives. The bytes
   * are valid during the call. `settings`: statements before it, in the same transaction. After a long silence the
   * connection is given up. Throws the driver's error, or the error of `take`.
   */
  async rows(select: string, settings: string, take: (number: number, text: Buffer | string) => void): Promise<void> {
    const client = await this.connect();
    // From the driver that made the connection: an application may use another release than ours, or the native driver.
    const { Query = pg.Query } = client.constructor as { readonly Query?: typeof pg.Query };
    // The native driver cannot copy.
    const copies = "handleCopyData" in Query.prototype;
    const statement = copies ? `COPY (${select}) TO STDOUT (FORMAT binary)` : select;
    // However long it takes in all, as long as rows arrive.
    const text = `SET LOCAL statement_timeout = 0; ${settings} ${statement}`;
    const query = new Query<unknown[]>({ text, rowMode: "array" } as QueryConfig);
    const { promise, resolve, reject } = Promise.withResolvers<void>();
    let isOver = false;
    let rows = 0;
    const onRow = (number: number, line: Buffer | string): void => {
      if (isOver) return;
      if (rows++ % ROWS_PER_REFRESH === 0) silence.refresh();
      try {
        take(number, line);
      } catch (error) {
        isOver = true;
        reject(error);
      }
    };
    const copied = new CopiedRows(onRow);
    const onPiece = ({ chunk }: { readonly chunk: Buffer }): void => {
      try {
        copied.add(chunk);
      } catch (error) {
        reject(error);
      }
    };
    if (copies) Object.assign(query, { handleCopyData: onPiece });
    else query.on("row", ([number, line]) => onRow(Number(number), line as string));
    client.query(query);
    // In a pool with a statement timeout, the driver attaches its own callback, which collects all rows and swallows
    // errors. Calling it stops the driver's timer.
    const heard = query as { callback?: (() => void) | undefined };
    heard.callback?.();
    heard.callback = undefined;
    const lost = (): void => reject(new Error("Query read timeout"));
    const silence = setTimeout(lost, limitsOf(this.answerMs).longMs);
    query.on("error", reject);
    query.on("end", () => resolve());
    let broken = true;
    try {
      await promise;
      broken = false;
    } catch (error) {
      cancel(client);
      throw error;
    } finally {
      isOver = true;
      clearTimeout(silence);
      client.release(broken);
    }
  }

  /** Retries until it succeeds, patience runs out, or the error is permanent. */
  async retry<T>(what: string, work: () => Promise<T>, patienceMs = this.patienceMs): Promise<T> {
    const since = performance.now();
    for (let pauseMs = PAUSE_MS; ; pauseMs = Math.min(pauseMs * 2, PAUSE_MS_MAX)) {
      try {
        return await work();
      } catch (error) {
        // A server that is just starting does not mean a wrong address.
        const until = since + (isStarting(error) ? this.patienceMs : patienceMs);
        const isOver = this.#closing.signal.aborted || performance.now() + pauseMs > until;
        if (isOver || !isPassing(error) || (await this.#staysReadOnly(error))) throw this.failure(error, what);
      }
      await this.pause(pauseMs);
    }
  }

  /**
   * A server that refuses to write becomes writable by itself only if it is a standby that is being promoted. A worker
   * that has never written has been given the wrong address or role.
   */
  async #staysReadOnly(error: unknown): Promise<boolean> {
    if (!isReadOnly(error)) return false;
    if (!this.hasWritten) return true;
    try {
      return (await this.once("SELECT pg_is_in_recovery() AS standby")).rows[0]?.["standby"] === false;
    } catch {
      return false;
    }
  }

  /** Waits for this time, or until the store closes. */
  async pause(ms: number): Promise<void> {
    const { signal } = this.#closing;
    await sleep(ms, undefined, { signal }).catch((error: unknown) => {
      if (!signal.aborted) throw error;
    });
  }

  /**
   * Runs several statements as one transaction. Starts again after a conflict; also after a lost connection, if the
   * work is safe to repeat (`mayRepeat`).
   */
  transaction<T>(what: string, work: (query: Query) => Promise<T>, mayRepeat = false): Promise<T> {
    return this.retry(what, () => this.#runTransaction(work), mayRepeat ? this.patienceMs : 0);
  }

  async #runTransaction<T>(work: (query: Query) => Promise<T>): Promise<T> {
    for (let tries = 1; ; tries++) {
      try {
        return await this.#attemptTransaction(work);
      } catch (error) {
        if (tries === TRIES || !isConflict(error)) throw error;
      }
    }
  }

  async #attemptTransaction<T>(work: (query: Query) => Promise<T>): Promise<T> {
    let client: PoolClient | null = null;
    let broken = true;
    try {
      client = await this.connect();
      const connected = client;
      const query: Query = (text, values = [], answerMs = limitsOf(this.answerMs).longMs) =>
        connected.query<Row>({ text, values: values as unknown[], query_timeout: answerMs } as QueryConfig);
      // A worker that stops, or loses its network, between two statements would hold its locks for hours: the server
      // ends such a transaction. After waiting for a lock we must see what its holder did, so the role's own isolation
      // level must not apply.
      const { lockMs, longMs } = limitsOf(this.answerMs);
      await query(
        `BEGIN ISOLATION LEVEL READ COMMITTED; SET LOCAL idle_in_transaction_session_timeout = ${longMs}; SET LOCAL lock_timeout = ${lockMs}`,
      );
      const result = await work(query);
      await query("COMMIT");
      broken = false;
      return result;
    } catch (error) {
      if (client && isGivenUp(error)) cancel(client);
      else if (client) broken = !(await rollBack(client, this.answerMs));
      throw error;
    } finally {
      client?.release(broken);
    }
  }

  metricsSnapshot(sessionsOpen: number, isDirect: boolean): StoreMetrics {
    return this.metrics.snapshot(this.#pool, sessionsOpen, isDirect);
  }

  /** How many connections the pool has at most. */
  get connectionsMax(): number {
    return this.#pool.options?.max ?? 10;
  }

  /** A connection of the pool, for the caller to release. Throws the driver's error. */
  async connect(): Promise<PoolClient> {
    const coming = this.#pool.connect();
    try {
      const client = await (this.#isBounded ? coming : withTimeout(coming, this.answerMs));
      // A lost connection reports the error to its statement, and then once more as an unhandled event. That must not
      // end the process, not even with an application's own pool.
      ignoreErrors(client);
      watchCommits(client);
      return client;
    } catch (error) {
      // A connection that arrives too late goes back to the pool.
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

  /** Ends all retries. */
  close(): void {
    this.#closing.abort();
  }
}

/** Fails with the same message as a pool that has a limit. */
function withTimeout<T>(work: Promise<T>, ms: number): Promise<T> {
  return new Promise((resolve, reject) => {
    const timer = setTimeout(() => reject(new Error("timeout exceeded when trying to connect")), ms);
    work.finally(() => clearTimeout(timer)).then(resolve, reject);
  });
}

function timeout(ms: number): string {
  return `set_config('transaction_timeout', '${ms}', true)`;
}

function lockTimeout(answerMs: number): string {
  return `set_config('lock_timeout', '${limitsOf(answerMs).lockMs}', true)`;
}

const CHOSEN = "current_setting('synchronous_commit')";
const POWER = `CASE ${CHOSEN} WHEN 'off' THEN 'on' ELSE ${CHOSEN} END`;
/** A role that hears no warnings would not learn that a commit was not replicated. */
const MESSAGES = "current_setting('client_min_messages')";
const WARNINGS = "set_config('client_min_messages', 'warning', true)";

async function rollBack(client: PoolClient, answerMs: number): Promise<boolean> {
  try {
    await client.query({ text: "ROLLBACK", query_timeout: answerMs } as QueryConfig);
    return true;
  } catch {
    // The connection is gone or silent, and the transaction ends with it.
    return false;
  }
}
