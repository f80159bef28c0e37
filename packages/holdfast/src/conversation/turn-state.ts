import { defined } from "../defined.ts";
import type { Entry } from "../dialects/dialect.ts";
import { endedAs, isHandedOver } from "../session-state.ts";
import type { Suspension, TurnCheckpoint, TurnEnded } from "./records/records.ts";

/** A process that wrote to the session. */
export interface Writer {
  /** It records every tool start (R5). */
  intents: boolean;
}

/** What is known about a turn. */
export interface TurnState<M> {
  readonly number: number;
  readonly startedAt: string;
  lastAt: string;
  resumes: number;
  /** Tries since the last progress. */
  attempts: number;
  /** The last writer's try is one of them. */
  isTried: boolean;
  prompt: Entry<M>;
  /** The writers that worked on it. */
  readonly writers: Set<Writer>;
  ended: Omit<TurnEnded, "kind" | "turn"> | null;
  suspended: Readonly<Suspension> | null;
  signal: { readonly signal: string; readonly error?: string } | null;
}

export function recordsStarts<M>({ writers }: TurnState<M>): boolean {
  for (const { intents } of writers) if (!intents) return false;
  return true;
}

/** A try counts once for each writer. */
export function tryTurn<M>(turn: TurnState<M>): void {
  if (!turn.isTried) turn.attempts += 1;
  turn.isTried = true;
}

/** It was handed over, or slept on purpose: its continuation is no resumption that anybody counts. */
export function isContinued<M>({ suspended, ended }: TurnState<M>): boolean {
  if (!suspended || ended) return false;
  return isHandedOver(suspended) || (suspended.until !== undefined && suspended.attempts === undefined);
}

/** Which resumption the next one is. */
export function nextResume<M>(turn: TurnState<M>): number {
  return isContinued(turn) ? turn.resumes : turn.resumes + 1;
}

/** Resumes the turn, however it had ended. */
export function resumeTurn<M>(turn: TurnState<M>, n: number, writer: Writer): void {
  tryTurn(turn);
  turn.resumes = n;
  turn.writers.add(writer);
  turn.ended = null;
  turn.suspended = null;
  turn.signal = null;
}

/** A second end has no effect, except that a turn that did not complete can be left for another one. */
export function endTurn<M>(turn: TurnState<M>, record: Omit<TurnEnded, "kind" | "turn">): boolean {
  const { outcome, by, reason, error } = record;
  if (turn.ended && outcome !== "left") return false;
  // Only these members: a journal record also has the journal's own.
  turn.ended = { outcome, ...defined({ by, reason, error }) };
  // Its process was closed: that was no failure.
  if (turn.isTried && endedAs(outcome, by) === "cut") turn.attempts = Math.max(0, turn.attempts - 1);
  turn.isTried = false;
  return true;
}

export function turnFrom<M>(saved: TurnCheckpoint, writer: Writer, prompt: Entry<M>): TurnState<M> {
  const { number, startedAt, lastAt, resumes, attempts = 0, intents, ended, suspended, signal } = saved;
  return {
    ...{ number, startedAt, lastAt, resumes, attempts, isTried: saved.tried === true, prompt },
    writers: new Set(intents ? [writer] : [writer, { intents: false }]),
    ended: ended ?? null,
    suspended: suspended ?? null,
    signal: signal ?? null,
  };
}
