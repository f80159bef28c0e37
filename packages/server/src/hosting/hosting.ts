import type { Reading } from "holdfast";
import { refuse } from "../access/request-error.ts";
import type { Chat, ChatOptions } from "../contract/host.ts";
import type { ServedHost } from "../contract/served-host.ts";
import { ChatFeed } from "../events/chat-feed.ts";
import type { FollowParts } from "../events/follow-session.ts";
import { RecordHub } from "../events/record-hub.ts";

export interface HostingOptions {
  /** A session that nobody uses or follows is closed after this time, so that other processes can open it. */
  readonly idleMs?: number;
}

interface Hub {
  readonly hub: Promise<RecordHub>;
  followers: number;
  since: number;
}

interface Open {
  readonly chat: Chat;
  readonly feed: ChatFeed;
  /** Requests that are working with it. */
  uses: number;
  idleSince: number;
}

const IDLE_MS = 60_000;
/** A reader that comes back within this time finds the newest records in memory. */
const HUB_LINGER_MS = 30_000;
/** How many sessions that nobody here has open are kept in memory. */
const READINGS_MAX = 4;

/** The sessions that this server has open. A client that leaves changes nothing here: turns go on. */
export class Hosting {
  readonly host: ServedHost;
  readonly #open = new Map<string, Open>();
  readonly #opening = new Map<string, Promise<Open>>();
  readonly #closing = new Map<string, Promise<void>>();
  readonly #watchers = new Map<string, Set<() => void>>();
  readonly #hubs = new Map<string, Hub>();
  /** The last sessions that were read while somebody follows them, the newest last. */
  readonly #readings = new Map<string, Reading<unknown>>();
  /** What requests are doing with open sessions. */
  readonly #work = new Set<Promise<unknown>>();
  readonly #underWay = new Map<string, Promise<Reading<unknown>>>();
  readonly #idleMs: number;
  readonly #sweep: NodeJS.Timeout;
  #isStopping = false;

  constructor(host: ServedHost, { idleMs = IDLE_MS }: HostingOptions = {}) {
    this.host = host;
    this.#idleMs = idleMs;
    this.#sweep = setInterval(() => void this.#closeUnused(), Math.max(100, Math.min(idleMs, 5000))).unref();
  }

  get isStopping(): boolean {
    return this.#isStopping;
  }

  /** How many turns run. */
  get running(): number {
    return [...this.#open.values()].filter(({ chat }) => chat.state.status === "running").length;
  }

  feed(id: string): ChatFeed | null {
    return this.#open.get(id)?.feed ?? null;
  }

  /** Does something with a session that is open in this server; opens it if necessary. */
  async use<T>(id: string, work: (chat: Chat) => T | Promise<T>, options?: ChatOptions): Promise<T> {
    const open = await this.#opened(id, options);
    open.uses++;
    try {
      const result = await work(open.chat);
      open.feed.sync();
      return result;
    } finally {
      open.uses--;
      open.idleSince = performance.now();
    }
  }

  /** The same for work that starts a turn. Throws SERVER_STOPPING; what has begun by then is waited for. */
  async start<T>(id: string, work: (chat: Chat) => Promise<T>): Promise<T> {
    this.assertAccepting();
    return this.use(id, async (chat) => {
      // The server may have been told to stop while the session was opened.
      this.assertAccepting();
      const begun = work(chat);
      const settled = begun.then(ignore, ignore);
      this.#work.add(settled);
      void settled.then(() => this.#work.delete(settled));
      return await begun;
    });
  }

  /** Throws SERVER_STOPPING. Nothing that starts a turn may begin any more. */
  assertAccepting(): void {
    if (this.#isStopping)
      throw refuse(
        "SERVER_STOPPING",
        "The server is stopping and starts no new turns. Nothing was recorded. Try again when it is back.",
      );
  }

  /** Takes a chat that the host has just created or opened. */
  keep(chat: Chat): ChatFeed {
    const known = this.#open.get(chat.id);
    if (known?.chat === chat) return known.feed;
    const feed = new ChatFeed(chat);
    this.#open.set(chat.id, { chat, feed, uses: 0, idleSince: performance.now() });
    this.#announce(chat.id);
    return feed;
  }

  /** Closes a session for this server. Throws TURN_OPEN while it has something to do. */
  async close(id: string, isBusy: () => Error): Promise<void> {
    const open = this.#open.get(id);
    if (!open) return;
    if (open.uses > 0 || !isIdle(open.chat)) throw isBusy();
    await this.#close(id, open);
  }

  /**
   * A session as it is now, and a record that it shows. From memory if this server has it open, or if nothing was
   * recorded since it was last read: a long one takes a while to read. Requests at the same time share one reading.
   */
  async reading(id: string): Promise<{ readonly reading: Reading<unknown>; readonly cursor: string | null }> {
    const { hub, release } = await this.followed(id);
    release();
    const open: Reading<unknown> | null = this.#open.has(id) ? this.host.sessions.live(id) : null;
    if (open) return { reading: open, cursor: hub.cursor };
    const known = this.#readings.get(id);
    if (known && known.cursor === hub.cursor && (await this.#isHeldAsIn(known)))
      return { reading: known, cursor: known.cursor };
    const underWay = this.#underWay.get(id) ?? this.host.sessions.read(id).finally(() => this.#underWay.delete(id));
    this.#underWay.set(id, underWay);
    const reading = await underWay;
    this.#remember(id, reading);
    return { reading, cursor: reading.cursor ?? null };
  }

  /** A process that is killed writes nothing: a reading that shows it at work is out of date all the same. */
  async #isHeldAsIn({ id, holder }: Reading<unknown>): Promise<boolean> {
    const now = await this.host.sessions.holder(id);
    return now?.pid === holder?.pid && now?.host === holder?.host && now?.since === holder?.since;
  }

  #remember(id: string, reading: Reading<unknown>): void {
    this.#readings.delete(id);
    this.#readings.set(id, reading);
    const [oldest] = this.#readings.keys();
    if (this.#readings.size > READINGS_MAX) this.#readings.delete(oldest!);
  }

  /** Follows the records of a session, and its feed. Call `release` when done. */
  async followed(id: string): Promise<FollowParts & { release(): void }> {
    const entry = this.#hubFor(id);
    entry.followers++;
    const release = (): void => {
      entry.followers--;
      entry.since = performance.now();
    };
    try {
      const hub = await entry.hub;
      if (hub.isOver) {
        // Deleted, and restored since.
        if (this.#hubs.get(id) === entry) this.#hubs.delete(id);
        release();
        return await this.followed(id);
      }
      return { hub, feed: () => this.feed(id), watch: (listener) => this.#watch(id, listener), release };
    } catch (error) {
      release();
      if (this.#hubs.get(id) === entry) this.#hubs.delete(id);
      throw error;
    }
  }

  /**
   * No new turns. Running ones are handed over to the next start: what they are doing gets `graceMs` to end. When
   * `hurry` fires, they are recorded as aborted by "server" instead. Questions to a person stay open.
   */
  async stop(graceMs: number, hurry?: AbortSignal): Promise<void> {
    this.#isStopping = true;
    clearInterval(this.#sweep);
    const end = performance.now() + graceMs;
    const grace = Promise.withResolvers<void>();
    const timer = setTimeout(() => grace.resolve(), graceMs);
    hurry?.addEventListener("abort", () => grace.resolve(), { once: true });
    // A turn that was accepted is recorded as started before it is handed over.
    await Promise.race([Promise.allSettled([...this.#opening.values(), ...this.#work]), grace.promise]);
    clearTimeout(timer);
    const leftMs = Math.max(0, end - performance.now());
    await Promise.all(
      [...this.#open].map(async ([id, { feed }]) => {
        await this.host.handOver(id, leftMs, hurry).catch(ignore);
        feed.close();
        this.#open.delete(id);
      }),
    );
    for (const { hub } of this.#hubs.values()) void hub.then((one) => one.stop(), ignore);
    this.#hubs.clear();
  }

  async #opened(id: string, options?: ChatOptions): Promise<Open> {
    await this.#closing.get(id)?.catch(ignore);
    const open = this.#open.get(id);
    if (open) return open;
    const pending = this.#opening.get(id);
    if (pending) return pending;
    this.assertAccepting();
    const opening = this.host
      .open(id, options)
      .then((chat) => {
        this.keep(chat);
        return this.#open.get(id)!;
      })
      .finally(() => this.#opening.delete(id));
    this.#opening.set(id, opening);
    return opening;
  }

  #hubFor(id: string): Hub {
    const known = this.#hubs.get(id);
    if (known) return known;
    const hub = this.host.sessions.read(id).then(
      (reading) => {
        this.#remember(id, reading);
        return new RecordHub(this.host.sessions, id, reading.cursor ?? "0");
      },
      // A session in an unknown dialect can still be followed.
      async (error: unknown) => {
        if (!(await this.host.sessions.has(id))) throw error;
        return new RecordHub(this.host.sessions, id, "0");
      },
    );
    hub.catch(ignore);
    const entry = { hub, followers: 0, since: performance.now() };
    this.#hubs.set(id, entry);
    return entry;
  }

  async #closeUnused(): Promise<void> {
    const now = performance.now();
    for (const [id, open] of [...this.#open]) {
      if (open.uses > 0 || open.feed.followers > 0 || !isIdle(open.chat)) open.idleSince = now;
      else if (now - open.idleSince >= this.#idleMs) await this.#close(id, open).catch(ignore);
    }
    for (const [id, entry] of [...this.#hubs]) {
      const hub = await entry.hub.catch(() => null);
      if (entry.followers > 0 && hub && !hub.isOver) continue;
      if (entry.followers === 0 && now - entry.since < HUB_LINGER_MS && hub && !hub.isOver) continue;
      if (entry.followers === 0) hub?.stop();
      this.#readings.delete(id);
      if (this.#hubs.get(id) === entry) this.#hubs.delete(id);
    }
  }

  async #close(id: string, open: Open): Promise<void> {
    this.#open.delete(id);
    open.feed.close();
    const closing = open.chat.close().finally(() => this.#closing.delete(id));
    this.#closing.set(id, closing);
    await closing;
  }

  #watch(id: string, listener: () => void): () => void {
    const watchers = this.#watchers.get(id) ?? new Set();
    this.#watchers.set(id, watchers);
    watchers.add(listener);
    return () => {
      watchers.delete(listener);
      if (watchers.size === 0) this.#watchers.delete(id);
    };
  }

  #announce(id: string): void {
    for (const listener of this.#watchers.get(id) ?? []) listener();
  }
}

/** Nothing runs and nobody is asked. Queued prompts are in the journal. */
function isIdle({ state: { status, asks } }: Chat): boolean {
  return (status === "idle" || status === "interrupted") && asks.length === 0;
}

/** For work whose failure the journal or the chat's state reports. */
function ignore(): void {}
