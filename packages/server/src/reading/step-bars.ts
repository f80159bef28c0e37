import { settledWords } from "holdfast/internal";

/** A step inside a tool. */
export interface StepBar {
  readonly name: string;
  readonly startMs: number;
  /** Null: no end is recorded. */
  endMs: number | null;
  isFailed: boolean;
  /** Where its outcome is known from, in words, if not from the step itself. */
  settled: string;
}

/** A tool may have a thousand steps. A timeline keeps this many of them. */
const STEPS_MAX = 50;

/** The steps of one run of a tool, in the order in which they started. */
export class StepBars {
  readonly #bars: StepBar[] = [];
  #more = 0;

  get bars(): readonly StepBar[] {
    return this.#bars;
  }

  /** How many there are besides. */
  get more(): number {
    return this.#more;
  }

  start(name: string, ms: number): void {
    this.#add({ name, startMs: ms, endMs: null, isFailed: false, settled: "" });
  }

  /** `source`: who knows the outcome, if not the step itself. */
  end(name: string, ms: number, isFailed: boolean, source: string): void {
    const settled = source === "" ? "" : settledWords(source, false);
    const open = this.#bars.findLast((bar) => bar.name === name && bar.endMs === null);
    if (open) Object.assign(open, { endMs: ms, isFailed, settled });
    // An earlier run started it. This one was told the outcome.
    else if (settled !== "") this.#add({ name, startMs: ms, endMs: ms, isFailed, settled });
  }

  /** Those that finished make room: where a tool came to, and what went wrong, says more. */
  #add(bar: StepBar): void {
    this.#bars.push(bar);
    if (this.#bars.length <= STEPS_MAX) return;
    const finished = this.#bars.findIndex(({ endMs, isFailed }) => endMs !== null && !isFailed);
    this.#bars.splice(Math.max(0, finished), 1);
    this.#more += 1;
  }
}
