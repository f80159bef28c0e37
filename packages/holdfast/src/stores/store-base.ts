import type { Durability, FollowOptions, Journal, Recovery, WriterOptions } from "../journal/contract.ts";
import { Ledger } from "../journal/ledger.ts";
import { openedRecord } from "../journal/lifecycle.ts";
import { OrderClock } from "../journal/order.ts";
import type { NewRecord } from "../journal/record.ts";
import { storeClosed } from "../journal/refusals.ts";
import type { JournalStoreOptions } from "./schemes.ts";

export interface StoreBaseOptions extends JournalStoreOptions {
  /** Milliseconds since 1970; default `Date.now`. */
  readonly clock?: () => number;
}

/** How long a deleted session stays in the trash, unless the caller of `gc` says otherwise. */
export const GRACE_MS = 7 * 24 * 3600 * 1000;

/** What the stores of one process share: their clock, their journals, and what happens when they are closed. */
export abstract class StoreBase<O extends StoreBaseOptions, J extends Journal> {
  abstract readonly url: string;
  protected readonly options: O;
  protected readonly clock: OrderClock;
  /** The journals that this store has opened, by session. */
  protected readonly journals = new Map<string, J>();
  /** Aborts when the store is closed, which ends its followers. */
  readonly #ending = new AbortController();
  #closing: Promise<void> | null = null;

  constructor(options: O) {
    this.options = options;
    this.clock = OrderClock.of(options.clock);
  }

  close(): Promise<void> {
    this.#closing ??= this.#close();
    return this.#closing;
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close();
  }

  /** Called once, when all journals are closed. */
  protected async end(): Promise<void> {}

  /** The journal is closed. Its session may have been opened again, after its lease was lost. */
  protected forget(journal: J): void {
    if (this.journals.get(journal.id) === journal) this.journals.delete(journal.id);
  }

  protected untilClosed({ signal }: FollowOptions): AbortSignal {
    return signal ? AbortSignal.any([signal, this.#ending.signal]) : this.#ending.signal;
  }

  protected get durability(): Durability {
    return this.options.durability ?? "power";
  }

  /** The name that a writer goes by. */
  protected appOf({ app }: WriterOptions = {}): string {
    return app ?? this.options.app ?? "holdfast";
  }

  protected opened(options: WriterOptions, { unclean, cutBytes }: Pick<Recovery, "unclean" | "cutBytes">): NewRecord {
    return openedRecord({ app: this.appOf(options), unclean, cutBytes, extra: options.opened });
  }

  protected ledger(): Ledger {
    return new Ledger({ clock: this.clock, summariser: this.options.summariser });
  }

  protected now(): number {
    return (this.options.clock ?? Date.now)();
  }

  protected assertOpen(): void {
    if (this.#closing) throw storeClosed(this.url);
  }

  async #close(): Promise<void> {
    const results = await Promise.allSettled([...this.journals.values()].map((journal) => journal.close()));
    this.#ending.abort();
    await this.end();
    for (const result of results) if (result.status === "rejected") throw result.reason;
  }
}
