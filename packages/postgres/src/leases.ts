import { hostname } from "node:os";
import { setTimeout as sleep } from "node:timers/promises";
import type { Holder, HoldfastError } from "holdfast";
import { sessionBusy, sessionNotFound } from "holdfast/kit";
import type { Database, Row } from "./database.ts";
import { leaseLost } from "./failure.ts";

/** A lease that nobody extends is free after this time. */
export const LEASE_MS = 15_000;
/** A worker whose lock is free gets this time to come back, before it counts as gone. */
const SECOND_LOOK_MS = 300;

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

/** Advisory locks have 64 bits: the last of the owner's UUID, which are random. */
export function lockKey(owner: string): bigint {
  return BigInt.asIntN(64, BigInt(`0x${owner.replaceAll("-", "").slice(16)}`));
}

/** The same in SQL, of a column. */
const LOCK_OF = (column: string): string => `('x' || right(replace(${column}::text, '-', ''), 16))::bit(64)::bigint`;

/** As a condition on a row `h` of `heads`. A worker without a direct connection has no lock: only time frees what it had. */
export const IS_FREE = `h.owner IS NULL OR h.expires <= now() OR (h.watched AND pg_try_advisory_xact_lock_shared(${LOCK_OF("h.owner")}))`;

/** The leases of one worker. A lease is free when it has expired, or when its owner's advisory lock can be had, since that one ends with its owner's connection (S26). */
export class Leases {
  readonly owner: string;
  /** This worker has a direct connection, which ends with it. */
  readonly isWatched: boolean;
  readonly #database: Database;
  readonly #held = new Map<
    string,
    { readonly lease: Lease; readonly onLost: (error: HoldfastError) => void; id: string }
  >();
  readonly #leaseMs: number;
  #timer: NodeJS.Timeout | null = null;
  #beating: Promise<void> | null = null;

  constructor(
    database: Database,
    owner: string,
    { isWatched, leaseMs = LEASE_MS }: { isWatched: boolean; leaseMs?: number },
  ) {
    this.isWatched = isWatched;
    this.#database = database;
    this.owner = owner;
    this.#leaseMs = leaseMs;
    here.add(owner);
  }

  get ms(): number {
    return this.#leaseMs;
  }

  /** Throws SESSION_BUSY, with who has it, and SESSION_NOT_FOUND. */
  async take(id: string, app: string): Promise<Lease> {
    const lease = await this.#taken(id, app, "h.owner IS NULL OR h.expires <= now()");
    if (lease) return lease;
    const found = await this.#find(id);
    if (!found) throw sessionNotFound(id);
    const busy = sessionBusy(id, found.holder, found.owner !== null && here.has(found.owner));
    if (!found.isFree) throw busy;
    // Its worker is gone; or has lost its connection, and is about to come back.
    await sleep(SECOND_LOOK_MS);
    const next = await this.#taken(id, app, IS_FREE, found.owner);
    if (next) return next;
    const now = await this.#find(id);
    throw now ? sessionBusy(id, now.holder, now.owner !== null && here.has(now.owner)) : sessionNotFound(id);
  }

  /** Who writes to it now; null if nobody does. */
  async holder(id: string): Promise<Holder | null> {
    const found = await this.#find(id);
    return found && !found.isFree ? found.holder : null;
  }

  /** From now on it is extended, until it is released. `onLost` is called if another worker has it. */
  keep(id: string, lease: Lease, onLost: (error: HoldfastError) => void): void {
    this.#held.set(lease.place, { lease, onLost, id });
    this.#schedule();
  }

  async release({ place, owner, fence }: Lease): Promise<void> {
    this.#held.delete(place);
    await this.#database.query(
      "give the lease back",
      `UPDATE ${this.#database.schema}.heads SET owner = NULL, expires = NULL, holder = NULL WHERE place = $1 AND owner = $2 AND fence = $3`,
      [place, owner, fence],
    );
  }

  async close(): Promise<void> {
    if (this.#timer) clearTimeout(this.#timer);
    this.#timer = null;
    this.#held.clear();
    await this.#beating;
    here.delete(this.owner);
  }

  /** `from`: only from this owner; null: whoever had it. */
  async #taken(id: string, app: string, condition: string, from: string | null = null): Promise<Lease | null> {
    const { rows } = await this.#database.query(
      "take the lease",
      `UPDATE ${this.#database.schema}.heads AS h
      SET owner = $2, fence = h.fence + 1, expires = now() + $3 * interval '1 millisecond', holder = $4, watched = $5
      WHERE id = $1 AND trashed IS NULL AND ($6::uuid IS NULL OR h.owner = $6) AND (${condition})
      RETURNING place, fence, head`,
      [id, this.owner, this.#leaseMs, JSON.stringify(holderNow(app)), this.isWatched, from],
    );
    const [row] = rows;
    if (!row) return null;
    return { place: String(row["place"]), owner: this.owner, fence: String(row["fence"]), head: Number(row["head"]) };
  }

  async #find(
    id: string,
  ): Promise<{ readonly owner: string | null; readonly holder: Holder; readonly isFree: boolean } | null> {
    const { rows } = await this.#database.query(
      "look who has the session",
      `SELECT owner, holder, (${IS_FREE}) AS free FROM ${this.#database.schema}.heads AS h WHERE id = $1 AND trashed IS NULL`,
      [id],
    );
    const [row] = rows;
    if (!row) return null;
    return { owner: (row["owner"] as string | null) ?? null, holder: holderOf(row), isFree: row["free"] === true };
  }

  #schedule(): void {
    if (this.#timer || this.#held.size === 0) return;
    this.#timer = setTimeout(() => {
      this.#timer = null;
      this.#beating = this.#beat().finally(() => {
        this.#beating = null;
        this.#schedule();
      });
    }, this.#leaseMs / 3);
    this.#timer.unref();
  }

  /** One statement extends them all. Never rejects: while the server is away nobody can take a lease either. */
  async #beat(): Promise<void> {
    const held = [...this.#held.values()];
    if (held.length === 0) return;
    try {
      const { rows } = await this.#database.once(
        `UPDATE ${this.#database.schema}.heads AS h SET expires = now() + $4 * interval '1 millisecond'
        FROM unnest($1::uuid[], $2::bigint[]) AS mine (place, fence)
        WHERE h.place = mine.place AND h.owner = $3 AND h.fence = mine.fence RETURNING h.place`,
        [held.map(({ lease }) => lease.place), held.map(({ lease }) => lease.fence), this.owner, this.#leaseMs],
      );
      const extended = new Set(rows.map((row) => row["place"]));
      for (const { lease, onLost, id } of held) {
        if (extended.has(lease.place) || this.#held.get(lease.place)?.lease !== lease) continue;
        this.#held.delete(lease.place);
        onLost(leaseLost(id));
      }
    } catch {
      // Away, or going away: the fence guards what is written, not the clock.
    }
  }
}

export function holderNow(app: string): Holder {
  return { pid: process.pid, host: hostname(), app, since: new Date().toISOString() };
}

export function holderOf(row: Row): Holder {
  const found = (row["holder"] ?? {}) as Partial<Holder>;
  return { pid: found.pid ?? 0, host: found.host ?? "", app: found.app ?? "", since: found.since ?? "" };
}
