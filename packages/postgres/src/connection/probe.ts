import { randomUUID } from "node:crypto";
import { HoldfastError } from "holdfast";
import type { Database } from "./database.ts";
import { type Direct, PoolerDetected } from "./direct.ts";

/** Engines that speak PostgreSQL's protocol, and whose advisory locks are known to lock nothing. */
const OTHER_ENGINES = /CockroachDB/;

/** `version`: what the server says about itself. Throws SERVER_UNSUPPORTED. */
export function assertEngine(name: string, version: unknown): void {
  const [engine] = OTHER_ENGINES.exec(String(version)) ?? [];
  if (engine !== undefined)
    throw unsupported(
      name,
      engine,
      `The server of ${name} is ${engine}, whose advisory locks lock nothing and which has no LISTEN. Two workers could believe that they own the same session. Nothing was touched. Use PostgreSQL.`,
    );
}

/**
 * Opens the direct connection and tests on it what the store depends on: others find this worker's advisory lock taken,
 * and a notification of theirs arrives. Both also fail if the direct connection leads to another server or database
 * than the pool. Throws SERVER_UNSUPPORTED, STORE_IO, STORE_FORBIDDEN.
 */
export async function openDirect(direct: Direct, database: Database, patienceMs: number): Promise<void> {
  const patiently = (work: () => Promise<void>): Promise<void> =>
    database.retry("connect to the database", work, patienceMs);
  await patiently(async () => {
    try {
      await direct.open();
    } catch (error) {
      throw error instanceof PoolerDetected ? behindPooler(database.name) : error;
    }
  });
  try {
    await patiently(() => assertLocks(direct, database));
    await patiently(() => assertNotifications(direct, database));
  } catch (error) {
    await direct.close();
    throw error;
  }
}

async function assertLocks(direct: Direct, database: Database): Promise<void> {
  const isFree = async (): Promise<boolean> => {
    const { rows } = await database.once("SELECT pg_try_advisory_xact_lock_shared($1) AS free", [String(direct.lock)]);
    return rows[0]?.["free"] === true;
  };
  if (!(await isFree())) return;
  // The connection may have been lost just now, and its lock with it.
  await direct.test();
  if (!(await isFree())) return;
  throw unsupported(
    database.name,
    "advisory locks",
    `An advisory lock that this worker holds over its direct connection to ${database.name} is free for others. Either the direct address leads to another server or database than the store's address, or this engine does not implement advisory locks. ` +
      'Two workers could believe that they own the same session. No session was touched. Correct the direct address ("?direct=host:port"), or use PostgreSQL (docs/guides/many-machines.md).',
  );
}

async function assertNotifications(direct: Direct, database: Database): Promise<void> {
  const channel = `holdfast_probe_${randomUUID().replaceAll("-", "")}`;
  const notify = async (): Promise<void> => {
    await database.once(`WITH ${database.noWait} SELECT pg_notify($1, '') FROM power`, [channel]);
  };
  if (await direct.hears(channel, notify)) return;
  throw unsupported(
    database.name,
    "NOTIFY",
    `A notification that was sent through ${database.name} did not arrive on the direct connection. Either the direct address leads to another server, or this engine does not implement LISTEN and NOTIFY. ` +
      'No session was touched. Correct the direct address ("?direct=host:port"), use PostgreSQL, or do without a direct connection ("?direct=none"): then a dead worker\'s sessions are free only after its lease expires, and followers are up to a second late.',
  );
}

function behindPooler(name: string): HoldfastError {
  return unsupported(
    name,
    "a pooler",
    `${name} is a pooler, and the address does not say where the server is. A pooler shares its connections, so a worker's advisory lock would outlive the worker or end before it. No session was touched. ` +
      'Add "?direct=host:port" with the address of the server, or "?direct=none" to do without it: then a dead worker\'s sessions are free only after its lease expires, and followers are up to a second late (docs/guides/many-machines.md).',
  );
}

function unsupported(database: string, what: string, message: string): HoldfastError {
  return new HoldfastError("SERVER_UNSUPPORTED", message, { database, what });
}
