import type { Database } from "../connection/database.ts";
import { isPassing } from "../failure.ts";

/** Between two tries; doubles up to the maximum. */
const PAUSE_MS = 20;
const PAUSE_MS_MAX = 1000;

interface Waiter {
  readonly resolve: () => void;
  readonly reject: (error: unknown) => void;
  readonly untilMs: number;
}

/**
 * Makes everything committed so far durable, with one statement at a time for all who wait. If the synchronous standby
 * does not answer, this keeps one server process waiting, not one for each session and each try.
 */
export class SharedSync {
  readonly #database: Database;
  #waiting: Waiter[] = [];
  #isRunning = false;

  constructor(database: Database) {
    this.#database = database;
  }

  /** Throws STORE_IO after the database's patience. */
  run(): Promise<void> {
    return new Promise((resolve, reject) => {
      this.#waiting.push({ resolve, reject, untilMs: performance.now() + this.#database.patienceMs });
      if (!this.#isRunning) void this.#work();
    });
  }

  async #work(): Promise<void> {
    this.#isRunning = true;
    // Calls made one after the other share the first statement.
    await null;
    for (let pauseMs = PAUSE_MS; this.#waiting.length > 0; ) {
      const covered = this.#waiting.splice(0);
      try {
        await this.#send();
        for (const { resolve } of covered) resolve();
        pauseMs = PAUSE_MS;
      } catch (error) {
        const againMs = performance.now() + pauseMs;
        const isPatient = isPassing((error as { cause?: unknown }).cause);
        for (const one of covered) {
          if (isPatient && againMs < one.untilMs) this.#waiting.push(one);
          else one.reject(error);
        }
        await this.#database.pause(pauseMs);
        pauseMs = Math.min(pauseMs * 2, PAUSE_MS_MAX);
      }
    }
    this.#isRunning = false;
  }

  #send(): Promise<unknown> {
    const text = `WITH ${this.#database.durable} SELECT FROM durable`;
    return this.#database.retry("make the journal durable", () => this.#database.once(text), 0);
  }
}
