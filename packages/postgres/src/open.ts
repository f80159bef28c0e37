import { checkNumbers, count, duration } from "holdfast/internal";
import type { JournalStore } from "holdfast/store";
import type pg from "pg";
import { type Address, parseAddress, quoteName, resolveAddress } from "./connection/address.ts";
import { Database } from "./connection/database.ts";
import { makePool, tolerate } from "./connection/pools.ts";
import type { PostgresStoreOptions } from "./options.ts";
import { MONTHS_AHEAD } from "./schema/partitions.ts";
import { migrate, type Server } from "./schema/schema.ts";
import { PostgresStore } from "./store.ts";

const PATIENCE_MS = 30_000;
/** If the server is away when the store is opened, the address is more often wrong. */
const FIRST_PATIENCE_MS = 5000;
const ANSWER_MS = 10_000;
const CONNECTIONS = 6;
const NUMBERS = {
  leaseMs: duration(undefined, 1),
  patienceMs: duration(),
  // Longer statements have six times as long.
  answerMs: duration(600_000, 1),
  connections: count(1),
  // Ten years: no partition is made for a later month.
  monthsAhead: count(0, 120),
  upkeepMs: duration(),
} as const;

/**
 * Opens a store in a PostgreSQL database, by its address or with an existing pool. With a pool, pass `directUrl` too,
 * or leases are only freed by time. Creates the tables if they do not exist. Throws STORE_URL_INVALID, STORE_FORBIDDEN,
 * STORE_IO, FORMAT_NEWER, SERVER_UNSUPPORTED, QUERY_INVALID (an option).
 */
export function openPostgresStore(place: string | pg.Pool, options: PostgresStoreOptions = {}): Promise<JournalStore> {
  return openPostgres(place, options);
}

export async function openPostgres(place: string | pg.Pool, options: PostgresStoreOptions): Promise<PostgresStore> {
  checkNumbers("the store", options, NUMBERS);
  const address: Address =
    typeof place === "string"
      ? parseAddress(await resolveAddress(place))
      : { url: "", name: "postgres:(a pool)", schema: quoteName("holdfast"), direct: null };
  const schema = options.schema === undefined ? address.schema : quoteName(options.schema);
  const { directUrl: given } = options;
  const directUrl =
    given === undefined ? address.direct : given === null ? null : parseAddress(await resolveAddress(given)).url;
  const { app = "holdfast", patienceMs = PATIENCE_MS, answerMs = ANSWER_MS, connections = CONNECTIONS } = options;
  const own = typeof place === "string" ? makePool({ url: address.url, connections, app, answerMs }) : null;
  const pool = own?.pool ?? (place as pg.Pool);
  const stopTolerating = own ? null : tolerate(pool);
  const beating = own ? makePool({ url: address.url, connections: 1, app, answerMs }) : null;
  const end = async (): Promise<void> => {
    await Promise.all([own?.end(), beating?.end()]);
    stopTolerating?.();
  };
  const databaseOf = (of: pg.Pool): Database => new Database(of, { name: address.name, schema, patienceMs, answerMs });
  const database = databaseOf(pool);
  try {
    const firstPatienceMs = Math.min(patienceMs, FIRST_PATIENCE_MS);
    const server = await migrate(database, {
      nowMs: (options.clock ?? Date.now)(),
      monthsAhead: options.monthsAhead ?? MONTHS_AHEAD,
      patienceMs: firstPatienceMs,
    });
    const beats = beating ? databaseOf(beating.pool) : database;
    beats.serverVersion = database.serverVersion;
    return await PostgresStore.open({
      database,
      beats,
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
    `${name} runs with fsync = off: a power cut of its machine can lose any data, even data that was acknowledged.`,
  ];
}
