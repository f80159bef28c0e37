import { AsyncLocalStorage } from "node:async_hooks";
import { HoldfastError, isHoldfastError, type Outcome, type ToolCall, type ToolOptions, type Turn } from "holdfast";
import { notSupported } from "holdfast/internal";
import type { NewRecord } from "holdfast/store";
import type { PoolClient, QueryConfig, QueryResult } from "pg";
import { limitsOf, resetSession, wasUnconfirmed } from "../connection/backend.ts";
import type { Database, Row } from "../connection/database.ts";
import { CommitUnconfirmed, isPassing } from "../failure.ts";
import { LentClient } from "./lent-client.ts";
import { statementOf, type Write, type WriteResult } from "./statement-batcher.ts";

const PAUSE_MS = 20;
const PAUSE_MS_MAX = 1000;

/**
 * A call of the application to record in its own transaction, as far as the code that runs in it is
 * concerned. `transaction` is set while the next matching unit belongs to it.
 */
interface Recording {
  readonly database: Database;
  transaction: Transaction | null;
  /** A unit was committed with it. */
  isUsed: boolean;
  /** The call is over. What runs on in its context (a timer, a promise nobody awaited) appends as usual. */
  isOver: boolean;
  readonly wants: (unit: readonly NewRecord[]) => boolean;
}

const recordings = new AsyncLocalStorage<Recording>();

/**
 * The transaction that this unit is committed with; null for an ordinary append. `check` throws if the unit cannot be
 * recorded: the caller may then record something else with the same transaction. Throws NOT_SUPPORTED for a second
 * unit.
 */
export function transactionFor(
  unit: readonly NewRecord[],
  database: Database,
  check: () => unknown,
): Transaction | null {
  const recording = recordings.getStore();
  if (!recording || recording.isOver || !recording.wants(unit)) return null;
  if (recording.isUsed)
    throw notSupported(
      "a second record in one transaction",
      database.name,
      "The transaction was committed with the first record. Use one call that records, or one transaction for each.",
    );
  const { transaction } = recording;
  if (!transaction) return null;
  if (transaction.database !== database)
    throw notSupported(
      "a record of another store in this transaction",
      database.name,
      "Nothing was recorded. Use the store of the session.",
    );
  check();
  recording.transaction = null;
  recording.isUsed = true;
  return transaction;
}

/** Streamed text is recorded in passing, and never belongs to a transaction. */
const isAnswerOrMore = (unit: readonly NewRecord[]): boolean => unit.some(({ kind }) => kind !== "draft");

/** Runs the application's statements and one unit of a session as one transaction. */
export class Transactions {
  readonly #database: Database;
  /** Appends need a connection too: a transaction that waits for one must not hold the last. */
  readonly #max: number;
  #running = 0;
  readonly #waiting: (() => void)[] = [];

  constructor(database: Database) {
    this.#database = database;
    this.#max = database.connectionsMax - 1;
  }

  /** See `PostgresSessions.transaction`. */
  async run<T>(work: (client: PoolClient) => unknown, record: () => Promise<T>): Promise<T> {
    this.#assertNotInside();
    const transaction = await this.#begin();
    const working = this.#recording(() => false);
    const recording = this.#recording(isAnswerOrMore);
    try {
      await recordings.run(working, () => work(transaction.lent.client));
      transaction.lent.takeBack();
      recording.transaction = transaction;
      const result = await recordings.run(recording, record);
      if (!recording.isUsed) throw nothingRecorded(this.#database.name);
      return result;
    } finally {
      working.isOver = true;
      recording.isOver = true;
      await this.#end(transaction);
    }
  }

  /** See `PostgresSessions.tool`. */
  async tool<M, T>(
    turn: Turn<M>,
    callId: string,
    run: (client: PoolClient, signal: AbortSignal, call: ToolCall) => T | Promise<T>,
    options: ToolOptions<T> = {},
  ): Promise<Outcome<T>> {
    this.#assertNotInside();
    const recording = this.#recording((unit) =>
      unit.some(({ kind, call }) => kind === "tool.ended" && call === callId),
    );
    let begun: Transaction | null = null;
    const runInside = async (signal: AbortSignal, call: ToolCall): Promise<T> => {
      const transaction = await this.#begin();
      begun = transaction;
      const value = await run(transaction.lent.client, signal, call);
      transaction.lent.takeBack();
      recording.transaction = transaction;
      return value;
    };
    try {
      // If the outcome is not recorded, nothing that the tool wrote is there either: it may run again.
      return await recordings.run(recording, () => turn.tool(callId, runInside, { replay: "safe", ...options }));
    } catch (error) {
      if (!(error instanceof HoldfastError) || error.code !== "TRANSACTION_ROLLED_BACK" || !begun) throw error;
      recording.isOver = true;
      await turn.toolEnded(callId, { error });
      return { error };
    } finally {
      recording.isOver = true;
      if (begun) await this.#end(begun);
    }
  }

  #recording(wants: Recording["wants"]): Recording {
    return { database: this.#database, transaction: null, isUsed: false, isOver: false, wants };
  }

  /** If each of several transactions waited for a second connection, all of them would wait for each other. */
  #assertNotInside(): void {
    const outer = recordings.getStore();
    if (!outer || outer.isOver || outer.database !== this.#database) return;
    throw notSupported(
      "transaction inside another",
      this.#database.name,
      "Use the client of the outer one, or begin this one when the outer one is over.",
    );
  }

  async #begin(): Promise<Transaction> {
    if (this.#max < 1)
      throw notSupported(
        "a transaction",
        this.#database.name,
        "It needs a pool of at least two connections: one for the transaction, one for everything else.",
      );
    await this.#enter();
    try {
      return await Transaction.begin(this.#database);
    } catch (error) {
      this.#leave();
      throw this.#database.failure(error, "begin a transaction");
    }
  }

  /** Waits for a place, as long as the database is waited for. Throws STORE_IO. */
  #enter(): Promise<void> {
    if (this.#running < this.#max) {
      this.#running++;
      return Promise.resolve();
    }
    const { patienceMs } = this.#database;
    return new Promise((resolve, reject) => {
      const giveUp = (): void => {
        this.#waiting.splice(this.#waiting.indexOf(enter), 1);
        reject(noPlace(this.#database.name, this.#max, patienceMs));
      };
      const timer = setTimeout(giveUp, patienceMs);
      const enter = (): void => {
        clearTimeout(timer);
        resolve();
      };
      this.#waiting.push(enter);
    });
  }

  async #end(transaction: Transaction): Promise<void> {
    await transaction.rollBack();
    if (transaction.isRolledBack) this.#database.metrics.count("transactionsRolledBack");
    // The application does not wait for it: its rows are committed, or rolled back.
    void transaction.release().finally(() => this.#leave());
  }

  /** Hands the place over to the next one, if any waits. */
  #leave(): void {
    const next = this.#waiting.shift();
    if (next) next();
    else this.#running--;
  }
}

/** A transaction of the application's, on a connection of the store's pool. */
export class Transaction {
  readonly database: Database;
  readonly lent: LentClient;
  readonly #client: PoolClient;
  /** Distinguishes this transaction from one that the application began after it. */
  readonly #xid: string;
  #state: "open" | "committed" | "rolled back" | "lost" = "open";

  private constructor(database: Database, client: PoolClient, xid: string) {
    this.database = database;
    this.lent = new LentClient(client, database.name);
    this.#client = client;
    this.#xid = xid;
  }

  /** Throws the driver's error. */
  static async begin(database: Database): Promise<Transaction> {
    const client = await database.connect();
    try {
      // After waiting for a lock we must see what its holder did, so the role's own isolation level must not apply.
      // The application's statements have its own limits, not those of ours.
      const begin =
        "BEGIN ISOLATION LEVEL READ COMMITTED; SET LOCAL lock_timeout = DEFAULT; SET LOCAL statement_timeout = DEFAULT; SELECT pg_current_xact_id()::text AS xid";
      // The driver's types do not know that several statements have several results.
      const results = (await ask(client, database.answerMs, begin)) as unknown as readonly QueryResult<Row>[];
      return new Transaction(database, client, String(results.at(-1)?.rows[0]?.["xid"]));
    } catch (error) {
      client.release(true);
      throw error;
    }
  }

  /**
   * Writes the lines, with the same fence as any append. Throws the driver's error, and NOT_SUPPORTED if the
   * application has ended the transaction.
   */
  async write(write: Write): Promise<WriteResult> {
    const { schema, answerMs, name } = this.database;
    const { longMs } = limitsOf(answerMs);
    // The record is the store's own, whatever the application has set: in another encoding it would be damaged. The
    // number of rows says whether the transaction is open: the application may have changed how values are parsed.
    const own = `SET LOCAL statement_timeout = ${longMs}; RESET SESSION AUTHORIZATION; RESET ROLE; SET LOCAL client_encoding = 'UTF8';
      SELECT WHERE pg_current_xact_id_if_assigned() = '${this.#xid}'::xid8`;
    const results = (await this.#ask(own)) as unknown as readonly QueryResult[];
    if (results.at(-1)?.rowCount !== 1) throw endedByApplication(name);
    const set = this.database.commitSettings;
    const settings = (): string => `power AS (SELECT ${set.join(", ")})`;
    const settingsCondition = (): string => `(SELECT true FROM (SELECT ${set.join(", ")}) AS power)`;
    const { text, values } = statementOf({ schema, answerMs, settings, settingsCondition }, [write]);
    const answer = await this.#ask(text, values, longMs);
    const isWritten = answer.command === "INSERT" ? answer.rowCount === 1 : answer.rows.length === 1;
    return isWritten ? "written" : "moved";
  }

  /** Throws the driver's error: then it is unknown whether the transaction was committed. */
  async commit(): Promise<void> {
    const { command } = await this.#ask("COMMIT");
    if (wasUnconfirmed(this.#client)) throw new CommitUnconfirmed();
    this.#state = command === "COMMIT" ? "committed" : "rolled back";
    // The server answers so if a statement in the transaction failed.
    if (command !== "COMMIT") throw new Error("the transaction was rolled back, because a statement in it had failed");
  }

  /** Does nothing if it is over. Never rejects: without its connection the transaction ends by itself. */
  async rollBack(): Promise<void> {
    if (this.#state !== "open") return;
    try {
      await this.#ask("ROLLBACK");
      this.#state = "rolled back";
    } catch {
      this.#state = "lost";
    }
  }

  /** Gives the connection back without what the application has left on it, or ends it. Never rejects. */
  async release(): Promise<void> {
    const isUsable = this.#state !== "lost" && !this.lent.leavesTrace;
    this.#client.release(!(isUsable && (await resetSession(this.#client, limitsOf(this.database.answerMs)))));
  }

  get isRolledBack(): boolean {
    return this.#state === "rolled back";
  }

  async #ask(
    text: string,
    values: readonly unknown[] = [],
    answerMs = this.database.answerMs,
  ): Promise<QueryResult<Row>> {
    try {
      return await ask(this.#client, answerMs, text, values);
    } catch (error) {
      if (text === "COMMIT") this.#state = "lost";
      throw error;
    }
  }
}

function ask(
  client: PoolClient,
  answerMs: number,
  text: string,
  values: readonly unknown[] = [],
): Promise<QueryResult<Row>> {
  return client.query<Row>({ text, values: values as unknown[], query_timeout: answerMs } as QueryConfig);
}

/** What is needed to find out what happened to a transaction. */
interface Commit {
  readonly session: string;
  readonly database: Database;
  readonly patienceMs: number;
  /** Whether the unit is in the journal. Only to be asked once the transaction is over. */
  readonly isWritten: () => Promise<boolean>;
  readonly inDoubt: (cause: unknown) => HoldfastError;
}

/**
 * Writes a unit in the application's transaction and commits that. Throws LEASE_LOST, FILE_REPLACED, SYNC_FAILED (in
 * doubt), NOT_SUPPORTED, or TRANSACTION_ROLLED_BACK: then neither the unit nor the application's rows are there.
 */
export async function commitWith(transaction: Transaction, write: Write, commit: Commit): Promise<void> {
  let cause: unknown;
  let isSent = false;
  try {
    if ((await transaction.write(write)) === "written") {
      isSent = true;
      return await transaction.commit();
    }
  } catch (error) {
    if (isHoldfastError(error)) throw error;
    cause = error;
  }
  // Without COMMIT it cannot be committed, whatever happens to its connection.
  if (isSent) await transactionOver(write, cause, commit);
  else await transaction.rollBack();
  if (await commit.isWritten()) return;
  throw rolledBack(commit.session, cause);
}

/**
 * Waits until the server has committed or rolled back a transaction that has written to this session: until then it has
 * the session's row locked.
 */
async function transactionOver({ lease }: Write, cause: unknown, commit: Commit): Promise<void> {
  const { database, patienceMs, inDoubt } = commit;
  const until = performance.now() + patienceMs;
  for (let pauseMs = PAUSE_MS; ; pauseMs = Math.min(pauseMs * 2, PAUSE_MS_MAX)) {
    try {
      return await database.transaction("find out whether the transaction was committed", async (query) => {
        await query(`SET LOCAL lock_timeout = '${PAUSE_MS_MAX}ms'`);
        await query(`SELECT FROM ${database.schema}.heads WHERE place = $1 FOR SHARE`, [lease.place]);
      });
    } catch (error) {
      const found = error instanceof Error ? error.cause : undefined;
      if (!isPassing(found)) throw inDoubt(error);
    }
    if (performance.now() + pauseMs > until) throw inDoubt(cause);
    await database.pause(pauseMs);
  }
}

/** The transaction has certainly not been committed. */
function rolledBack(session: string, cause: unknown): HoldfastError {
  const said = cause instanceof Error ? cause.message : String(cause ?? "the session has changed");
  const message =
    `The transaction was rolled back (${said}). Neither its rows nor the record of session ${session} were written; earlier data is safe, and the session continues. ` +
    "Correct the cause, or try again.";
  return new HoldfastError("TRANSACTION_ROLLED_BACK", message, { session }, cause);
}

function endedByApplication(name: string): HoldfastError {
  const message =
    `The application has ended the transaction on ${name} itself. Nothing was recorded, and the session continues; rows that it committed are there, others are not. ` +
    "Leave COMMIT and ROLLBACK to the store: it commits the transaction with the record, and rolls it back if the function throws.";
  return new HoldfastError("NOT_SUPPORTED", message, { call: "COMMIT or ROLLBACK inside a transaction", url: name });
}

function noPlace(name: string, max: number, patienceMs: number): HoldfastError {
  const message =
    `Could not begin a transaction on ${name}: for ${patienceMs} ms, others had all ${max} connections that transactions can use. Nothing was changed, and earlier data is safe. ` +
    "Keep transactions short, begin fewer at a time, or raise `connections` (in a pool of your own: `max`).";
  return new HoldfastError("STORE_IO", message, { database: name });
}

function nothingRecorded(name: string): HoldfastError {
  const message =
    `The transaction on ${name} was rolled back, because the call that was to be recorded with it recorded nothing. No rows were written. ` +
    "If the call repeats an earlier one, its record and its rows were committed then. Otherwise, await one call that records, such as `startTurn` or `turn.append`, in the second function.";
  return new HoldfastError("TRANSACTION_ROLLED_BACK", message, { why: "nothing recorded" });
}
