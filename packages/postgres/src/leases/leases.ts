import { randomUUID } from "node:crypto";
import { hostname } from "node:os";
import { type HoldfastError, isHoldfastError } from "holdfast";
import { sessionBusy, sessionNotFound } from "holdfast/internal";
import type { Holder } from "holdfast/store";
import type { Database, Row } from "../connection/database.ts";
import { displayName } from "../connection/pools.ts";
import { leaseLost } from "../failure.ts";
import { SharedSync } from "./shared-sync.ts";

/** A worker without a heartbeat for this long loses its leases. */
export const LEASE_MS = 15_000;
/** A worker whose lock is free gets this long to reconnect, or to send a heartbeat, before it counts as gone. */
const SECOND_LOOK_MS = 400;
/** The server needs a moment to notice that a worker died: keep trying for this long before giving up (S14). */
const BUSY_MS = 400;
const LOOK_AGAIN_MS = 50;
/**
 * A worker without its direct connection sends heartbeats more often, so that its sessions are free sooner if it dies.
 */
const UNWATCHED_MS = 3000;

/** A statement that was given up may still arrive: for this long, a lease that it takes is given back. */
const LATE_MS = 600_000;
/** A server that crashes, or fails over, may forget what was released this long before. */
const FORGOTTEN_MS = 60_000;

/** All workers of this process, to tell their sessions from those of other processes. */
const localOwners = new Set<string>();

/** The right to write to one session; every append checks it (S24). */
export interface Lease {
  readonly place: string;
  readonly owner: string;
  readonly fence: string;
  /** The newest seq when the lease was taken. */
  readonly head: number;
  /** Which call took it. */
  readonly attempt: string;
}

/** A call whose lease nobody uses: if it is there all the same, it is given back. */
interface Unused {
  readonly id: string;
  readonly attempt: string;
  readonly untilMs: number;
}

/** Runs a heartbeat over a connection that no append uses. Null: there is none now. */
export type BeatOver = (
  text: string,
  values: unknown[],
  answerMs: number,
) => Promise<{ readonly rows: readonly Row[] }> | null;

interface HeldLease {
  readonly id: string;
  readonly lease: Lease;
  readonly onLost: (error: HoldfastError) => void;
}

/** Advisory locks have 64 bits: the last 64 of the owner's UUID, which are random. */
export function lockKey(owner: string): bigint {
  return BigInt.asIntN(64, BigInt(`0x${owner.replaceAll("-", "").slice(16)}`));
}

/** The same in SQL, for a column. */
export const lockOf = (column: string): string =>
  `('x' || right(replace(${column}::text, '-', ''), 16))::bit(64)::bigint`;

/**
 * A condition on a row `h` with an `owner`. A worker without a direct connection has no lock: its leases only expire.
 * The order matters: a lock is tried only if there is one, and not on a standby, which does not know the primary's
 * locks.
 */
export function isFree(schema: string): string {
  return `CASE WHEN h.owner IS NULL THEN true
    ELSE coalesce((SELECT CASE WHEN w.expires <= now() THEN true WHEN w.watched AND NOT pg_is_in_recovery() THEN pg_try_advisory_xact_lock_shared(${lockOf("w.owner")}) ELSE false END
      FROM ${schema}.workers AS w WHERE w.owner = h.owner), true) END`;
}

/**
 * The leases of one worker. A lease is free when it expires, or when its owner's advisory lock is free, because that
 * lock ends with the owner's connection (S26).
 */
export class Leases {
  readonly owner: string;
  readonly #database: Database;
  readonly #beats: Database;
  readonly #now: () => number;
  readonly #leaseMs: number;
  /**
   * By id: sessions that this worker has, is taking or is giving back. Any other lease in its name is left over from a
   * statement whose answer was lost.
   */
  readonly #busy = new Set<string>();
  /** By place. */
  readonly #held = new Map<string, HeldLease>();
  /** Leases that could not be given back because the server was away. */
  readonly #unreleased: Lease[] = [];
  /** Attempts whose lease is in use, or being taken. */
  readonly #attempts = new Set<string>();
  /** Those of which a statement got no answer. */
  readonly #unanswered = new Set<string>();
  /** The same, for as long as such a statement may still arrive, and take a lease. */
  #late: Unused[] = [];
  /** Leases that were given back lately. */
  #released: Unused[] = [];
  #beatOver: BeatOver = () => null;
  readonly #sync: SharedSync;
  /** Whether this worker has its direct connection now; null: it never has one. */
  #isWatched: boolean | null = null;
  #beatAt = Number.NEGATIVE_INFINITY;
  /** When the last heartbeat expires, or a little sooner. */
  #expires = { monotonicMs: 0, wallMs: 0 };
  #timer: NodeJS.Timeout | null = null;
  #beating: Promise<void> | null = null;
  #closed = false;

  /** `beats`: the same database, with connections that no append uses. */
  /** `now`: the clock of the store's records. */
  constructor(database: Database, beats: Database, owner: string, leaseMs = LEASE_MS, now: () => number = Date.now) {
    this.#now = now;
    this.#database = database;
    this.#beats = beats;
    this.owner = owner;
    this.#leaseMs = leaseMs;
    this.#sync = new SharedSync(database);
    localOwners.add(owner);
  }

  /** From now on heartbeats go over this connection while it is up: in the pool they would wait behind appends. */
  beatOver(beatOver: BeatOver): void {
    this.#beatOver = beatOver;
  }

  /**
   * Reports whether the direct connection is up. While it is down, leases are held by their expiry time only, and
   * others learn that at once.
   */
  setWatched(isWatched: boolean): void {
    this.#isWatched = isWatched;
    // The server may have crashed, or another one may have taken its place.
    if (isWatched) this.#late.push(...this.#released.splice(0));
    if (this.#timer) clearTimeout(this.#timer);
    this.#timer = null;
    if (this.#beatAt !== Number.NEGATIVE_INFINITY) void this.#beatSoon();
  }

  /** Others may take this worker for dead: its last heartbeat has expired. The wall clock counts sleep, too. */
  get isOverdue(): boolean {
    return performance.now() > this.#expires.monotonicMs || Date.now() > this.#expires.wallMs;
  }

  /** Reserves the id for this worker until it is released. False: it already is. */
  async claim(id: string): Promise<boolean> {
    if (this.#busy.has(id)) return false;
    this.#busy.add(id);
    try {
      // Others must find that this worker is alive.
      if (performance.now() - this.#beatAt > this.#ms / 2)
        await this.#database.retry("send a heartbeat", () => this.#beat());
      return true;
    } catch (error) {
      this.#busy.delete(id);
      throw error;
    }
  }

  /** `lease`: it ended with the session. */
  unclaim(id: string, lease?: Lease): void {
    this.#busy.delete(id);
    if (lease) this.#attempts.delete(lease.attempt);
  }

  /** The error for an id that this worker already has. */
  async busy(id: string): Promise<HoldfastError> {
    const found = await this.#find(id);
    return sessionBusy(id, found?.holder ?? newHolder(""), true);
  }

  /** Takes the lease of a claimed id. Throws SESSION_BUSY with the holder, and SESSION_NOT_FOUND. */
  take(id: string, app: string): Promise<Lease> {
    return this.withAttempt(id, (attempt) => this.#take(id, app, attempt));
  }

  /**
   * Runs `work`, which takes a lease under this attempt, unless it returns null. A statement of it that was given up
   * may still arrive at the server: if nobody uses the lease by then, it is given back.
   */
  async withAttempt<T>(id: string, work: (attempt: string) => Promise<T>): Promise<T> {
    const attempt = randomUUID();
    this.#attempts.add(attempt);
    let lease: T | null = null;
    try {
      lease = await work(attempt);
      return lease;
    } catch (error) {
      if (isHoldfastError(error, "STORE_IO")) this.#unanswered.add(attempt);
      throw error;
    } finally {
      if (lease === null) this.#attempts.delete(attempt);
      if (this.#unanswered.delete(attempt)) {
        this.#late.push({ id, attempt, untilMs: performance.now() + LATE_MS });
        this.#schedule();
      }
    }
  }

  async #take(id: string, app: string, attempt: string): Promise<Lease> {
    const until = performance.now() + BUSY_MS;
    for (;;) {
      const lease = await this.#tryTake(id, app, attempt, null);
      if (lease) return lease;
      const found = await this.#find(id);
      if (!found) throw sessionNotFound(id);
      if (found.isFree) {
        // Its worker is gone, or has lost its connection and is about to reconnect.
        await this.#database.pause(SECOND_LOOK_MS);
        const next = await this.#tryTake(id, app, attempt, found.owner);
        if (next) return next;
      }
      const isHere = found.owner !== null && localOwners.has(found.owner);
      if (isHere || performance.now() > until) throw sessionBusy(id, found.holder, isHere);
      await this.#database.pause(LOOK_AGAIN_MS);
    }
  }

  /** Who is writing to it now, or null. */
  async holder(id: string): Promise<Holder | null> {
    const found = await this.#find(id);
    return found && !found.isFree ? found.holder : null;
  }

  /** Keeps the lease alive. Calls `onLost` if another worker takes it. */
  keep(id: string, lease: Lease, onLost: (error: HoldfastError) => void): void {
    this.#held.set(lease.place, { id, lease, onLost });
    this.#schedule();
  }

  /** `isAway`: the server was away just now; do not wait for it again. */
  async release(id: string, lease: Lease, isAway = false): Promise<void> {
    // The session may have been taken again, after this lease was lost.
    if (this.#held.get(lease.place)?.lease === lease) this.#held.delete(lease.place);
    this.#released.push({ id, attempt: lease.attempt, untilMs: performance.now() + FORGOTTEN_MS });
    try {
      if (isAway) await this.#release(lease);
      else await this.#database.retry("release the lease", () => this.#release(lease));
    } catch (error) {
      // A later heartbeat gives it back, or it ends with this worker.
      this.#unreleased.push(lease);
      this.#schedule();
      if (!isAway) throw error;
    } finally {
      this.unclaim(id, lease);
    }
  }

  /** Whether the lease is still ours, and the current head. Null: the session is gone. */
  async inspect(lease: Lease): Promise<{ readonly isOurs: boolean; readonly head: number } | null> {
    const { rows } = await this.#database.query(
      "find who has the session",
      `SELECT head, owner IS NOT DISTINCT FROM $2 AND fence = $3 AND trashed IS NULL AS ours FROM ${this.#database.schema}.heads WHERE place = $1`,
      [lease.place, lease.owner, lease.fence],
    );
    return rows[0] ? { isOurs: rows[0]["ours"] === true, head: Number(rows[0]["head"]) } : null;
  }

  /**
   * Makes everything committed before durable (`SharedSync`), and returns what is there of this session then: the
   * server may have crashed in between, and have lost what it had committed. Throws STORE_IO.
   */
  async makeDurable(lease: Lease): Promise<{ readonly isOurs: boolean; readonly head: number } | null> {
    await this.#sync.run();
    return this.inspect(lease);
  }

  async close(): Promise<void> {
    this.#closed = true;
    if (this.#timer) clearTimeout(this.#timer);
    this.#timer = null;
    this.#held.clear();
    await this.#beating;
    localOwners.delete(this.owner);
  }

  /** One at a time; each is forgotten only when it is back. */
  async #releaseRest(): Promise<void> {
    for (let lease = this.#unreleased[0]; lease; lease = this.#unreleased[0]) {
      await this.#release(lease);
      this.#unreleased.shift();
    }
  }

  /** Waits for no standby: one that does not answer must not keep a session from being closed. */
  async #release({ place, owner, fence }: Lease): Promise<void> {
    await this.#database.once(
      `WITH ${this.#database.local} UPDATE ${this.#database.schema}.heads SET owner = NULL, holder = NULL FROM power
      WHERE place = $1 AND owner = $2 AND fence = $3`,
      [place, owner, fence],
    );
  }

  /** Gives back leases that statements took after we had given them up. */
  async #releaseLate(): Promise<void> {
    const now = performance.now();
    this.#released = this.#released.filter(({ untilMs }) => untilMs > now);
    this.#late = this.#late.filter(({ untilMs }) => untilMs > now);
    const late = this.#late.filter(({ attempt }) => !this.#attempts.has(attempt));
    if (late.length === 0) return;
    await this.#database.once(
      `WITH ${this.#database.local} UPDATE ${this.#database.schema}.heads AS h SET owner = NULL, holder = NULL
      FROM power, unnest($2::uuid[], $3::uuid[]) AS late (id, attempt)
      WHERE h.id = late.id AND h.attempt = late.attempt AND h.owner = $1 AND h.trashed IS NULL`,
      [this.owner, late.map(({ id }) => id), late.map(({ attempt }) => attempt)],
    );
  }

  /**
   * `from` null: takes only a session without an owner. Otherwise also from this owner, if it is gone. It also takes
   * leases in our own name, left over from a statement whose answer was lost: the new fence ends them. But not from a
   * later statement of the same attempt: one that arrives late must not end the lease that its repetition took. It does
   * not wait for the disk: a session is shown only after a sync.
   */
  async #tryTake(id: string, app: string, attempt: string, from: string | null): Promise<Lease | null> {
    const { schema } = this.#database;
    const send = () =>
      this.#database.once(
        `WITH ${this.#database.noWait} UPDATE ${schema}.heads AS h SET owner = $2, fence = h.fence + 1, holder = $3, attempt = $4 FROM power
        WHERE h.id = $1 AND h.trashed IS NULL AND h.attempt IS DISTINCT FROM $4
          AND (h.owner IS NULL OR h.owner = $2 OR NOT EXISTS (SELECT FROM ${schema}.workers AS w WHERE w.owner = h.owner AND w.expires > now())
            ${from === null ? "" : `OR (h.owner = $5 AND ${isFree(schema)})`})
        RETURNING h.place, h.fence, h.head`,
        [id, this.owner, JSON.stringify(newHolder(app, this.#now())), attempt, ...(from === null ? [] : [from])],
      );
    const { rows } = await this.#database.retry("take the lease", () =>
      send().catch((error: unknown) => {
        this.#unanswered.add(attempt);
        throw error;
      }),
    );
    const row = rows[0] ?? (this.#unanswered.has(attempt) ? await this.#taken(id, attempt) : undefined);
    if (!row) return null;
    const { owner } = this;
    return { place: String(row["place"]), owner, fence: String(row["fence"]), head: Number(row["head"]), attempt };
  }

  /** The session, if a statement of this attempt whose answer was lost took its lease. */
  async #taken(id: string, attempt: string): Promise<Row | undefined> {
    const { rows } = await this.#database.query(
      "take the lease",
      `SELECT place, fence, head FROM ${this.#database.schema}.heads WHERE id = $1 AND owner = $2 AND attempt = $3 AND trashed IS NULL`,
      [id, this.owner, attempt],
    );
    return rows[0];
  }

  async #find(
    id: string,
  ): Promise<{ readonly owner: string | null; readonly holder: Holder; readonly isFree: boolean } | null> {
    const { schema } = this.#database;
    const { rows } = await this.#database.query(
      "find who has the session",
      `SELECT h.owner, h.holder, ${isFree(schema)} AS free FROM ${schema}.heads AS h WHERE h.id = $1 AND h.trashed IS NULL`,
      [id],
    );
    const [row] = rows;
    if (!row) return null;
    return { owner: (row["owner"] as string | null) ?? null, holder: holderOf(row), isFree: row["free"] === true };
  }

  #schedule(): void {
    const isIdle = this.#held.size === 0 && this.#unreleased.length === 0 && this.#late.length === 0;
    if (this.#timer || this.#closed || isIdle) return;
    this.#timer = setTimeout(() => {
      this.#timer = null;
      void this.#beatSoon();
    }, this.#ms / 3);
    this.#timer.unref();
  }

  get #ms(): number {
    return this.#isWatched === false ? Math.min(UNWATCHED_MS, this.#leaseMs) : this.#leaseMs;
  }

  /**
   * Never rejects: while the server is away, nobody can take a lease either, and writes are guarded by the fence, not
   * by the clock.
   */
  #beatSoon(): Promise<void> {
    const before = this.#beating;
    const beating = (async () => {
      await before;
      if (this.#closed) return;
      try {
        await this.#beat();
        await this.#releaseRest();
        await this.#releaseLate();
      } catch (error) {
        if (isHoldfastError(error)) throw error;
      }
    })().finally(() => {
      if (this.#beating === beating) this.#beating = null;
      this.#schedule();
    });
    this.#beating = beating;
    return beating;
  }

  async #sendBeat(text: string, values: unknown[]): Promise<readonly Row[]> {
    try {
      // Short, so that there is time left to use another connection.
      const answered = this.#beatOver(text, values, Math.ceil(this.#ms / 4));
      if (answered) return (await answered).rows;
    } catch {
      // That connection is lost, or slow.
    }
    return (await this.#beats.once(text, values)).rows;
  }

  /**
   * One row says that this worker is alive, however many leases it has. The statement also checks all its leases,
   * without a lock.
   */
  async #beat(): Promise<void> {
    const { schema } = this.#database;
    const held = [...this.#held.values()];
    const now = performance.now();
    const expires = { monotonicMs: now + this.#ms, wallMs: Date.now() + this.#ms };
    const text = `WITH ${this.#database.noWait}, beat AS (
        INSERT INTO ${schema}.workers (owner, expires, watched) SELECT $1, now() + $2 * interval '1 millisecond', $3 FROM power
        ON CONFLICT (owner) DO UPDATE SET expires = excluded.expires, watched = excluded.watched
      )
      SELECT h.place FROM unnest($4::uuid[], $5::bigint[]) AS mine (place, fence) JOIN ${schema}.heads AS h USING (place)
      WHERE h.owner = $1 AND h.fence = mine.fence AND h.trashed IS NULL`;
    const values = [
      this.owner,
      this.#ms,
      this.#isWatched === true,
      held.map(({ lease }) => lease.place),
      held.map(({ lease }) => lease.fence),
    ];
    const rows = await this.#sendBeat(text, values);
    this.#beatAt = now;
    this.#expires = expires;
    this.#database.hasWritten = true;
    const ours = new Set(rows.map((row) => row["place"]));
    for (const { lease, onLost, id } of held) {
      if (ours.has(lease.place) || this.#held.get(lease.place)?.lease !== lease) continue;
      this.#held.delete(lease.place);
      onLost(leaseLost(id));
    }
  }
}

export function newHolder(app: string, nowMs: number = Date.now()): Holder {
  return { pid: process.pid, host: hostname(), app: displayName(app), since: new Date(nowMs).toISOString() };
}

export function holderOf(row: Row): Holder {
  // An application's own pool may return JSON as text.
  const found = (
    typeof row["holder"] === "string" ? JSON.parse(row["holder"]) : (row["holder"] ?? {})
  ) as Partial<Holder>;
  return { pid: found.pid ?? 0, host: found.host ?? "", app: found.app ?? "", since: found.since ?? "" };
}
