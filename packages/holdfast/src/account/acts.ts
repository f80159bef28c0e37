import type { Holder } from "../journal/contract.ts";
import type { SessionState } from "../session-state.ts";
import { holderWords, programWords } from "./words.ts";

/**
 * - `prompt`: start a turn.
 * - `finish`: continue the turn that did not complete.
 * - `retry`: let workers try the parked turn again.
 * - `leave`: leave that turn as it is.
 * - `answer`: decide about the calls that wait.
 * - `stop`: end the turn that is running.
 * - `fork`: copy the conversation into a new session.
 * - `takeOver`: continue a session that another program wrote.
 */
export type Act = "prompt" | "finish" | "retry" | "leave" | "answer" | "stop" | "fork" | "takeOver";

/** Why something cannot be done now. */
export interface Refusal {
  readonly no:
    | "written-by"
    | "held-by"
    | "nothing-to-finish"
    | "running"
    | "not-running"
    | "not-waiting"
    | "not-parked"
    | "own";
  /** A sentence for people. */
  readonly words: string;
}

interface Facts {
  readonly app: string | null;
  readonly state: SessionState;
  /** Somebody is to decide about the turn, or about one of its calls. */
  readonly isUndecided: boolean;
  /** Another process that has the session open. */
  readonly holder: Holder | null;
}

/** What a program can do with a session now. */
export function actsOf(
  { app, state, isUndecided, holder }: Facts,
  asking: string | undefined,
): Record<Act, true | Refusal> {
  const held: Refusal | null = holder && { no: "held-by", words: `It is open in ${holderWords(holder)}.` };
  const isForeign = asking !== undefined && app !== null && app !== asking;
  const foreign: Refusal | null = isForeign
    ? { no: "written-by", words: `It was written by ${programWords(app)}, which should continue it.` }
    : null;
  const running: Refusal | null = state === "running" ? { no: "running", words: "A turn is running." } : null;
  const unfinished: Refusal | null =
    state === "idle" ? { no: "nothing-to-finish", words: "Nothing to finish: the last turn completed." } : null;
  const waiting: Refusal | null =
    isUndecided && !running ? null : { no: "not-waiting", words: "No call is waiting for a decision." };
  const stoppable: Refusal | null = state === "running" ? null : { no: "not-running", words: "No turn is running." };
  const parked: Refusal | null =
    state === "parked" ? null : { no: "not-parked", words: "Workers have not given up on it." };
  const own: Refusal = { no: "own", words: "This program can continue it without taking it over." };
  return {
    prompt: held ?? foreign ?? true,
    finish: held ?? running ?? unfinished ?? foreign ?? true,
    retry: held ?? parked ?? foreign ?? true,
    leave: held ?? running ?? unfinished ?? foreign ?? true,
    answer: held ?? waiting ?? foreign ?? true,
    stop: held ?? stoppable ?? true,
    fork: true,
    takeOver: held ?? (foreign ? true : own),
  };
}
