import type { HoldfastError } from "../../errors.ts";
import type { OpenOptions, Session } from "../surface.ts";

/** Which sessions a worker wants, and how often it tries. Each condition that is given must hold. */
export interface ClaimOptions<M = unknown> {
  /** All of these labels must exist with these values. */
  readonly labels?: Readonly<Record<string, string>>;
  /** The program that created the session. */
  readonly app?: string;
  readonly cwd?: string;
  /**
   * Only sessions last written at least this long ago, in milliseconds. Default: 0. The time is that of the process
   * that wrote; one in the future tells no age, and counts as long ago.
   */
  readonly olderThanMs?: number;
  /**
   * Only sessions last written, or due, within this time, in milliseconds. Default: a day, so that a new worker does
   * not finish everything that was ever interrupted. Infinity: all.
   */
  readonly youngerThanMs?: number;
  /**
   * Also claim turns that the application ended as failed (`turn.fail`) or that somebody aborted (`turn.abort`).
   * Default: only turns that were cut off, handed over, or are to continue by themselves by now.
   */
  readonly ended?: boolean;
  /** How often a turn is tried without progress before it is parked. Default: 5. */
  readonly maxTries?: number;
  /** The pause after the first failed try; it doubles with each. Default: 2 seconds. */
  readonly backoffMs?: number;
  /** The longest pause. Default: 10 minutes. */
  readonly backoffMaxMs?: number;
  /** For `store.resume`. */
  readonly open?: OpenOptions<M>;
  /** Ends the work: the turn is handed over, and the try does not count. */
  readonly signal?: AbortSignal;
  /** How long that hand-over may take, as in `session.close`. Default: 8 seconds. */
  readonly withinMs?: number;
  /** A session that cannot be opened. It is left alone for a while. Default: a warning. */
  readonly onPassedOver?: (id: string, error: HoldfastError) => void;
}

/** Options of `store.work`. */
export interface WorkOptions<M = unknown> extends ClaimOptions<M> {
  readonly signal: AbortSignal;
  /** How many sessions to work on at once. Default: 1. */
  readonly concurrency?: number;
  /** How long to wait before looking again if nothing was found; varied by half. Default: 10 seconds. */
  readonly pollMs?: number;
  readonly onResult?: (result: ClaimResult) => void;
  /** The store failed while looking for work. The worker continues. */
  readonly onError?: (error: unknown) => void;
}

/** What the function that finishes a turn gets besides the session. */
export interface Claim {
  /** How often this turn has been tried since its last progress, this time included. */
  readonly tries: number;
  /** Fires when the work should end. */
  readonly signal: AbortSignal;
}

/** Finishes the turn of a session: `session.resumeTurn`, and what the agent does then. */
export type Finish<M = unknown> = (session: Session<M>, claim: Claim) => unknown;

/** What became of a claimed session. */
export interface ClaimResult {
  readonly session: string;
  readonly tries: number;
  /**
   * `finished`: the turn completed. `waiting`: it waits for a person. `paused`: it continues by itself, later. `ended`:
   * it was ended as failed or aborted. `failed`: the function threw or returned too early; it will be tried again.
   * `gave-up`: the same for the last time, or too many workers have died with it; it is parked. `given-back`: the work
   * was stopped, or the store failed; this try does not count.
   */
  readonly outcome: "finished" | "waiting" | "paused" | "ended" | "failed" | "gave-up" | "given-back";
  readonly error?: unknown;
}
