import type { ClaimResult, Finish, Outcome, Store, StoreOptions, ToolCall, ToolOptions, Turn } from "holdfast";
import { openStoreWith } from "holdfast/store";
import type pg from "pg";
import type { CounterName, Metrics, StoreMetrics } from "./connection/metrics.ts";
import { openPostgres } from "./open.ts";
import type { PostgresStoreOptions } from "./options.ts";
import type { PostgresStore } from "./store.ts";

/** A store in a PostgreSQL database: what only this store can do, besides what every store does. */
export interface PostgresSessions extends Store {
  /**
   * Runs `work`, your own statements, and then `record`, one call of a session of this store that records (`startTurn`,
   * `turn.append`, `draft.commit`, `enqueue`, `note`, …). The rows and the record are committed together, or neither
   * is written. Resolves with what `record` returns, when both survive a power cut.
   *
   * If `work` throws, everything is rolled back, `record` is not called, and the error is thrown. If the transaction
   * cannot be committed, throws TRANSACTION_ROLLED_BACK: the session continues as if `record` had not been called. If
   * another worker has the session, throws LEASE_LOST, and nothing is written. If the server does not say whether it
   * has committed, throws SYNC_FAILED: the rows are there if, after opening the session again, the record is.
   *
   * `work` is called once. Its client works until `work` has returned. The store keeps the connection and ends the
   * transaction: `release` and `end` do nothing, BEGIN, COMMIT and ROLLBACK are refused (NOT_SUPPORTED), and nothing
   * that `work` sets stays on the connection or reaches the record. Until the transaction is over, other appends to the
   * session wait, so keep it short. Throws NOT_SUPPORTED inside another transaction, or if `record` records twice;
   * TRANSACTION_ROLLED_BACK if it records nothing; STORE_IO if others have all connections.
   */
  transaction<T>(work: (client: pg.PoolClient) => unknown, record: () => Promise<T>): Promise<T>;
  /**
   * Like `turn.tool`, for a tool whose only effects are rows of this database: they are committed together with its
   * outcome. So the tool takes effect exactly once. Its start is recorded as safe to repeat (`replay: "safe"`): if its
   * outcome is missing after a crash, it has had no effect. If it throws, its rows are rolled back, and the error is
   * recorded as its outcome; the same if the transaction cannot be committed.
   */
  tool<M, T>(
    turn: Turn<M>,
    callId: string,
    run: (client: pg.PoolClient, signal: AbortSignal, call: ToolCall) => T | Promise<T>,
    options?: ToolOptions<T>,
  ): Promise<Outcome<T>>;
  /** What this store has done in this process. */
  metrics(): StoreMetrics;
}

/**
 * Opens a store in a PostgreSQL database, by its address or with an existing pool, with options that only this store
 * has (`directUrl`, `leaseMs`). With an address and none of these options, `openStore` of `holdfast` does the same. The
 * pool stays the application's: closing the store does not end it.
 */
export async function openStore(
  place: string | pg.Pool,
  options: StoreOptions & PostgresStoreOptions = {},
): Promise<PostgresSessions> {
  let journals!: PostgresStore;
  const store = await openStoreWith(async (given) => {
    journals = await openPostgres(place, { ...options, ...given });
    return journals;
  }, options);
  const { transactions, counted } = journals;
  return Object.assign(store, countedWork(store, counted), {
    transaction: (work, record) => transactions.run(work, record),
    tool: (turn, callId, run, toolOptions) => transactions.tool(turn, callId, run, toolOptions),
    metrics: () => journals.metrics(),
  } satisfies Omit<PostgresSessions, keyof Store>);
}

export const OUTCOME_COUNTERS: Readonly<Record<ClaimResult["outcome"], CounterName>> = {
  finished: "claimsFinished",
  waiting: "claimsFinished",
  paused: "claimsFinished",
  ended: "claimsFinished",
  failed: "claimsFailed",
  "gave-up": "claimsGivenUp",
  "given-back": "claimsGivenBack",
};

/** The calls of a worker, counted. */
function countedWork(store: Store, metrics: Metrics): Pick<Store, "claimNext" | "work"> {
  const { claimNext, work } = store;
  const counting = <M>(finish: Finish<M>): Finish<M> => {
    return (session, claim) => {
      metrics.count("claims");
      return finish(session, claim);
    };
  };
  return {
    claimNext: async (options, finish) => {
      const result = await claimNext.call(store, options as never, counting(finish) as never);
      if (result) metrics.count(OUTCOME_COUNTERS[result.outcome]);
      return result;
    },
    work: (options, finish) => {
      const onResult = (result: ClaimResult): void => {
        metrics.count(OUTCOME_COUNTERS[result.outcome]);
        options.onResult?.(result);
      };
      return work.call(store, { ...options, onResult } as never, counting(finish) as never);
    },
  };
}
