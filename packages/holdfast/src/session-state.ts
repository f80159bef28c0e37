/**
 * The state of a session, the same in every list, on every screen and for every client.
 *
 * - `idle`: the last turn completed, or there is none.
 * - `running`: a process is working on the last turn.
 * - `waiting`: the last turn is suspended until a person decides.
 * - `paused`: the last turn continues by itself: at once, because it was handed over, or later.
 * - `parked`: workers gave up on the last turn, until a person lets them retry.
 * - `interrupted`: the last turn was cut off by the death, a signal or the shutdown of its process.
 * - `stopped`: somebody ended the last turn on purpose.
 * - `failed`: the last turn ended with an error.
 */
export type SessionState = "idle" | "running" | "waiting" | "paused" | "parked" | "interrupted" | "stopped" | "failed";

/** How the last turn stands in the journal. `open`: no end is recorded; `crashed`: none, but an uncaught error is. */
export type LastTurn =
  | "completed"
  | "suspended"
  | "paused"
  | "parked"
  | "stopped"
  | "failed"
  | "cut"
  | "open"
  | "crashed";

/** `isBeingWritten`: the process that has the session open is the one that works on this turn. */
export function sessionState(last: LastTurn, isBeingWritten: boolean): SessionState {
  switch (last) {
    case "completed":
      return "idle";
    case "suspended":
      return "waiting";
    case "paused":
    case "parked":
    case "stopped":
    case "failed":
      return last;
    case "cut":
      return "interrupted";
    case "open":
      return isBeingWritten ? "running" : "interrupted";
    case "crashed":
      return isBeingWritten ? "running" : "failed";
  }
}

/**
 * Who aborts a turn without anybody's wish: a session or a recorder that is closed in mid-turn, a server that shuts
 * down.
 */
const SHUTDOWNS: readonly unknown[] = ["close", "recorder", "server"];

/** What the end of a turn means. With an outcome of a later version, the turn can be finished here. */
export function endedAs(outcome: unknown, by: unknown): "completed" | "stopped" | "failed" | "cut" {
  if (outcome === "completed" || outcome === "left") return "completed";
  if (outcome === "failed") return "failed";
  return outcome === "aborted" && !SHUTDOWNS.includes(by) ? "stopped" : "cut";
}

interface Turn {
  readonly ended: { readonly outcome: string; readonly by?: string } | null;
  readonly suspended: { readonly until?: unknown; readonly parked?: unknown } | null;
  readonly signal: { readonly error?: string } | null;
}

/** The reason of a suspension by which a process that was closed handed its turn over. */
export const HANDED_OVER = "hand-over";

/** It continues at once, and was not interrupted. */
export function isHandedOver({ reason, until }: { readonly reason: string; readonly until?: string }): boolean {
  return until !== undefined && reason === HANDED_OVER;
}

/** What a suspension means. */
export function suspendedAs({ until, parked }: NonNullable<Turn["suspended"]>): "suspended" | "paused" | "parked" {
  if (parked !== undefined) return "parked";
  return until === undefined ? "suspended" : "paused";
}

export function lastTurnOf(turn: Turn | null): LastTurn {
  if (!turn) return "completed";
  const { ended, suspended, signal } = turn;
  if (ended) return endedAs(ended.outcome, ended.by);
  if (suspended) return suspendedAs(suspended);
  return signal?.error === undefined ? "open" : "crashed";
}
