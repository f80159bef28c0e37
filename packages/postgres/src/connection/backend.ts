import pg, { type ClientBase, type QueryConfig, type QueryResult } from "pg";
import { codeOf, isPassing } from "../failure.ts";

/** What a worker asks of the server process behind one of its connections. */

/** How often the server checks, during a statement, whether its client is still there. */
const CHECK_MS = 2000;
/** The server gives up a client that does not acknowledge what it was sent. */
const UNACKNOWLEDGED_MS = 15_000;
const CANCEL_MS = 2000;

/**
 * With keepalives the server notices within seconds that a worker's machine is gone (no effect on a local socket). They
 * are silent while the server waits for an acknowledgement, so that has its own limit.
 */
export const KEEPALIVE: Readonly<Record<string, string>> = {
  tcp_keepalives_idle: "5",
  tcp_keepalives_interval: "2",
  tcp_keepalives_count: "3",
  tcp_user_timeout: String(UNACKNOWLEDGED_MS),
};

/** Connections whose settings we have made. */
const prepared = new WeakSet<object>();
/** Connections whose last commit was not confirmed by the synchronous standby. */
const unconfirmed = new WeakSet<object>();
const watched = new WeakSet<object>();

/** Statements that read or delete a lot get this many times as long as an append. */
const LONG_STATEMENTS = 6;
/**
 * The share of its time that a statement may wait for one lock: the server reports that it did not get the lock before
 * the worker gives up, so the worker knows that nothing was written.
 */
const LOCK_SHARE = 0.8;

/**
 * The server ends every other statement after this time. It is the last resort, if a worker loses its network with a
 * statement under way: a statement with much to send takes long.
 */
const STATEMENT_MS_MAX = 600_000;

export interface Limits {
  readonly answerMs: number;
  /** For one lock. */
  readonly lockMs: number;
  /** For a statement that reads or deletes a lot. */
  readonly longMs: number;
}

/** `answerMs`: how long the worker waits for the answer to a short statement. */
export function limitsOf(answerMs: number): Limits {
  return { answerMs, lockMs: Math.ceil(answerMs * LOCK_SHARE), longMs: answerMs * LONG_STATEMENTS };
}

/**
 * Sets limits on the server for a connection of our own, so that a statement that was given up ends there too. Does
 * nothing behind a pooler, where the next user of the connection would inherit them: there the process that answers is
 * not the one that accepted the connection.
 */
export async function prepare(client: ClientBase, { answerMs, lockMs }: Limits): Promise<void> {
  const settings = {
    ...KEEPALIVE,
    lock_timeout: String(lockMs),
    statement_timeout: String(STATEMENT_MS_MAX),
    // Without warnings we would not learn that a commit was not replicated.
    client_min_messages: "warning",
  };
  const set = async (chosen: Readonly<Record<string, string>>): Promise<boolean> => {
    const columns = Object.entries(chosen).map(([name, value]) => `set_config('${name}', '${value}', false)`);
    const { processID } = client as { readonly processID?: number | null };
    const statement = {
      text: `SELECT ${columns.join(", ")} WHERE pg_backend_pid() = $1`,
      values: [processID ?? 0],
      query_timeout: answerMs,
    };
    return (await client.query(statement as QueryConfig)).rowCount === 1;
  };
  // On some operating systems the server cannot tell that a client is gone, and refuses the setting. Other servers that
  // speak this protocol may not know some of the rest.
  for (const chosen of [{ ...settings, client_connection_check_interval: String(CHECK_MS) }, settings]) {
    try {
      if (await set(chosen)) prepared.add(client);
      return;
    } catch (error) {
      if (codeOf(error) === undefined || isPassing(error)) throw error;
    }
  }
}

/**
 * Everything a session can keep, except what the driver has prepared by name and knows of: settings, roles, locks, and
 * so on. The last statement finds what only the end of the connection removes.
 */
const RESET = `CLOSE ALL; SET SESSION AUTHORIZATION DEFAULT; RESET ROLE; RESET ALL; UNLISTEN *; SELECT pg_advisory_unlock_all();
  DISCARD TEMP; DISCARD SEQUENCES; SELECT FROM pg_prepared_statements WHERE from_sql LIMIT 1`;

/**
 * Removes what others have left on a connection of our own. Never rejects. False: it cannot be used again. It never can
 * if it is not our own: we do not know what its owner has set.
 */
export async function resetSession(client: ClientBase, limits: Limits): Promise<boolean> {
  if (!prepared.has(client)) return false;
  try {
    const reset = { text: RESET, query_timeout: limits.answerMs } as QueryConfig;
    const results = (await client.query(reset)) as unknown as readonly QueryResult[];
    if (results.at(-1)?.rowCount !== 0) return false;
    await prepare(client, limits);
    return true;
  } catch {
    return false;
  }
}

/** The connection is our own, and the server enforces our limits on it. */
export function isPrepared(client: object): boolean {
  return prepared.has(client);
}

/**
 * Ends a statement that we no longer wait for. Otherwise it keeps its connection and its locks, a commit without a
 * synchronous standby forever. Returns at once. The connection must not be used again.
 */
export function cancel(client: object): void {
  // Behind a pooler, the server process may already work for another client.
  if (!prepared.has(client)) return;
  const { host, port, ssl, sslNegotiation, processID, secretKey } = client as Cancellable;
  const connection = new pg.Connection({ ssl, sslNegotiation } as object) as unknown as CancelConnection;
  const end = (): void => connection.stream.destroy();
  const timer = setTimeout(end, CANCEL_MS);
  timer.unref();
  connection.on("error", end);
  connection.on("end", () => clearTimeout(timer));
  const send = (): void => connection.cancel(processID, secretKey);
  connection.on("connect", () => {
    if (!ssl) send();
    else if (sslNegotiation !== "direct") connection.requestSsl();
  });
  connection.on("sslconnect", send);
  if (host.startsWith("/")) connection.connect(`${host}/.s.PGSQL.${port}`);
  else connection.connect(port, host);
}

/** Notes from now on which commits of this connection were not confirmed. */
export function watchCommits(client: ClientBase): void {
  unconfirmed.delete(client);
  if (watched.has(client)) return;
  watched.add(client);
  client.on("notice", (notice) => {
    if (isUnconfirmed(notice)) unconfirmed.add(client);
  });
}

/** Whether the last statement's commit was not confirmed. Asking forgets it. */
export function wasUnconfirmed(client: object): boolean {
  return unconfirmed.delete(client);
}

/**
 * The server committed on its own disk and stopped waiting for the synchronous standby, because somebody cancelled the
 * statement. The text depends on the server's language, the name of the function does not.
 */
export function isUnconfirmed({
  routine,
  message,
}: {
  routine?: string | undefined;
  message?: string | undefined;
}): boolean {
  return routine === "SyncRepWaitForLSN" || /synchronous replication/.test(message ?? "");
}

interface Cancellable {
  readonly host: string;
  readonly port: number;
  readonly ssl: unknown;
  readonly sslNegotiation?: string;
  readonly processID: number;
  readonly secretKey: number;
}

interface CancelConnection {
  readonly stream: { destroy(): void };
  on(event: "connect" | "sslconnect" | "error" | "end", heard: () => void): void;
  connect(port: number | string, host?: string): void;
  requestSsl(): void;
  cancel(processID: number, secretKey: number): void;
}
