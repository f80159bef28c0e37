import type { Machine } from "../machine.ts";
import { PER_TURN } from "../messages.ts";
import { median } from "../statistics.ts";
import type { Survives } from "./roster.ts";

/** One figure: a value per round, or why there is none. */
export type Cell =
  | { readonly rounds: readonly number[] }
  | { readonly none: string }
  /** Stopped at this value without coming to an end. */
  | { readonly over: number };

export interface Comparison {
  readonly measured: string;
  readonly quick: boolean;
  readonly machine: Machine;
  readonly plan: Plan;
  readonly peers: readonly PeerResult[];
}

export interface PeerResult {
  readonly key: string;
  readonly name: string;
  readonly survives: Survives;
  readonly versions: Readonly<Record<string, string>>;
  readonly driven: string;
  /** Of those that read like another contender, this is null. */
  readonly readsLike: string | null;
  /** µs to store one message, by the number of messages that the session has. */
  readonly append: Readonly<Record<number, Cell>>;
  /** Bytes handed to the kernel per byte of message, likewise. */
  readonly bytes: Readonly<Record<number, Cell>>;
  readonly resumeMs: Readonly<Record<number, Cell>>;
  readonly resumeMB: Readonly<Record<number, Cell>>;
  readonly listMs: Cell;
  /** What went wrong, if anything. */
  readonly errors: readonly string[];
}

/** How much is done. */
export interface Plan {
  /** Sizes of a session at which appends are measured, rising. */
  readonly ages: readonly number[];
  readonly rounds: number;
  /** At most: see `turnsAt`. */
  readonly turnsPerRound: number;
  /** A round ends after this time, with at least one turn. */
  readonly roundMs: number;
  /** For growing from one age to the next. */
  readonly growMs: number;
  readonly resumes: readonly number[];
  readonly sessions: number;
  readonly readRounds: number;
  /** A resume or a list is stopped after this time. */
  readonly readMs: number;
  /** What takes longer is done once, not `readRounds` times. */
  readonly onceMs: number;
}

export const FULL: Plan = {
  ages: [100, 1000, 10_000, 100_000],
  rounds: 5,
  turnsPerRound: 30,
  roundMs: 3000,
  growMs: 150_000,
  resumes: [10_000, 100_000],
  sessions: 10_000,
  readRounds: 5,
  readMs: 60_000,
  onceMs: 8000,
};

export const QUICK: Plan = {
  ages: [100, 1000, 10_000],
  rounds: 3,
  turnsPerRound: 20,
  roundMs: 1000,
  growMs: 45_000,
  resumes: [10_000],
  sessions: 1000,
  readRounds: 3,
  readMs: 30_000,
  onceMs: 3000,
};

/** How many turns of a round are measured at this age: few at a young one, which would be another age after many. */
export function turnsAt(age: number, { rounds, turnsPerRound }: Plan): number {
  const third = Math.floor(age / 3 / PER_TURN / rounds);
  return Math.max(2, Math.min(turnsPerRound, third));
}

/** The median, or what it is known to be above; null if there is none. */
export function middleOf(cell: Cell | undefined): number | null {
  if (!cell || "none" in cell) return null;
  return "over" in cell ? cell.over : median(cell.rounds);
}
