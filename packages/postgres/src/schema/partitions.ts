import { jitter } from "holdfast/internal";
import type { Database } from "../connection/database.ts";
import { codeOf } from "../failure.ts";
import { monthOf, partitionName } from "./months.ts";

/** How many months ahead partitions are created. Lines of other months go to the default partition. */
export const MONTHS_AHEAD = 12;

/** How often an open store checks the partitions. */
export const UPKEEP_MS = 6 * 3600 * 1000;

/** Attaching a partition reads what is in the default one, and blocks appends to that: not for long. */
const STATEMENT_TIMEOUT = "500ms";

/** Errors that postpone a partition: until it exists, lines go to the default one. */
const MAY_WAIT = new Set([
  "42501", // insufficient_privilege: a reader, or a worker whose rights are from before this function
  "42883", // undefined_function: the owner has not updated the schema yet
  "25006", // read_only_sql_transaction: a reader, or a standby
  "42P07", // duplicate_table: another worker is creating it
  "23505", // unique_violation: the same
  "23514", // check_violation: a line of this month has just gone to the default partition
  "55P03", // lock_not_available
  "57014", // query_canceled: the default partition is too large to be looked through while others wait
]);

export interface PartitionOptions {
  readonly nowMs: number;
  readonly monthsAhead: number;
}

/**
 * Creates the missing partitions for this month and the following ones. Any number of workers can do so at once: one of
 * them creates each. Does nothing if this role may not, or if it would have to wait: lines then go to the default
 * partition, and the next check tries again.
 */
export async function makePartitions(database: Database, options: PartitionOptions): Promise<void> {
  for (const month of await missingMonths(database, options)) {
    try {
      await database.transaction("create a partition", async (query) => {
        await query(`SET LOCAL statement_timeout = '${STATEMENT_TIMEOUT}'`);
        await query(`SELECT ${database.schema}.make_partition($1::date)`, [new Date(month).toISOString().slice(0, 10)]);
      });
    } catch (error) {
      if (!MAY_WAIT.has(codeOf((error as { cause?: unknown }).cause) ?? "")) throw error;
      return;
    }
  }
}

async function missingMonths(database: Database, { nowMs, monthsAhead }: PartitionOptions): Promise<number[]> {
  const months = Array.from({ length: monthsAhead + 1 }, (_, ahead) => monthOf(nowMs, ahead));
  const { rows } = await database.query(
    "list the partitions",
    "SELECT name FROM unnest($1::text[]) AS name WHERE to_regclass($2 || '.' || name) IS NULL",
    [months.map(partitionName), database.schema],
  );
  const missing = new Set(rows.map(({ name }) => name));
  return months.filter((month) => missing.has(partitionName(month)));
}

/**
 * Keeps the partitions of the coming months while a store is open, so that a fleet that runs for years needs nobody to
 * create them. Each store waits for a time of its own, so that not all of them check at once.
 */
export class Upkeep {
  readonly #check: () => Promise<void>;
  readonly #everyMs: number;
  #timer: NodeJS.Timeout | null = null;
  #checking: Promise<void> = Promise.resolve();

  /** `everyMs` 0: never. */
  constructor(everyMs: number, check: () => Promise<void>) {
    this.#everyMs = everyMs;
    this.#check = check;
    this.#schedule();
  }

  async close(): Promise<void> {
    if (this.#timer) clearTimeout(this.#timer);
    this.#timer = null;
    await this.#checking;
  }

  #schedule(): void {
    if (this.#everyMs === 0) return;
    this.#timer = setTimeout(() => {
      const timer = this.#timer;
      // The server may be away. Then the next check does it: there are months to go.
      this.#checking = this.#check().catch(() => undefined);
      void this.#checking.then(() => {
        if (this.#timer === timer) this.#schedule();
      });
    }, jitter(this.#everyMs));
    this.#timer.unref();
  }
}
