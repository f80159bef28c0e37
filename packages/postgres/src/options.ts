import type { JournalStoreOptions } from "holdfast/store";

export interface PostgresStoreOptions extends JournalStoreOptions {
  /**
   * The address of the server itself, if `url` is a pooler's: for the worker's direct connection (S26). Null: there is
   * no direct route; then a dead worker's sessions are free only after `leaseMs`, and followers poll once a second.
   * Default: what the address says (`?direct=host:port`, or `none`), or else the same address.
   */
  readonly directUrl?: string | null;
  /** The schema of the tables. Default: `?schema=` of the address, or `holdfast`. */
  readonly schema?: string;
  /** A lease that its worker does not extend is free after this time. Default: 15 seconds. */
  readonly leaseMs?: number;
  /** How long to retry statements while the server is away. Default: 30 seconds. */
  readonly patienceMs?: number;
  /**
   * How long an append waits for its answer. Then its connection is given up, and it is sent again over another. Longer
   * statements have six times as long. Default: 10 seconds.
   */
  readonly answerMs?: number;
  /** Connections of the pool, if this store creates it. Default: 6. */
  readonly connections?: number;
  /** For how many future months to create partitions, if this role may. Default: 12. */
  readonly monthsAhead?: number;
  /** How often to check that these partitions exist, in milliseconds. 0: never. Default: about every six hours. */
  readonly upkeepMs?: number;
  readonly clock?: () => number;
}
