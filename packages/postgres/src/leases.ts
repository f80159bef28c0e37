import { hostname } from "node:os";
import { type HoldfastError, isHoldfastError } from "holdfast";
import { type Holder, sessionBusy, sessionNotFound } from "holdfast/store";
import type { Database, Row } from "./database.ts";
import { leaseLost } from "./failure.ts";

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

/** All workers of this process, to tell their sessions from those of other processes. */
const localOwners = new Set<string>();

/** The right to write to one session; every append checks it (S24). */
export interface Lease {
  readonly place: string;
  readonly owner: string;
  readonly fence: string;
  /** The newest seq when the lease was taken. */
  readonly head: number;
}

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
  /** Whether this worker has its direct connection now; null: it never has one. */
  #isWatched: boolean | null = null;
  #beatAt = Number.NEGATIVE_INFINITY;
  /** When the last heartbeat expires, or a little sooner. */
  #expires = { monotonicMs: 0, wallMs: 0 };
  #timer: NodeJS.Timeout | null = null;
  #beating: Promise<void> | null = null;
  #closed = false;

  constructor(database: Database, owner: string, leaseMs = LEASE_MS) {
    this.#database = database;
    this.owner = owner;
    this.#leaseMs = leaseMs;
    localOwners.add(owner);
  }

  /**
   * Reports whether the direct connection is up. While it is down, leases are held by their expiry time only, and
   * others learn that at once.
   */
  setWatched(isWatched: boolean): void {
    this.#isWatched = isWatched;
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

  unclaim(id: string): void {
    this.#busy.delete(id);
  }

  /** The error for an id that this worker already has. */
  async busy(id: string): Promise<HoldfastError> {
    const found = await this.#find(id);
    return sessionBusy(id, found?.holder ?? newHolder(""), true);
  }

  /** Takes the lease of a claimed id. Throws SESSION_BUSY with the holder, and SESSION_NOT_FOUND. */
  async take(id: string, app: string): Promise<Lease> {
    const until = performance.now() + BUSY_MS;
    for (;;) {
      const lease = await this.#tryTake(id, app, null);
      if (lease) return lease;
      const found = await this.#find(id);
      if (!found) throw sessionNotFound(id);
      if (found.isFree) {
        // Its worker is gone, or has lost its connection and is about to reconnect.
        await this.#database.pause(SECOND_LOOK_MS);
        const next = await this.#tryTake(id, app, found.owner);
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
    this.#held.delete(lease.place);
    try {
      if (isAway) await this.#release(lease);
      else await this.#database.retry("release the lease", () => this.#release(lease));
    } catch (error) {
      // A later heartbeat gives it back, or it ends with this worker.
      this.#unreleased.push(lease);
      this.#schedule();
      if (!isAway) throw error;
    } finally {
      this.#busy.delete(id);
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
   * Writes an empty message to the WAL and waits for the disk (and for a synchronous standby). Everything committed
   * before is then durable. It touches no row, so it needs no rights and waits for no lock. Throws STORE_IO.
   */
  async sync(): Promise<void> {
    await this.#database.query(
      "make the journal durable",
      `WITH ${this.#database.power} SELECT pg_logical_emit_message(true, 'holdfast', '') FROM power`,
    );
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

  async #release({ place, owner, fence }: Lease): Promise<void> {
    await this.#database.once(
      `UPDATE ${this.#database.schema}.heads SET owner = NULL, holder = NULL WHERE place = $1 AND owner = $2 AND fence = $3`,
      [place, owner, fence],
    );
  }

  /**
   * `from` null: takes only a session without an owner. Otherwise also from this owner, if it is gone. It also takes
   * leases in our own name, left over from a statement whose answer was lost: the new fence ends them.
   */
  async #tryTake(id: string, app: string, from: string | null): Promise<Lease | null> {
    const { schema } = this.#database;
    const { rows } = await this.#database.retry("take the lease", () =>
      this.#database.once(
        `UPDATE ${schema}.heads AS h SET owner = $2, fence = h.fence + 1, holder = $3
        WHERE h.id = $1 AND h.trashed IS NULL
          AND (h.owner IS NULL OR h.owner = $2 OR NOT EXISTS (SELECT FROM ${schema}.workers AS w WHERE w.owner = h.owner AND w.expires > now())
            ${from === null ? "" : `OR (h.owner = $4 AND ${isFree(schema)})`})
        RETURNING h.place, h.fence, h.head`,
        [id, this.owner, JSON.stringify(newHolder(app)), ...(from === null ? [] : [from])],
      ),
    );
    const [row] = rows;
    if (!row) return null;
    return { place: String(row["place"]), owner: this.owner, fence: String(row["fence"]), head: Number(row["head"]) };
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
    if (this.#timer || this.#closed || (this.#held.size === 0 && this.#unreleased.length === 0)) return;
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

  /**
   * One row says that this worker is alive, however many leases it has. The statement also checks all its leases,
   * without a lock.
   */
  async #beat(): Promise<void> {
    const { schema } = this.#database;
    const held = [...this.#held.values()];
    const now = performance.now();
    const expires = { monotonicMs: now + this.#ms, wallMs: Date.now() + this.#ms };
    const { rows } = await this.#database.once(
      `WITH ${this.#database.noWait}, beat AS (
        INSERT INTO ${schema}.workers (owner, expires, watched) SELECT $1, now() + $2 * interval '1 millisecond', $3 FROM power
        ON CONFLICT (owner) DO UPDATE SET expires = excluded.expires, watched = excluded.watched
      )
      SELECT h.place FROM unnest($4::uuid[], $5::bigint[]) AS mine (place, fence) JOIN ${schema}.heads AS h USING (place)
      WHERE h.owner = $1 AND h.fence = mine.fence AND h.trashed IS NULL`,
      [
        this.owner,
        this.#ms,
        this.#isWatched === true,
        held.map(({ lease }) => lease.place),
        held.map(({ lease }) => lease.fence),
      ],
    );
    this.#beatAt = now;
    this.#expires = expires;
    const ours = new Set(rows.map((row) => row["place"]));
    for (const { lease, onLost, id } of held) {
      if (ours.has(lease.place) || this.#held.get(lease.place)?.lease !== lease) continue;
      this.#held.delete(lease.place);
      onLost(leaseLost(id));
    }
  }
}

export function newHolder(app: string): Holder {
  return { pid: process.pid, host: hostname(), app: displayName(app), since: new Date().toISOString() };
}

/** A name for people, without characters that the database cannot store. */
export function displayName(app: string): string {
  return app.replaceAll("\0", "\ufffd").toWellFormed();
}

export function holderOf(row: Row): Holder {
  // An application's own pool may return JSON as text.
  const found = (
    typeof row["holder"] === "string" ? JSON.parse(row["holder"]) : (row["holder"] ?? {})
  ) as Partial<Holder>;
  return { pid: found.pid ?? 0, host: found.host ?? "", app: found.app ?? "", since: found.since ?? "" };
}
