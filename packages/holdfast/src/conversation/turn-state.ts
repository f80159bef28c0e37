import { defined } from "../defined.ts";
import type { Entry } from "../dialects/dialect.ts";
import type { TurnCheckpoint, TurnEnded } from "./records/records.ts";

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
  prompt: Entry<M>;
  /** The writers that worked on it. */
  readonly writers: Set<Writer>;
  ended: Omit<TurnEnded, "kind" | "turn"> | null;
  suspended: { readonly reason: string; readonly calls?: readonly string[] } | null;
  signal: { readonly signal: string; readonly error?: string } | null;
}

export function recordsStarts<M>({ writers }: TurnState<M>): boolean {
  for (const { intents } of writers) if (!intents) return false;
  return true;
}

/** Resumes the turn, however it had ended. */
export function resumeTurn<M>(turn: TurnState<M>, n: number, writer: Writer): void {
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
  return true;
}

export function turnFrom<M>(saved: TurnCheckpoint, writer: Writer, prompt: Entry<M>): TurnState<M> {
  const { number, startedAt, lastAt, resumes, intents, ended, suspended, signal } = saved;
  return {
    ...{ number, startedAt, lastAt, resumes, prompt },
    writers: new Set(intents ? [writer] : [writer, { intents: false }]),
    ended: ended ?? null,
    suspended: suspended ?? null,
    signal: signal ?? null,
  };
}
