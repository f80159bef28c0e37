import type { Holder } from "../journal/contract.ts";
import type { SessionState } from "../session-state.ts";
import { changesWords } from "../view/changes-words.ts";
import {
  type CallDecision,
  type CallFacts,
  type CallPolicy,
  decideCall,
  type FolderChanges,
  factsOf,
} from "../view/decide-call.ts";
import type { Interruption, OpenCall, SettledCall } from "../view/interruption.ts";
import type { Reading } from "../view/reading.ts";
import { type Act, actsOf, type Refusal } from "./acts.ts";
import { type CallState, type CutOff, callWords, detailLines, statusWords } from "./words.ts";

/**
 * What is true of a session, in plain data and in words: for a list, a screen, a page, an editor, another agent. A
 * surface shows this and decides by this alone.
 */
export interface Account {
  readonly session: string;
  /** The newest record that it covers; null if the session is open here. */
  readonly cursor: string | null;
  /** The program that wrote the session. */
  readonly app: string | null;
  readonly state: SessionState;
  /** The process that has it open; null if none has. */
  readonly holder: Holder | null;
  /** The turn that is running or did not complete; null if there is none. */
  readonly turn: number | null;
  /** How that turn was cut off; null while it is running. */
  readonly interruption: CutOff | null;
  /** The calls of that turn without a recorded result. */
  readonly calls: readonly CallAccount[];
  /** Calls of that turn whose outcome was unknown, and is known since somebody was asked. */
  readonly settled: readonly SettledCall[];
  /** Prompts waiting for their turn. */
  readonly queued: number;
  /** What the program that asks can do with it now. */
  readonly can: Readonly<Record<Act, true | Refusal>>;
  readonly words: {
    /** A phrase: "interrupted: its process died". */
    readonly status: string;
    /** What else there is to say besides its calls, one sentence each. */
    readonly detail: readonly string[];
  };
}

export interface CallAccount {
  readonly id: string;
  /** The message that makes it; null if the process died before recording that message. */
  readonly message: string | null;
  readonly name: string;
  readonly input: unknown;
  readonly state: CallState;
  /** Whether it has taken effect. */
  readonly effect: "none" | "possible" | "done";
  /**
   * What happens to it when the turn goes on, by the policy that `accountOf` was given. The command and its server
   * leave it out until they open the session: only then do they know their policy.
   */
  readonly onFinish?: CallDecision;
  readonly process?: NonNullable<CallFacts["process"]>;
  /** What has changed since it began in the folder that it works in, if that was noted and its outcome is unknown. */
  readonly changes?: FolderChanges;
  /** How far it got, for people. */
  readonly words: string;
}

export interface AccountOptions {
  /** The program that asks. Only the program that wrote a session offers to continue it. */
  readonly app?: string;
  /** This process has the session open for writing. */
  readonly isOpenHere?: boolean;
  /** What this program does with open calls, and what it knows of them. Default: the model is told about each. */
  readonly policy?: CallPolicy;
}

/** The account of a session from `store.read`, or of one that is open in this process. Pure. */
export function accountOf(reading: Reading<unknown>, options: AccountOptions = {}): Account {
  const { id, state, holder, queue, interruption, running, attributes, cursor = null, draft } = reading;
  const { app, isOpenHere = false, policy = {} } = options;
  const facts = {
    app: attributes.app ?? null,
    state,
    holder: isOpenHere ? null : holder,
    interruption: interruption && cutOff(interruption),
    calls: state === "idle" ? [] : reading.calls.map((call) => callAccount(call, state, policy)),
    settled: interruption?.settled ?? [],
    queued: queue.length,
  };
  return {
    session: id,
    cursor,
    ...facts,
    holder,
    turn: running ?? interruption?.turn ?? null,
    can: actsOf({ ...facts, isUndecided: isUndecided(reading, facts.calls) }, app),
    words: { status: statusWords(facts), detail: detailLines(facts, draft) },
  };
}

/** A turn can wait without naming a call. Once calls are decided, only those that are not keep it waiting. */
function isUndecided({ state, calls }: Reading<unknown>, accounts: readonly CallAccount[]): boolean {
  if (accounts.some(({ onFinish }) => onFinish === "wait")) return true;
  if (state !== "waiting") return false;
  const isOneUndecided = calls.some((call) => call.state === "awaiting" && call.approved === undefined);
  return isOneUndecided || calls.every(({ approved }) => approved === undefined);
}

function cutOff({ startedAt, lastAt, resumes, answered, how }: Interruption<unknown>): CutOff {
  return { startedAt, lastAt, resumes, answered, how };
}

function callAccount(call: OpenCall, session: SessionState, policy: CallPolicy): CallAccount {
  const { id, message, name, input } = call;
  const known = factsOf(call, policy);
  const { process } = known;
  const state = callState(call, session, known);
  const { changes } = EFFECTS[state] === "possible" ? known : {};
  return {
    ...{ id, message, name, input, state },
    effect: EFFECTS[state],
    onFinish: decideCall(call, policy),
    ...(process ? { process } : {}),
    ...(changes ? { changes } : {}),
    words: [callWords(state, known, call), ...(changes ? [changesWords(changes)] : [])].join("; "),
  };
}

function callState({ state }: OpenCall, session: SessionState, known: CallFacts): CallState {
  if (known.outcome) return "ended";
  if (known.unapproved) return "awaiting";
  if (known.neverBegan) return "never-started";
  const isRunning = state === "outcome-unknown" && (session === "running" || known.process?.running === true);
  return isRunning ? "running" : state;
}

const EFFECTS: { readonly [S in CallState]: CallAccount["effect"] } = {
  "never-started": "none",
  awaiting: "none",
  running: "possible",
  "outcome-unknown": "possible",
  unrecorded: "possible",
  provider: "possible",
  ended: "done",
};
