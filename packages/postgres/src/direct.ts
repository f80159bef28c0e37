import { setTimeout as sleep } from "node:timers/promises";
import type { Client, QueryResult } from "pg";
import type { Row } from "./database.ts";
import { destroy } from "./pools.ts";

/** One channel for all sessions of a store: the payload says which have grown (S27). */
const CHANNEL = "holdfast";
/** What a notification can carry at most, with room to spare. */
const PAYLOAD_CHARACTERS_MAX = 7000;
/** News of many appends are one. */
const TELL_MS = 20;
/** Short for the first minute, since a worker whose lock is away while the server is there may lose its leases; longer when the server stays away. */
const RECONNECT_MS = 50;
const RECONNECT_MS_SOON = 250;
const RECONNECT_MS_MAX = 2000;
const SOON_MS = 60_000;
/** How often it is tried whether the connection still is one: an idle one that is half open looks like any other. */
const PROBE_MS = 10_000;

/** So that the server, too, finds out within seconds that a worker's machine is gone (ignored on a socket of the same machine), and does not end what is idle on purpose. */
const KEEPALIVE =
  "SELECT set_config('tcp_keepalives_idle', '5', false), set_config('tcp_keepalives_interval', '2', false), set_config('tcp_keepalives_count', '3', false), set_config('idle_session_timeout', '0', false)";

/** There is a pooler in between: the connection to the server is not this worker's own, and a lock on it would be whoever's uses it next. */
export class NotDirect extends Error {}

/** What that means, for a person. */
export function behindPooler(name: string): string {
  return `${name} is a pooler, and nothing says where the server itself is: a dead worker's sessions are free only when its time is over, and followers are up to a second late. Add "?direct=host:port" to the address (docs/guides/many-machines.md).`;
}

export interface DirectOptions {
  /** Connected, with a time limit. */
  readonly connect: () => Promise<Client>;
  /** The key of this worker's advisory lock. */
  readonly lock: bigint;
  readonly schema: string;
  readonly answerMs: number;
  /** A session has grown, in whatever worker; null: some may have, while nobody listened. */
  readonly onNews: (id: string | null) => void;
  /** Whether the lock is held. */
  readonly onState: (isConnected: boolean) => void;
  /** Another way to tell, while this one is not there. */
  readonly tellOtherwise: (channel: string, payload: string) => Promise<void>;
}

/**
 * The connection of a worker that is always idle, so that its end tells at once that the worker is gone: it holds one advisory lock, by which others see that its leases are held (S26), and hears of what others have written. It comes back
 * by itself. Until it is back, leases are held by their time alone, and followers poll.
 */
export class Direct {
  readonly #options: DirectOptions;
  #client: Client | null = null;
  readonly #grown = new Map<string, number>();
  #tellTimer: NodeJS.Timeout | null = null;
  #probeTimer: NodeJS.Timeout | null = null;
  #asked: Promise<unknown> = Promise.resolve();
  #sending: Promise<void> | null = null;
  #connecting: Promise<void> | null = null;
  readonly #closing = new AbortController();

  constructor(options: DirectOptions) {
    this.#options = options;
  }

  /** Connected when it resolves. Throws what the driver throws, and `NotDirect`. */
  async open(): Promise<void> {
    await this.#connect();
  }

  /** Tells all workers, soon, that a session has grown to this seq. */
  tell(id: string, head: number): void {
    if (this.#closing.signal.aborted) return;
    this.#grown.set(id, head);
    this.#tellTimer ??= setTimeout(() => {
      this.#tellTimer = null;
      this.#sendSoon();
    }, TELL_MS);
    this.#tellTimer.unref();
  }

  async close(): Promise<void> {
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

  #sendSoon(): void {
    this.#sending ??= this.#send().finally(() => {
      this.#sending = null;
    });
  }

  /** Never rejects: whoever follows polls as well, so news that cannot be sent are no loss, only late. */
  async #send(): Promise<void> {
    while (this.#grown.size > 0) {
      const payloads = payloadsOf(this.#options.schema, this.#grown);
      this.#grown.clear();
      for (const payload of payloads) {
        try {
          if (this.#client) await this.#query(this.#client, "SELECT pg_notify($1, $2)", [CHANNEL, payload]);
          else await this.#options.tellOtherwise(CHANNEL, payload);
        } catch {
          // The connection is gone; its own listener brings it back.
        }
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
    // It stays: a connection that ends may report that more than once.
    client.on("error", onLost);
    client.on("end", onLost);
    client.on("notification", ({ payload = "" }) => {
      const [of, ...grown] = payload.split(" ");
      if (of !== encodeURIComponent(schema)) return;
      for (const one of grown) onNews(one.slice(0, one.lastIndexOf(":")));
    });
    try {
      await this.#assertDirect(client);
      await this.#query(client, KEEPALIVE);
      await this.#query(client, `LISTEN ${CHANNEL}`);
      // Waits for whoever is just looking whether this worker lives.
      await this.#query(client, "SELECT pg_advisory_lock($1)", [String(lock)]);
    } catch (error) {
      await this.#end(client);
      throw error;
    }
    if (isLost) throw new Error("Connection terminated unexpectedly");
    this.#client = client;
    onState(true);
    this.#probe(client, onLost);
  }

  /** Who answers a statement must be who answered the call: a pooler answers that by itself, with a number of its own. */
  async #assertDirect(client: Client): Promise<void> {
    const { processID } = client as { readonly processID?: number | null };
    const { rows } = await this.#query(client, "SELECT pg_backend_pid() AS pid");
    if (Number(rows[0]?.["pid"]) !== processID) throw new NotDirect("there is a pooler in between");
  }

  #probe(client: Client, onLost: () => void): void {
    this.#probeTimer = setTimeout(async () => {
      if (this.#client !== client) return;
      try {
        await this.#query(client, "SELECT 1");
        this.#probe(client, onLost);
      } catch {
        // It did not answer in time, or is gone: both are the end of it.
        onLost();
      }
    }, PROBE_MS);
    this.#probeTimer.unref();
  }

  /** One after the other: the driver has no queue of its own any more. */
  #query(client: Client, text: string, values: unknown[] = []): Promise<QueryResult<Row>> {
    const statement = { text, values, query_timeout: this.#options.answerMs };
    const answered = this.#asked.then(() => client.query<Row>(statement));
    this.#asked = answered.catch(() => undefined);
    return answered;
  }

  /** Never rejects, and does not wait for a server that says nothing. */
  async #end(client: Client): Promise<void> {
    const patience = new AbortController();
    const { signal } = patience;
    const tired = sleep(this.#options.answerMs, undefined, { signal }).then(() => destroy(client));
    try {
      await Promise.race([client.end(), tired]);
    } catch {
      // It was gone before.
    } finally {
      tired.catch(() => undefined);
      patience.abort();
    }
  }

  #reconnect(): void {
    this.#connecting ??= this.#comeBack().finally(() => {
      this.#connecting = null;
    });
  }

  async #comeBack(): Promise<void> {
    const { signal } = this.#closing;
    const since = performance.now();
    const longest = (): number => (performance.now() - since < SOON_MS ? RECONNECT_MS_SOON : RECONNECT_MS_MAX);
    for (let pauseMs = RECONNECT_MS; !signal.aborted; pauseMs = Math.min(pauseMs * 1.5, longest())) {
      try {
        // A process that has nothing else to do need not live on for this.
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

/** `schema id:head id:head …`, as many in each as fit. A name of a schema may have spaces. */
function payloadsOf(schema: string, grown: ReadonlyMap<string, number>): string[] {
  const name = encodeURIComponent(schema);
  const payloads: string[] = [];
  let payload = name;
  for (const [id, head] of grown) {
    const one = ` ${id}:${head}`;
    if (payload.length + one.length > PAYLOAD_CHARACTERS_MAX) {
      payloads.push(payload);
      payload = name;
    }
    payload += one;
  }
  payloads.push(payload);
  return payloads;
}
