import { setTimeout as sleep } from "node:timers/promises";
import { invalid, turnHandedOver } from "../../admit/refusals.ts";
import type { Suspension } from "../../conversation/records/records.ts";
import type { TurnState } from "../../conversation/turn-state.ts";
import { type HoldfastError, isHoldfastError } from "../../errors.ts";
import { HANDED_OVER } from "../../session-state.ts";
import type { CloseOptions } from "./surface.ts";

/** Docker gives a process ten seconds, and the rest of the program needs some of them. */
const WITHIN_MS = 8000;
/** The longest time that a timer can wait. */
const TIMER_MS_MAX = 2 ** 31 - 1;
const LOOK_MS = 10;

/** How long what is under way may take; null: there is no hand-over. Throws RECORD_INVALID. */
export function handOverMs({ handOver = false, withinMs = WITHIN_MS }: CloseOptions): number | null {
  if (typeof handOver !== "boolean") throw invalid("`handOver` is true or false");
  if (!(withinMs >= 0 && withinMs <= TIMER_MS_MAX)) throw invalid("`withinMs` must be a number of milliseconds");
  return handOver ? withinMs : null;
}

/** A try of the turn that the hand-over cuts short does not count. */
export function handOverOf<M>({ attempts, isTried }: TurnState<M>): Suspension {
  const counted = attempts - (isTried ? 1 : 0);
  return { reason: HANDED_OVER, until: new Date().toISOString(), ...(counted > 0 ? { attempts: counted } : {}) };
}

/** What a hand-over asks its turn. */
export interface LeavingTurn {
  /** Nothing is under way. `isAtEnd`: the program's loop is over, so it makes no answer any more. */
  isAtRest(isAtEnd: boolean): boolean;
  /** It has ended, or nothing more can be recorded. */
  isOver(): boolean;
  /** Records that the next process continues it. */
  record(): Promise<void>;
}

/** Leads a turn to the point where the next process can continue it. */
export class HandOver {
  readonly #session: string;
  readonly #number: number;
  readonly #began = new AbortController();
  #over: Promise<void> | null = null;
  /** Since it began, the program has tried to begin something, or to leave. */
  #isAtEnd = false;
  /** It is recorded, or is being recorded. */
  isDone = false;

  constructor(session: string, number: number) {
    this.#session = session;
    this.#number = number;
  }

  /** Fires when it begins. */
  get signal(): AbortSignal {
    return this.#began.signal;
  }

  /** From the call on nothing new begins. Resolves when the turn is over, or handed over. Rejects with store errors. */
  begin(turn: LeavingTurn, withinMs: number): Promise<void> {
    this.#over ??= this.#run(turn, withinMs);
    return this.#over;
  }

  async #run(turn: LeavingTurn, withinMs: number): Promise<void> {
    this.#began.abort(this.#refusal());
    await untilAtRest(() => turn.isAtRest(this.#isAtEnd), turn.isOver, withinMs);
    if (turn.isOver()) return;
    this.isDone = true;
    try {
      await turn.record();
    } catch (error) {
      this.isDone = false;
      throw error;
    }
  }

  /** Throws TURN_HANDED_OVER: nothing new may begin. */
  assertBegins(): void {
    if (!this.#over) return;
    this.#isAtEnd = true;
    throw this.#refusal();
  }

  /** Throws TURN_HANDED_OVER. */
  assertOpen(): void {
    if (this.isDone) throw this.#refusal();
  }

  /** The program leaves the turn, because of that error if there is one. Null: not because of the hand-over. */
  leave(error?: unknown): Promise<void> | null {
    if (!this.#over) return null;
    // What it was refused is what a loop fails with, in whichever words.
    if (error !== undefined && !this.#isAtEnd && !isHoldfastError(error, "TURN_HANDED_OVER")) return null;
    this.#isAtEnd = true;
    return this.#over;
  }

  #refusal(): HoldfastError {
    return turnHandedOver(this.#session, this.#number);
  }
}

/**
 * Waits until nothing is under way, for at most so long. Looks twice: a program that has just got what it waited for,
 * such as the record of its last answer, may be about to end the turn.
 */
async function untilAtRest(isAtRest: () => boolean, isOver: () => boolean, withinMs: number): Promise<void> {
  const end = performance.now() + withinMs;
  for (let rests = 0; !isOver(); ) {
    rests = isAtRest() ? rests + 1 : 0;
    const left = end - performance.now();
    if (rests === 2 || left <= 0) return;
    await sleep(Math.min(rests > 0 ? 0 : LOOK_MS, left));
  }
}
