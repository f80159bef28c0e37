import { median } from "./statistics.ts";

/** What a figure must reach. */
export type Bound = { readonly atMost: number } | { readonly atLeast: number } | { readonly under: number };
export type Unit = "×" | "µs" | "ms" | "MB" | "/s";

/** One figure of the table, measured over several rounds. */
export interface Figure {
  /** The row that measured it, as `--only` names it. */
  readonly row: string;
  readonly what: string;
  readonly bound: Bound;
  readonly unit: Unit;
  /** One value per round. */
  readonly rounds: readonly number[];
  /** The absolute values behind it, in words. */
  readonly note?: string;
}

/** A figure that nothing is held to: how others do, or what stands behind one that has a limit. */
export interface Peer {
  readonly what: string;
  readonly unit: Unit;
  readonly rounds: readonly number[];
  readonly note?: string;
}

/** The median of one round's appends at one age of a session. */
export interface AgePoint {
  readonly who: string;
  readonly records: number;
  readonly p50Us: number;
}

export interface Results {
  readonly figures: Figure[];
  readonly peers: Peer[];
  readonly ages: AgePoint[];
}

export function middleOf(figure: { readonly rounds: readonly number[] }): number {
  return median(figure.rounds);
}

export function passes(figure: Figure): boolean {
  const value = middleOf(figure);
  const { bound } = figure;
  if ("atMost" in bound) return value <= bound.atMost;
  if ("atLeast" in bound) return value >= bound.atLeast;
  return value < bound.under;
}

export function limitOf(bound: Bound): number {
  return "atMost" in bound ? bound.atMost : "atLeast" in bound ? bound.atLeast : bound.under;
}
