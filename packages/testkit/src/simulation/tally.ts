import type { SimulationOptions } from "./options.ts";

export interface Failure {
  readonly what: string;
  readonly problems: readonly string[];
  /** The command that repeats it. */
  readonly repeat: string;
}

export interface Report {
  /** Disks that were recovered and checked, and runs with a fault. */
  readonly states: number;
  /** Steps of the crash-free run at which the disk changed. */
  readonly moments: number;
  readonly failures: readonly Failure[];
}

/** The result of a case; some check several states. */
interface Outcome {
  readonly problems: readonly string[];
  readonly states?: number;
  /** What was done on top of the case when it failed. */
  readonly afterwards?: string | null;
}

/** A simulation waits only for the disk: what takes this long never ends. */
const HANG_MS = 20_000;

/** Counts states, collects failures, and knows when to stop. */
export class Tally {
  states = 0;
  readonly #failures: Failure[] = [];
  readonly #options: SimulationOptions;
  readonly #mode: string;

  constructor(options: SimulationOptions, mode: string) {
    this.#options = options;
    this.#mode = mode;
  }

  get isFull(): boolean {
    const { states = Number.POSITIVE_INFINITY, failuresMax = 5 } = this.#options;
    return this.states >= states || this.#failures.length >= failuresMax;
  }

  /** Runs one case. Null if it hangs, or throws something unexpected: both count as failures. */
  async run<T extends Outcome>(words: string, name: string | null, act: () => Promise<T>): Promise<T | null> {
    const hang = Promise.withResolvers<null>();
    const timer = setTimeout(() => hang.resolve(null), HANG_MS);
    let outcome: T | null = null;
    let problems: readonly string[];
    try {
      outcome = await Promise.race([act(), hang.promise]);
      problems = outcome?.problems ?? [`it hangs: nothing for ${HANG_MS} ms`];
    } catch (error) {
      problems = [error instanceof Error ? (error.stack ?? error.message) : String(error)];
    } finally {
      clearTimeout(timer);
    }
    this.states += outcome?.states ?? 1;
    this.#options.onProgress?.(this.states);
    if (problems.length > 0) {
      const what = `seed ${this.#options.seed}: ${words}${outcome?.afterwards ?? ""}`;
      this.#failures.push({ what, problems, repeat: this.#command(name) });
    }
    return outcome;
  }

  report(moments: number): Report {
    return { states: this.states, moments, failures: this.#failures };
  }

  #command(name: string | null): string {
    const { seed, length = 24, profile = "mixed" } = this.#options;
    const only = name === null ? "" : ` --case "${name}"`;
    return `npm run simulate -- ${this.#mode} --seed ${seed} --profile ${profile} --length ${length}${only}`;
  }
}

/** Describes the failures, each with the command that repeats it. */
export function tellFailures(failures: readonly Failure[]): string {
  return failures
    .map(
      ({ what, problems, repeat }) =>
        `${what}\n${problems.map((problem) => `  ${problem}`).join("\n")}\n  repeat: ${repeat}`,
    )
    .join("\n\n");
}
