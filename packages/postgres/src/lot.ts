import type { Durability, JournalAppended, Json } from "holdfast";
import type { Ledger, Prepared, Segment } from "holdfast/kit";
import type { Write } from "./batch.ts";
import type { Lease } from "./leases.ts";

/** Where a journal stands, as its row in the catalogue says it. */
export interface Standing {
  readonly head: number;
  readonly at: string;
  /** What lists are ordered by. */
  readonly stamp: string;
  readonly row: Json;
}

/** Units that go in one statement: written together, or none of them. */
export class Lot {
  /** The newest seq before it. */
  readonly head: number;
  /** Brings the journal back to where it was before. */
  readonly rewind: () => void;
  readonly segments: Segment[] = [];
  opens = false;
  bytes = 0;
  /** After it. */
  standing: Standing;
  /** The strongest that is asked for. */
  durability: Durability = "process";
  #count = 0;
  readonly #chunks: Buffer[] = [];
  readonly #waiting: {
    readonly appended: JournalAppended;
    readonly resolve: (appended: JournalAppended) => void;
    readonly reject: (error: unknown) => void;
  }[] = [];

  constructor(ledger: Ledger, rewind: () => void) {
    this.head = ledger.head;
    this.rewind = rewind;
    this.standing = standingOf(ledger);
  }

  add(ledger: Ledger, prepared: Prepared): void {
    // The bytes are good until the next unit is prepared.
    this.#chunks.push(Buffer.from(prepared.bytes));
    this.bytes += prepared.bytes.length;
    this.#count += prepared.last - prepared.seq + 1;
    ledger.commit(prepared);
    this.standing = standingOf(ledger);
  }

  /** Settled with the lot. */
  wait(appended: JournalAppended, durability: Durability): Promise<JournalAppended> {
    if (durability !== "process") this.durability = durability;
    return new Promise((resolve, reject) => this.#waiting.push({ appended, resolve, reject }));
  }

  write(lease: Lease): Write {
    const { head, durability, segments, opens } = this;
    const bytes = Buffer.concat(this.#chunks, this.bytes);
    return { lease, head, count: this.#count, lines: bytes.subarray(0, -1), durability, segments, opens };
  }

  resolve(): void {
    for (const { appended, resolve } of this.#waiting) resolve(appended);
  }

  reject(error: unknown): void {
    for (const { reject } of this.#waiting) reject(error);
  }
}

export function standingOf({ head, at, stamp, row }: Ledger): Standing {
  return { head, at, stamp, row };
}
