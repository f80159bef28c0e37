import type { Client } from "pg";

/** One channel for all sessions of a store: the payload says which have grown (S27). */
const CHANNEL = "holdfast";
/** What a notification can carry at most, with room to spare. */
const PAYLOAD_CHARACTERS_MAX = 7000;
/** News of many appends are one. */
const TELL_MS = 20;
const RECONNECT_MS = 100;
const RECONNECT_MS_MAX = 2000;

export interface DirectOptions {
  readonly connect: () => Promise<Client>;
  /** The key of this worker's advisory lock. */
  readonly lock: bigint;
  readonly schema: string;
  /** A session has grown, in whatever worker; null: some may have, while nobody listened. */
  readonly onNews: (id: string | null) => void;
}

/**
 * The connection of a worker that is always idle, so that its end tells at once that the worker is gone: it holds one advisory lock, by which others see that its leases are held (S26), and hears of what others have written. It comes back
 * by itself. Until it is back, leases are held by their time alone, and followers poll.
 */
export class Direct {
  readonly #options: DirectOptions;
  #client: Client | null = null;
  readonly #grown = new Map<string, number>();
  #timer: NodeJS.Timeout | null = null;
  #sending: Promise<void> | null = null;
  #connecting: Promise<void> | null = null;
  #closed = false;

  private constructor(options: DirectOptions) {
    this.#options = options;
  }

  /** Connected when it resolves. Throws what the driver throws. */
  static async open(options: DirectOptions): Promise<Direct> {
    const direct = new Direct(options);
    await direct.#connect();
    return direct;
  }

  get isConnected(): boolean {
    return this.#client !== null;
  }

  /** Tells all workers, soon, that a session has grown to this seq. */
  tell(id: string, head: number): void {
    if (this.#closed) return;
    this.#grown.set(id, head);
    if (this.#timer) return;
    this.#timer = setTimeout(() => {
      this.#timer = null;
      this.#sending = this.#send();
    }, TELL_MS);
    this.#timer.unref();
  }

  async close(): Promise<void> {
    this.#closed = true;
    if (this.#timer) clearTimeout(this.#timer);
    await this.#sending;
    await this.#send();
    await this.#connecting?.catch(() => undefined);
    const client = this.#client;
    this.#client = null;
    await client?.end();
  }

  async #send(): Promise<void> {
    const client = this.#client;
    // Whoever follows polls as well: news that cannot be sent are no loss, only late.
    if (!client || this.#grown.size === 0) {
      this.#grown.clear();
      return;
    }
    const payloads: string[] = [];
    let payload = this.#options.schema;
    for (const [id, head] of this.#grown) {
      const one = ` ${id}:${head}`;
      if (payload.length + one.length > PAYLOAD_CHARACTERS_MAX) {
        payloads.push(payload);
        payload = this.#options.schema;
      }
      payload += one;
    }
    payloads.push(payload);
    this.#grown.clear();
    try {
      for (const one of payloads) await client.query("SELECT pg_notify($1, $2)", [CHANNEL, one]);
    } catch {
      // The connection is gone; its own listener brings it back.
    }
  }

  async #connect(): Promise<void> {
    const { connect, lock, onNews, schema } = this.#options;
    const client = await connect();
    const onLost = (): void => {
      client.removeListener("end", onLost);
      client.removeListener("error", onLost);
      client.on("error", () => undefined);
      if (this.#client === client) this.#client = null;
      void client.end().catch(() => undefined);
      if (!this.#closed) this.#reconnect();
    };
    client.on("error", onLost);
    client.on("end", onLost);
    client.on("notification", ({ payload = "" }) => {
      const [of, ...grown] = payload.split(" ");
      if (of !== schema) return;
      for (const one of grown) onNews(one.slice(0, one.lastIndexOf(":")));
    });
    // Waits for whoever is just looking whether this worker lives.
    await client.query("SELECT pg_advisory_lock($1)", [String(lock)]);
    await client.query(`LISTEN ${CHANNEL}`);
    if (this.#closed) {
      await client.end();
      return;
    }
    this.#client = client;
  }

  #reconnect(): void {
    this.#connecting ??= this.#comeBack().finally(() => {
      this.#connecting = null;
    });
  }

  async #comeBack(): Promise<void> {
    for (let pauseMs = RECONNECT_MS; !this.#closed; pauseMs = Math.min(pauseMs * 2, RECONNECT_MS_MAX)) {
      await new Promise<void>((resolve) => {
        const timer = setTimeout(resolve, pauseMs);
        // A process that has nothing else to do need not live on for this.
        timer.unref();
      });
      try {
        await this.#connect();
        this.#options.onNews(null);
        return;
      } catch {
        // The server is still away.
      }
    }
  }
}
