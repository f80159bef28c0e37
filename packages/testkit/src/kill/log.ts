import type { Attempt, LabEvent } from "./pipe.ts";

/** The outcome of an attempt, as far as its process knows. */
export type Outcome =
  | { readonly is: "open" }
  | { readonly is: "acknowledged"; readonly seq?: number; readonly last?: number }
  | { readonly is: "refused"; readonly code: string }
  | { readonly is: "doubt"; readonly code: string };

export interface LoggedAttempt {
  readonly attempt: Attempt;
  /** The life of the session's writer in which it was made. */
  readonly life: number;
  outcome: Outcome;
}

/** Everything that the writers of one session tried and were told, in order, over all their lives. */
export class Log {
  readonly tried: LoggedAttempt[] = [];
  #life = 0;
  /** The newest attempt of each id. */
  readonly #newest = new Map<number, LoggedAttempt>();

  /** A writer has died; later events come from the next one. */
  nextLife(): void {
    this.#life++;
  }

  get life(): number {
    return this.#life;
  }

  hear(event: LabEvent): void {
    if (event.e === "attempt") {
      const { e: _, ...attempt } = event;
      const tried: LoggedAttempt = { attempt, life: this.#life, outcome: { is: "open" } };
      this.tried.push(tried);
      this.#newest.set(event.id, tried);
    } else if (event.e === "ack") {
      const { e: _, id, ...where } = event;
      this.#settle(id, { is: "acknowledged", ...where });
    } else if (event.e === "refused" || event.e === "doubt") {
      this.#settle(event.id, { is: event.e, code: event.code });
    }
  }

  get acknowledged(): number {
    return this.#count("acknowledged");
  }

  /** Attempts without an answer. */
  get open(): readonly LoggedAttempt[] {
    return this.tried.filter(({ outcome }) => outcome.is === "open");
  }

  /** The first unused id. */
  get nextId(): number {
    return this.tried.reduce((most, { attempt }) => Math.max(most, attempt.id), 0) + 1;
  }

  #count(is: Outcome["is"]): number {
    return new Set(this.tried.filter(({ outcome }) => outcome.is === is).map(({ attempt }) => attempt.id)).size;
  }

  #settle(id: number, outcome: Outcome): void {
    const tried = this.#newest.get(id);
    if (!tried) throw new Error(`an answer for attempt ${id}, which was never announced`);
    tried.outcome = outcome;
  }
}
