import type { Segment } from "holdfast/internal";
import type { Durability, JournalAppended, Ledger, Prepared, Written } from "holdfast/store";
import type { Lease } from "../leases/leases.ts";
import { type HeadState, headStateOf } from "../listing/head-state.ts";
import type { Write } from "./statement-batcher.ts";
import type { Transaction } from "./transactions.ts";

/** Units that go in one statement: all of them are written, or none. */
export class WriteBatch {
  /** The newest seq before this batch. */
  readonly head: number;
  /** Restores the journal to the state before this batch. */
  readonly rewind: () => void;
  readonly segments: Segment[] = [];
  opens = false;
  /** The application's transaction that this batch is committed with. */
  transaction: Transaction | null = null;
  bytes = 0;
  /** The state after this batch. */
  headState: HeadState;
  /** The strongest durability requested. */
  durability: Durability = "process";
  #count = 0;
  readonly #chunks: Buffer[] = [];
  readonly #written: Written[] = [];
  readonly #waiting: {
    readonly appended: JournalAppended;
    readonly since: number;
    readonly resolve: (appended: JournalAppended) => void;
    readonly reject: (error: unknown) => void;
  }[] = [];

  constructor(ledger: Ledger, rewind: () => void) {
    this.head = ledger.head;
    this.rewind = rewind;
    this.headState = headStateOf(ledger);
  }

  add(ledger: Ledger, prepared: Prepared): void {
    // The bytes are valid only until the next unit is prepared.
    this.#chunks.push(Buffer.from(prepared.bytes));
    this.bytes += prepared.bytes.length;
    this.#count += prepared.last - prepared.seq + 1;
    ledger.stage(prepared);
    if (ledger.hasListeners) this.#written.push(copyOf(prepared));
    this.headState = headStateOf(ledger);
  }

  /** Appends that wait for it. */
  get units(): number {
    return this.#waiting.length;
  }

  /** Records in it, those of the journal's own included. */
  get records(): number {
    return this.#count;
  }

  /** How long ago each of its appends was called. */
  *waitedMs(): Iterable<number> {
    const now = performance.now();
    for (const { since } of this.#waiting) yield now - since;
  }

  /** Settles with the batch. */
  wait(appended: JournalAppended, durability: Durability): Promise<JournalAppended> {
    if (durability !== "process") this.durability = durability;
    const since = performance.now();
    return new Promise((resolve, reject) => this.#waiting.push({ appended, since, resolve, reject }));
  }

  write(lease: Lease): Write {
    const { head, durability, segments, opens } = this;
    const bytes = Buffer.concat(this.#chunks, this.bytes);
    return { lease, head, count: this.#count, lines: bytes.subarray(0, -1), durability, segments, opens };
  }

  /** The batch is written. */
  resolve(ledger: Ledger): void {
    for (const written of this.#written) ledger.tell(written);
    for (const { appended, resolve } of this.#waiting) resolve(appended);
  }

  reject(error: unknown): void {
    for (const { reject } of this.#waiting) reject(error);
  }
}

/** Later changes by the caller do not affect it. The records are encoded, so they are JSON. */
function copyOf({ seq, at, records }: Written): Written {
  return { seq, at, records: JSON.parse(JSON.stringify(records)) as Written["records"] };
}
