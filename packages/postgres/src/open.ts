import type { JournalStore, JournalStoreOptions } from "holdfast";
import type pg from "pg";
import { type Address, parseAddress, quoted, resolveAddress } from "./address.ts";
import { Database } from "./database.ts";
import { makePool, tolerate } from "./pools.ts";
import { MONTHS_AHEAD, migrate, type Server } from "./schema.ts";
import { PostgresStore } from "./store.ts";

export interface PostgresStoreOptions extends JournalStoreOptions {
  /**
   * The address of the server itself, where `url` is that of a pooler: for the one connection of a worker that must be its own (S26). Null: there is no way to it; then a dead worker's sessions are free only after `leaseMs`, and
   * followers look once a second. Default: what the address says (`?direct=host:port`, or `none`), else the same address.
   */
  readonly directUrl?: string | null;
  /** The schema that the tables are in; default `holdfast`, or what the address says (`?schema=`). */
  readonly schema?: string;
  /** A lease that its worker does not extend is free after this time. Default 15 seconds. */
  readonly leaseMs?: number;
  /** How long a statement is sent again while the server is away. Default 30 seconds. */
  readonly patienceMs?: number;
  /** How long an append waits for its answer: then its connection is given up, and it is sent again over another. Longer statements have six times as long. Default 10 seconds. */
  readonly answerMs?: number;
  /** Connections of the pool, if it is made here. Default 6. */
  readonly connections?: number;
  /** For how many months to come partitions are made, where this role may. Default 12. */
  readonly monthsAhead?: number;
  readonly clock?: () => number;
}

const PATIENCE_MS = 30_000;
/** A server that is away when the store is opened is more often a wrong address. */
const FIRST_PATIENCE_MS = 5000;
const ANSWER_MS = 10_000;
const CONNECTIONS = 6;

/**
 * Opens a store in a PostgreSQL database, by its address or by a pool that the application has already (then `directUrl` should be given, or leases are freed by time alone). Makes the tables if they are not there.
 * Throws STORE_URL_INVALID, STORE_FORBIDDEN, STORE_IO, FORMAT_NEWER.
 */
export async function openPostgresStore(
  place: string | pg.Pool,
  options: PostgresStoreOptions = {},
): Promise<JournalStore> {
  const address: Address =
    typeof place === "string"
      ? parseAddress(await resolveAddress(place))
      : { url: "", name: "postgres:(a pool)", schema: quoted("holdfast"), direct: null };
  const schema = options.schema === undefined ? address.schema : quoted(options.schema);
  const { directUrl: given } = options;
  const directUrl =
    given === undefined ? address.direct : given === null ? null : parseAddress(await resolveAddress(given)).url;
  const { app = "holdfast", patienceMs = PATIENCE_MS, answerMs = ANSWER_MS, connections = CONNECTIONS } = options;
  const own = typeof place === "string" ? makePool({ url: address.url, connections, app, answerMs }) : null;
  const pool = own?.pool ?? (place as pg.Pool);
  const stopTolerating = own ? null : tolerate(pool);
  const end = async (): Promise<void> => {
    await own?.end();
    stopTolerating?.();
  };
  const database = new Database(pool, { name: address.name, schema, patienceMs, answerMs });
  try {
    const firstPatienceMs = Math.min(patienceMs, FIRST_PATIENCE_MS);
    const server = await migrate(database, {
      nowMs: (options.clock ?? Date.now)(),
      monthsAhead: options.monthsAhead ?? MONTHS_AHEAD,
      patienceMs: firstPatienceMs,
    });
    return await PostgresStore.open({
      database,
      end,
      directUrl,
      patienceMs,
      firstPatienceMs,
      options,
      warnings: warningsOf(address.name, server),
    });
  } catch (error) {
    database.close();
    await end();
    throw error;
  }
}

/** What this server cannot promise. */
function warningsOf(name: string, { fsync }: Server): string[] {
  if (fsync) return [];
  return [
    `${name} runs with fsync = off: after a power cut of its machine it may have lost anything, so P1 is not promised there.`,
  ];
}
