import { hostname } from "node:os";
import { type Holder, type HoldfastError, isHoldfastError } from "holdfast";
import { sessionBusy, sessionNotFound } from "holdfast/kit";
import type { Database, Row } from "./database.ts";
import { leaseLost } from "./failure.ts";

/** A worker that does not say that it lives loses its leases after this time. */
export const LEASE_MS = 15_000;
/** A worker whose lock is free gets this time to come back, or to say that it lives all the same, before it counts as gone. */
const SECOND_LOOK_MS = 400;
/** The server takes a moment to see that a worker has died: a taker looks again for this long before it gives up (S14). */
const BUSY_MS = 400;
const LOOK_AGAIN_MS = 50;
/** A worker that has lost its direct connection says more often that it lives, so that its sessions do not wait long if it dies just then. */
const UNWATCHED_MS = 3000;

/** All workers that live in this process, so that a session that one of them has is told from another process's. */
const here = new Set<string>();

/** The right to write to one session: compared in every append (S24). */
export interface Lease {
  readonly place: string;
  readonly owner: string;
  readonly fence: string;
  /** The newest seq when it was taken. */
  readonly head: number;
}

interface Held {
  readonly id: string;
  readonly lease: Lease;
  readonly onLost: (error: HoldfastError) => void;
}

/** Advisory locks have 64 bits: the last of the owner's UUID, which are random. */
export function lockKey(owner: string): bigint {
  return BigInt.asIntN(64, BigInt(`0x${owner.replaceAll("-", "").slice(16)}`));
}

/** The same in SQL, of a column. */
const LOCK_OF = (column: string): string => `('x' || right(replace(${column}::text, '-', ''), 16))::bit(64)::bigint`;

/** As a condition on a row `h` that has an `owner`. A worker without a direct connection has no lock: only time frees what it had. In this order: a lock is tried only where there is one, and not on a standby, which knows none of the primary's. */
export function isFree(schema: string): string {
  return `CASE WHEN h.owner IS NULL THEN true
    ELSE coalesce((SELECT CASE WHEN w.expires <= now() THEN true WHEN w.watched AND NOT pg_is_in_recovery() THEN pg_try_advisory_xact_lock_shared(${LOCK_OF("w.owner")}) ELSE false END
      FROM ${schema}.workers AS w WHERE w.owner = h.owner), true) END`;
}

/** The leases of one worker. A lease is free when its owner's time is over, or when its owner's advisory lock can be had, since that one ends with its owner's connection (S26). */
export class Leases {
  readonly owner: string;
  readonly #database: Database;
  readonly #leaseMs: number;
  /** By id: those that this worker has, is taking or is giving back. Whatever else is in its name is a left-over, whose answer was lost. */
  readonly #busy = new Set<string>();
  /** By place. */
  readonly #held = new Map<string, Held>();
  /** Those that could not be given back because the server was away. */
  readonly #unreleased: Lease[] = [];
  /** This worker has a direct connection now, which ends with it; null: it never has one. */
  #isWatched: boolean | null = null;
  #beatAt = Number.NEGATIVE_INFINITY;
  #timer: NodeJS.Timeout | null = null;
  #beating: Promise<void> | null = null;
  #closed = false;

  constructor(database: Database, owner: string, leaseMs = LEASE_MS) {
    this.#database = database;
    this.owner = owner;
    this.#leaseMs = leaseMs;
    here.add(owner);
  }

  /** Whether the direct connection is there. While it is not, leases are held by their time alone, and others are told so at once. */
  setWatched(isWatched: boolean): void {
    this.#isWatched = isWatched;
    if (this.#timer) clearTimeout(this.#timer);
    this.#timer = null;
    if (this.#beatAt !== Number.NEGATIVE_INFINITY) void this.#beatSoon();
  }

  /** The id is this worker's business from now on, until it is released. False: it is so already. */
  async claim(id: string): Promise<boolean> {
    if (this.#busy.has(id)) return false;
    this.#busy.add(id);
    try {
      // Whoever looks must find that this worker lives.
      if (performance.now() - this.#beatAt > this.#ms / 2)
        await this.#database.retry("say that this worker lives", () => this.#beat());
      return true;
    } catch (error) {
      this.#busy.delete(id);
      throw error;
    }
  }

  unclaim(id: string): void {
    this.#busy.delete(id);
  }

  /** Of one that is this worker's business already. */
  async busy(id: string): Promise<HoldfastError> {
    const found = await this.#find(id);
    return sessionBusy(id, found?.holder ?? holderNow(""), true);
  }

  /** Of an id that was claimed. Throws SESSION_BUSY, with who has it, and SESSION_NOT_FOUND. */
  async take(id: string, app: string): Promise<Lease> {
    const until = performance.now() + BUSY_MS;
    for (;;) {
      const lease = await this.#taken(id, app, null);
      if (lease) return lease;
      const found = await this.#find(id);
      if (!found) throw sessionNotFound(id);
      if (found.isFree) {
        // Its worker is gone; or has lost its connection, and is about to come back.
        await this.#database.pause(SECOND_LOOK_MS);
        const next = await this.#taken(id, app, found.owner);
        if (next) return next;
      }
      const isHere = found.owner !== null && here.has(found.owner);
      if (isHere || performance.now() > until) throw sessionBusy(id, found.holder, isHere);
      await this.#database.pause(LOOK_AGAIN_MS);
    }
  }

  /** Who writes to it now; null if nobody does. */
  async holder(id: string): Promise<Holder | null> {
    const found = await this.#find(id);
    return found && !found.isFree ? found.holder : null;
  }

  /** `onLost` is called if another worker has taken it. */
  keep(id: string, lease: Lease, onLost: (error: HoldfastError) => void): void {
    this.#held.set(lease.place, { id, lease, onLost });
    this.#schedule();
  }

  /** `isAway`: the server was away just now, and is not waited for once more. */
  async release(id: string, lease: Lease, isAway = false): Promise<void> {
    this.#held.delete(lease.place);
    try {
      if (isAway) await this.#release(lease);
      else await this.#database.retry("give the lease back", () => this.#release(lease));
    } catch (error) {
      // It goes back with a later heartbeat, or with this worker's end.
      this.#unreleased.push(lease);
      this.#schedule();
      if (!isAway) throw error;
    } finally {
      this.#busy.delete(id);
    }
  }

  /** How the session stands: is the lease still ours, and where is its head? Null: it is gone. */
  async standing(lease: Lease): Promise<{ readonly isOurs: boolean; readonly head: number } | null> {
    const { rows } = await this.#database.query(
      "look who has the session",
      `SELECT head, owner IS NOT DISTINCT FROM $2 AND fence = $3 AND trashed IS NULL AS ours FROM ${this.#database.schema}.heads WHERE place = $1`,
      [lease.place, lease.owner, lease.fence],
    );
    return rows[0] ? { isOurs: rows[0]["ours"] === true, head: Number(rows[0]["head"]) } : null;
  }

  /**
   * Writes something of no meaning to the log of the database, and waits for the disk (and for a synchronous standby): all that was committed before is durable then. It touches no row, so it needs no right to any, and waits for
   * nobody. Throws STORE_IO.
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
    here.delete(this.owner);
  }

  /** One after the other, and each only forgotten when it is back. */
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
   * `from`: null, for a session that nobody has; or else only from this owner, if it is gone. What stands in our own name is taken too: an attempt whose answer was lost has taken it, or could not give it back; the new fence ends that.
   */
  async #taken(id: string, app: string, from: string | null): Promise<Lease | null> {
    const { schema } = this.#database;
    const { rows } = await this.#database.retry("take the lease", () =>
      this.#database.once(
        `UPDATE ${schema}.heads AS h SET owner = $2, fence = h.fence + 1, holder = $3
        WHERE h.id = $1 AND h.trashed IS NULL
          AND (h.owner IS NULL OR h.owner = $2 OR NOT EXISTS (SELECT FROM ${schema}.workers AS w WHERE w.owner = h.owner AND w.expires > now())
            ${from === null ? "" : `OR (h.owner = $4 AND ${isFree(schema)})`})
        RETURNING h.place, h.fence, h.head`,
        [id, this.owner, JSON.stringify(holderNow(app)), ...(from === null ? [] : [from])],
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
      "look who has the session",
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

  /** Never rejects: while the server is away nobody can take a lease either, and the fence guards what is written, not the clock. */
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

  /** One row says that this worker lives, whatever it holds; and all that it holds is looked at, without a lock. */
  async #beat(): Promise<void> {
    const { schema } = this.#database;
    const held = [...this.#held.values()];
    const now = performance.now();
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
    const ours = new Set(rows.map((row) => row["place"]));
    for (const { lease, onLost, id } of held) {
      if (ours.has(lease.place) || this.#held.get(lease.place)?.lease !== lease) continue;
      this.#held.delete(lease.place);
      onLost(leaseLost(id));
    }
  }
}

export function holderNow(app: string): Holder {
  return { pid: process.pid, host: hostname(), app: shown(app), since: new Date().toISOString() };
}

/** A name for people, as the database can hold it. */
export function shown(app: string): string {
  return app.replaceAll("\0", "\ufffd").toWellFormed();
}

export function holderOf(row: Row): Holder {
  // An application's own pool may leave JSON as text.
  const found = (
    typeof row["holder"] === "string" ? JSON.parse(row["holder"]) : (row["holder"] ?? {})
  ) as Partial<Holder>;
  return { pid: found.pid ?? 0, host: found.host ?? "", app: found.app ?? "", since: found.since ?? "" };
}
