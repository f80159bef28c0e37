import { isHoldfastError } from "holdfast";
import { afterCrash, compare, emptyLedger, type Ledger, type RecoveredSession } from "./ledger.ts";
import { padding } from "./workload.ts";

export type Ledgers = ReadonlyMap<number, Ledger>;

/** `none`: nothing may fail. `once`: what failed is retried, and must then succeed. `for ever`: what fails is left. */
export type FaultMode = "none" | "once" | "for ever";

/** What the store has promised about each session, and every answer that broke the contract. */
export class Book {
  readonly problems: string[] = [];
  readonly #ledgers: Map<number, Ledger>;
  faults: FaultMode;

  constructor(ledgers: Ledgers, faults: FaultMode) {
    this.#ledgers = new Map(ledgers);
    this.faults = faults;
  }

  get ledgers(): Ledgers {
    return this.#ledgers;
  }

  ledger(session: number): Ledger {
    return this.#ledgers.get(session) ?? emptyLedger;
  }

  update(session: number, change: (ledger: Ledger) => Ledger): void {
    this.#ledgers.set(session, change(this.ledger(session)));
  }

  say(session: number, problem: string): void {
    this.problems.push(`session ${session}: ${problem}`);
  }

  /** Compares what was found with what is promised. From then on the ledger knows every outcome. */
  judge(session: number, found: RecoveredSession | null): void {
    this.update(session, () => this.look(session, found));
  }

  /** The same for a reader, which settles nothing. */
  look(session: number, found: RecoveredSession | null): Ledger {
    const { problems, ledger } = compare(this.ledger(session), found, padding);
    for (const problem of problems) this.say(session, problem);
    return ledger;
  }

  /**
   * Memory pressure dropped what failed syncs had left in the cache: data that was never durable may be gone, in every
   * session.
   */
  cacheDropped(): void {
    for (const session of this.#ledgers.keys()) this.update(session, (ledger) => afterCrash(ledger, "power"));
  }

  /** Every failure is a HoldfastError that is true about sessions, and none occurs without a fault. */
  failed(what: string, error: unknown, expected = false): void {
    if (!isHoldfastError(error)) {
      const words = error instanceof Error ? (error.stack ?? error.message) : String(error);
      this.problems.push(`${what} failed with an error that is not a HoldfastError: ${words}`);
      return;
    }
    // Nobody else is there, and each call knows whether its session exists: only the disk can have failed.
    const lie = (["SESSION_BUSY", "SESSION_NOT_FOUND", "SESSION_EXISTS"] as const).some((code) => code === error.code);
    if (lie) this.problems.push(`${what} failed with the wrong error: ${error.code}: ${error.message}`);
    else if (this.faults === "none" && !expected) {
      this.problems.push(`${what} failed without a fault: ${error.code}: ${error.message}`);
    }
  }

  /** Runs something that may meet a fault. In a run with one fault it is retried, and must then succeed. */
  async tries(what: string, act: () => Promise<unknown>): Promise<boolean> {
    for (let tries = 0; ; tries++) {
      try {
        await act();
        return true;
      } catch (error) {
        this.failed(tries === 0 ? what : `${what}, again`, error);
        if (this.faults !== "once") return false;
        if (tries === 0) continue;
        this.problems.push(`${what} still fails though the fault is over: ${error}`);
        return false;
      }
    }
  }
}
