import { setTimeout as sleep } from "node:timers/promises";
import type { Client, QueryResult } from "pg";
import { isGivenUp } from "../failure.ts";
import { KEEPALIVE } from "./backend.ts";
import type { Row } from "./database.ts";
import { destroy } from "./pools.ts";

/** Appends within this time share one notification, and all sessions that grow meanwhile share one statement. */
const TELL_MS = 20;
const TOLD_MAX = 1000;
/**
 * Short for the first minute: a worker without its lock may lose its leases while the server is up. Longer if the
 * server stays away.
 */
const RECONNECT_MS = 50;
const RECONNECT_MS_SOON = 250;
const RECONNECT_MS_MAX = 2000;
const SOON_MS = 60_000;
/** How often to test the connection, if it is not used: a half-open idle connection looks like any other. */
const PROBE_MS = 10_000;
/** Followers come and go: keep listening for a moment after the last one. */
const UNLISTEN_MS = 1000;

/** A connection that does not take a notification for this long is lost. */
const NOTIFY_MS = 3000;
/** How long a statement on this connection waits for a lock: heartbeats wait behind it. */
const LOCK_MS = 1000;

/**
 * The server must not end a connection that is idle on purpose, and nothing on it waits for a disk or a standby: a
 * notification commits like any other statement.
 */
const SETTINGS = { ...KEEPALIVE, idle_session_timeout: "0", synchronous_commit: "off", lock_timeout: String(LOCK_MS) };

/**
 * There is a pooler in between: the server connection is not this worker's own, and its next user would hold the lock.
 */
export class PoolerDetected extends Error {}

export interface DirectOptions {
  /** Returns a connected client. Has a time limit. */
  readonly connect: () => Promise<Client>;
  /** The key of this worker's advisory lock. */
  readonly lock: bigint;
  readonly schema: string;
  readonly answerMs: number;
  /** A session has grown, in any worker. Null: any session may have, while we were not listening. */
  readonly onNews: (id: string | null) => void;
  /** Reports whether the lock is held. */
  readonly onState: (isConnected: boolean) => void;
  /** Sends notifications while this connection is down. */
  readonly notifyThroughPool: (text: string, values: unknown[]) => Promise<unknown>;
}

/**
 * A worker's direct connection to the server. It is always idle, so when it ends, others know at once that the worker
 * is gone: it holds one advisory lock, which shows that the worker's leases are held (S26). It also receives
 * notifications of what others write to the sessions that are followed here. It reconnects by itself; meanwhile, leases
 * are held by their expiry time only, and followers poll.
 */
export class Direct {
  readonly #options: DirectOptions;
  #client: Client | null = null;
  readonly #grown = new Set<string>();
  #tellTimer: NodeJS.Timeout | null = null;
  readonly #followed = new Set<string>();
  /** The sessions to whose channels this connection listens, or is about to. */
  readonly #heard = new Set<string>();
  #unlistenTimer: NodeJS.Timeout | null = null;
  #usedAt = 0;
  #probeTimer: NodeJS.Timeout | null = null;
  #lastQuery: Promise<unknown> = Promise.resolve();
  #sending: Promise<void> | null = null;
  #connecting: Promise<void> | null = null;
  readonly #closing = new AbortController();

  constructor(options: DirectOptions) {
    this.#options = options;
  }

  /** Connects. Throws driver errors, and `PoolerDetected`. */
  async open(): Promise<void> {
    await this.#connect();
  }

  /** The key of this worker's advisory lock. */
  get lock(): bigint {
    return this.#options.lock;
  }

  get isConnected(): boolean {
    return this.#client !== null;
  }

  /** Throws a driver error if the connection is down. */
  async test(): Promise<void> {
    await this.#query(this.#connected, "SELECT 1");
  }

  get #connected(): Client {
    if (!this.#client) throw new Error("Connection terminated unexpectedly");
    return this.#client;
  }

  /** Whether a notification that `send` sends on this channel arrives in time. Throws driver errors. */
  async hears(channel: string, send: () => Promise<void>): Promise<boolean> {
    const client = this.#connected;
    const { promise, resolve } = Promise.withResolvers<boolean>();
    const onNotification = (heard: { readonly channel: string }): void => {
      if (heard.channel === channel) resolve(true);
    };
    client.on("notification", onNotification);
    const timer = setTimeout(() => resolve(false), this.#options.answerMs);
    try {
      await this.#query(client, `LISTEN ${channel}`);
      await send();
      const isHeard = await promise;
      await this.#query(client, `UNLISTEN ${channel}`);
      return isHeard;
    } finally {
      clearTimeout(timer);
      client.off("notification", onNotification);
    }
  }

  /** Notifies all who follow the session, soon, that it has grown. */
  tell(id: string): void {
    if (this.#closing.signal.aborted) return;
    this.#grown.add(id);
    this.#tellTimer ??= setTimeout(() => {
      this.#tellTimer = null;
      this.#sendSoon();
    }, TELL_MS);
    this.#tellTimer.unref();
  }

  /** Whether anybody here wants to hear what others write to this session. */
  setFollowed(id: string, isFollowed: boolean): void {
    if (isFollowed) this.#followed.add(id);
    else this.#followed.delete(id);
    if (isFollowed) void this.#listen([id]);
    else this.#unlistenTimer ??= setTimeout(() => void this.#unlisten(), UNLISTEN_MS).unref();
  }

  /**
   * Runs a short statement on this connection, where it waits behind no append. Null: the connection is down. One that
   * does not answer in time is lost.
   */
  query(text: string, values: unknown[], longestMs: number): Promise<QueryResult<Row>> | null {
    const client = this.#client;
    if (!client) return null;
    const answerMs = Math.min(longestMs, this.#options.answerMs);
    return this.#query(client, text, values, answerMs).catch((error: unknown) => {
      if (isGivenUp(error)) destroy(client);
      throw error;
    });
  }

  async close(): Promise<void> {
    if (this.#unlistenTimer) clearTimeout(this.#unlistenTimer);
    if (this.#tellTimer) clearTimeout(this.#tellTimer);
    this.#sendSoon();
    await this.#sending;
    this.#closing.abort();
    await this.#connecting;
    const client = this.#client;
    this.#client = null;
    if (this.#probeTimer) clearTimeout(this.#probeTimer);
    if (client) await this.#end(client);
  }

  /** Never rejects: without notifications, followers poll. */
  async #listen(ids: readonly string[]): Promise<void> {
    const client = this.#client;
    const unheard = ids.filter((id) => !this.#heard.has(id));
    if (!client || unheard.length === 0) return;
    for (const id of unheard) this.#heard.add(id);
    try {
      await this.#query(client, listenStatements("LISTEN", unheard));
      // Sessions may have grown before it took effect.
      for (const id of unheard) this.#options.onNews(id);
    } catch {
      // The connection is gone; its error listener reconnects.
    }
  }

  async #unlisten(): Promise<void> {
    this.#unlistenTimer = null;
    const client = this.#client;
    const left = [...this.#heard].filter((id) => !this.#followed.has(id));
    if (!client || left.length === 0) return;
    for (const id of left) this.#heard.delete(id);
    try {
      await this.#query(client, listenStatements("UNLISTEN", left));
    } catch {
      // The same.
    }
  }

  #sendSoon(): void {
    this.#sending ??= this.#send().finally(() => {
      this.#sending = null;
    });
  }

  /** Never rejects: followers poll as well, so a lost notification only makes them late. */
  async #send(): Promise<void> {
    while (this.#grown.size > 0) {
      const told = [...this.#grown].slice(0, TOLD_MAX);
      for (const id of told) this.#grown.delete(id);
      const text = "SELECT pg_notify(channel, $2) FROM unnest($1::text[]) AS channel";
      const values = [told.map(channelOf), this.#options.schema];
      try {
        await (this.query(text, values, NOTIFY_MS) ?? this.#options.notifyThroughPool(text, values));
      } catch {
        // The connection is gone; its error listener reconnects.
      }
    }
  }

  async #connect(): Promise<void> {
    const { connect, lock, onNews, onState, schema } = this.#options;
    const client = await connect();
    let isLost = false;
    const onLost = (): void => {
      if (isLost) return;
      isLost = true;
      void this.#end(client);
      if (this.#client !== client) return;
      this.#client = null;
      onState(false);
      if (!this.#closing.signal.aborted) this.#reconnect();
    };
    // The listener stays: a connection can report its end more than once.
    client.on("error", onLost);
    client.on("end", onLost);
    client.on("notification", ({ channel, payload }) => {
      if (payload === schema) onNews(channel.slice(CHANNEL.length));
    });
    try {
      await this.#assertDirect(client);
      const columns = Object.entries(SETTINGS).map(([name, value]) => `set_config('${name}', '${value}', false)`);
      await this.#query(client, `SELECT ${columns.join(", ")}`);
      // Waits while another worker tests whether this one is alive.
      await this.#query(client, "SELECT pg_advisory_lock($1)", [String(lock)]);
    } catch (error) {
      await this.#end(client);
      throw error;
    }
    if (isLost) throw new Error("Connection terminated unexpectedly");
    this.#client = client;
    onState(true);
    this.#heard.clear();
    void this.#listen([...this.#followed]);
    this.#probe(client, onLost);
  }

  /**
   * The process that answers a statement must be the one that accepted the connection. A pooler accepts connections
   * itself, with its own process id.
   */
  async #assertDirect(client: Client): Promise<void> {
    const { processID } = client as { readonly processID?: number | null };
    const { rows } = await this.#query(client, "SELECT pg_backend_pid() AS pid");
    if (Number(rows[0]?.["pid"]) !== processID) throw new PoolerDetected("the connection goes through a pooler");
  }

  #probe(client: Client, onLost: () => void): void {
    this.#probeTimer = setTimeout(async () => {
      if (this.#client !== client) return;
      try {
        if (performance.now() - this.#usedAt >= PROBE_MS) await this.#query(client, "SELECT 1");
        this.#probe(client, onLost);
      } catch {
        // No answer in time, or the connection is gone: both mean it is lost.
        onLost();
      }
    }, PROBE_MS);
    this.#probeTimer.unref();
  }

  /** One query at a time: the driver no longer has its own queue. */
  #query(
    client: Client,
    text: string,
    values: unknown[] = [],
    answerMs = this.#options.answerMs,
  ): Promise<QueryResult<Row>> {
    const statement = { text, values, query_timeout: answerMs };
    const answered = this.#lastQuery.then(() => client.query<Row>(statement));
    this.#lastQuery = answered.then(
      () => {
        this.#usedAt = performance.now();
      },
      () => undefined,
    );
    return answered;
  }

  /** Never rejects, and does not wait for a silent server. */
  async #end(client: Client): Promise<void> {
    const timer = new AbortController();
    const { signal } = timer;
    const timeout = sleep(this.#options.answerMs, undefined, { signal }).then(() => destroy(client));
    try {
      await Promise.race([client.end(), timeout]);
    } catch {
      // It was already gone.
    } finally {
      timeout.catch(() => undefined);
      timer.abort();
    }
  }

  #reconnect(): void {
    this.#connecting ??= this.#keepReconnecting().finally(() => {
      this.#connecting = null;
    });
  }

  async #keepReconnecting(): Promise<void> {
    const { signal } = this.#closing;
    const since = performance.now();
    const longest = (): number => (performance.now() - since < SOON_MS ? RECONNECT_MS_SOON : RECONNECT_MS_MAX);
    for (let pauseMs = RECONNECT_MS; !signal.aborted; pauseMs = Math.min(pauseMs * 1.5, longest())) {
      try {
        // A process with nothing else to do may exit during this wait.
        await sleep(pauseMs, undefined, { signal, ref: false });
        await this.#connect();
        this.#options.onNews(null);
        return;
      } catch {
        // The server is still away, or the store is closed.
      }
    }
  }
}

/** Each session has a channel, so that nobody hears of the others. The payload is the schema: ids can be in several. */
const CHANNEL = "holdfast_";

function channelOf(id: string): string {
  return `${CHANNEL}${id}`;
}

function listenStatements(what: "LISTEN" | "UNLISTEN", ids: readonly string[]): string {
  return ids.map((id) => `${what} "${channelOf(id)}"`).join("; ");
}
