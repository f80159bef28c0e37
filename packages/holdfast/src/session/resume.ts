import type { Dialect, Entry, Outcome } from "../dialects/dialect.ts";
import type { Conversation } from "./conversation.ts";
import { reading } from "./intake.ts";
import type { RepairEntry, SessionRecord } from "./records.ts";
import { invalid, turnUnanswered } from "./refusals.ts";
import type { DraftContent, Interruption, OpenCall, ResumeOptions } from "./surface.ts";
import { recordsStarts, type TurnState } from "./turn-state.ts";
import { endsWithAnswer } from "./view.ts";
import { boundaryWords, closingWords, goOnWords, type How } from "./words.ts";

/** A call without a result, and where it stands. */
export interface FoundCall extends OpenCall {
  readonly index: number;
  /** The seq of its start. */
  readonly startedSeq?: number;
  /** What a person decided of it; not there if nobody has. */
  readonly approved?: boolean;
}

/** How a turn came to its end, or did not. */
export function howOf<M>({ ended, suspended, signal }: TurnState<M>): How {
  if (ended?.outcome === "aborted") {
    const { by = "", reason } = ended;
    return reason === undefined ? { kind: "aborted", by } : { kind: "aborted", by, reason };
  }
  if (ended?.outcome === "failed") return { kind: "failed", error: ended.error ?? "" };
  if (ended) return { kind: "completed" };
  if (suspended) return { kind: "suspended", reason: suspended.reason };
  if (signal?.error !== undefined) return { kind: "failed", error: signal.error };
  return signal ? { kind: "signal", signal: signal.signal } : { kind: "killed" };
}

/** The calls at the end of the conversation that have no result, in their order. */
export function openCalls<M>({ section, runs, turn }: Conversation<M>): FoundCall[] {
  const isRecorded = turn !== null && recordsStarts(turn);
  const waiting = new Set(turn?.suspended?.calls);
  const found: FoundCall[] = [];
  for (const { item, index, call, answer, approved } of section.calls) {
    if (answer) continue;
    const { id, name, input, by, awaiting } = call;
    const message = item.entry.id;
    const run = runs.of(message, index);
    // Nobody has decided, or has decided that it is not to run.
    const isWaiting = approved === null ? awaiting === true || waiting.has(id) : !approved;
    // The starts of earlier turns are forgotten: of their calls nothing can be said (R5).
    const isKnown = isRecorded && item.entry.turn === turn.number;
    const unstarted = isWaiting ? "awaiting" : isKnown ? "never-started" : "unrecorded";
    const state = by === "provider" ? "provider" : run ? "outcome-unknown" : unstarted;
    const started = run ? { startedAt: run.at, startedSeq: run.seq, replay: run.replay ?? ("never" as const) } : {};
    const child = run?.child ? { child: run.child } : {};
    const process = run?.process ? { process: run.process } : {};
    found.push({
      id,
      message,
      index,
      name,
      input,
      state,
      ...started,
      ...child,
      ...process,
      ...(approved === null ? {} : { approved }),
    });
  }
  return found;
}

/** Without what only this room knows. */
function openCall({ index: _index, startedSeq: _seq, approved: _approved, ...call }: FoundCall): OpenCall {
  return call;
}

/** Tools that were started while the call itself was never recorded (R9). */
function strayCalls<M>({ runs }: Conversation<M>): OpenCall[] {
  return runs.strays.map(({ call, name, input, at, replay, child, process }) => ({
    id: call,
    message: null,
    name,
    input,
    startedAt: at,
    replay: replay ?? ("never" as const),
    ...(child ? { child } : {}),
    ...(process ? { process } : {}),
    state: "outcome-unknown" as const,
  }));
}

/** What was in flight when the last turn was cut off (P5). Null if it completed, or was left for another. */
export function interruptionOf<M>(conversation: Conversation<M>): Interruption<M> | null {
  const { turn } = conversation;
  if (!turn) return null;
  const how = howOf(turn);
  if (how.kind === "completed") return null;
  const { number, startedAt, lastAt, resumes, prompt } = turn;
  const open = openCalls(conversation);
  const draft = conversation.draft?.content ?? null;
  const calls = [...open.map(openCall), ...strayCalls(conversation)];
  // An application that says that the turn failed, or waits, says that its answer is not the last word.
  const isOpenEnded = turn.ended?.outcome === "failed" || (turn.suspended !== null && !turn.ended);
  const answered = !isOpenEnded && calls.length === 0 && endOf(conversation, open, draft) === "answered";
  return { turn: number, startedAt, lastAt, resumes, prompt, answered, how, draft, calls };
}

/** How a turn that has no end is left behind by another: completed, if only its end is missing. */
export function leaveTurn<M>(conversation: Conversation<M>): SessionRecord[] {
  const { turn } = conversation;
  if (!turn || turn.ended) return [];
  const outcome = interruptionOf(conversation)?.answered ? "completed" : "left";
  return [{ kind: "turn.ended", turn: turn.number, outcome }];
}

/** Completes an interrupted turn that only lacks its end. Throws TURN_UNANSWERED. */
export function endAnswered<M>(session: string, conversation: Conversation<M>): SessionRecord[] {
  const { number, resumes, ended } = conversation.turn!;
  if (!interruptionOf(conversation)?.answered) throw turnUnanswered(session, number);
  // Of several ends the first counts: an aborted turn goes on before it ends again.
  const resumed: SessionRecord[] = ended ? [{ kind: "turn.resumed", turn: number, n: resumes + 1 }] : [];
  return [...resumed, { kind: "turn.ended", turn: number, outcome: "completed" }];
}

/** What stands at the end of a turn that did not complete: the rows of the table in SESSIONS.md. */
type End = "completed" | "answered" | "draft" | "draft behind an answer" | "cut";

interface Ending {
  /** The streamed text is shown as an incomplete message. */
  readonly incomplete: boolean;
  /** A message in the user's role that tells of the interruption. */
  readonly boundary: boolean;
}

/** With a new prompt (P), with `resumeTurn` (R), and with `resumeTurn({ draft: "keep" })`. Where tools were started whose calls are lost, there is always a boundary: it names them. */
export const ENDINGS: { readonly [E in End]: { readonly P: Ending; readonly R: Ending; readonly keep: Ending } } = {
  completed: {
    P: { incomplete: false, boundary: false },
    R: { incomplete: false, boundary: false },
    keep: { incomplete: false, boundary: false },
  },
  answered: {
    P: { incomplete: false, boundary: false },
    R: { incomplete: false, boundary: true },
    keep: { incomplete: false, boundary: true },
  },
  draft: {
    P: { incomplete: true, boundary: true },
    R: { incomplete: false, boundary: false },
    keep: { incomplete: true, boundary: true },
  },
  "draft behind an answer": {
    P: { incomplete: true, boundary: true },
    R: { incomplete: false, boundary: true },
    keep: { incomplete: true, boundary: true },
  },
  cut: {
    P: { incomplete: false, boundary: true },
    R: { incomplete: false, boundary: false },
    keep: { incomplete: false, boundary: false },
  },
};

/** What becomes of a call without a result: with a new prompt or "close", and with "rerun". */
export const CALLS: {
  readonly [S in OpenCall["state"]]: {
    readonly close: "close" | "leave";
    readonly rerun: "close" | "leave" | "keep" | "keep if safe";
  };
} = {
  "never-started": { close: "close", rerun: "keep" },
  unrecorded: { close: "close", rerun: "close" },
  "outcome-unknown": { close: "close", rerun: "keep if safe" },
  awaiting: { close: "close", rerun: "close" },
  provider: { close: "leave", rerun: "leave" },
};

function endOf<M>(conversation: Conversation<M>, open: readonly FoundCall[], draft: DraftContent | null): End {
  const { turn, dialect } = conversation;
  if (!turn || howOf(turn).kind === "completed") return "completed";
  // What counts is how the request would end, not what is recorded (R2).
  const isAnswered = open.length === 0 && endsWithAnswer(conversation);
  if (draft && dialect.incomplete(draft.text) !== null) return isAnswered ? "draft behind an answer" : "draft";
  return isAnswered ? "answered" : "cut";
}

/** What is to be recorded before a new prompt. */
export function repairForPrompt<M>(conversation: Conversation<M>): RepairEntry[] {
  const { turn } = conversation;
  const how: How = turn ? howOf(turn) : { kind: "completed" };
  const open = openCalls(conversation);
  const closed = open.flatMap((call) =>
    CALLS[call.state].close === "close" ? closing(conversation.dialect, call, how) : [],
  );
  return [...closed, ...endings(conversation, open, "P", how)];
}

/** What was given to `resumeTurn`, as it was then (R19). Throws RECORD_INVALID, RECORD_NOT_JSON. */
export function resumeGiven(options: ResumeOptions): ResumeOptions {
  const { calls = "close", draft = "discard" } = reading("options", () => ({ ...options }));
  if (typeof calls !== "function" && calls !== "close" && calls !== "rerun") {
    throw invalid('`calls` is "close", "rerun", or a function');
  }
  if (draft !== "discard" && draft !== "keep") throw invalid('`draft` is "discard" or "keep"');
  return { calls, draft };
}

/** What is to be recorded before the turn goes on: what is closed, and what the application says of the outcome of others. */
export interface ResumePlan {
  readonly entries: RepairEntry[];
  readonly outcomes: { readonly call: FoundCall; readonly outcome: Outcome }[];
}

export function planResume<M>(
  conversation: Conversation<M>,
  { calls = "close", draft = "discard" }: ResumeOptions,
): ResumePlan {
  const { turn } = conversation;
  const how: How = turn ? howOf(turn) : { kind: "completed" };
  const open = openCalls(conversation);
  const entries: RepairEntry[] = [];
  const outcomes: { call: FoundCall; outcome: Outcome }[] = [];
  const ending = endings(conversation, open, draft === "keep" ? "keep" : "R", how);
  // Behind words of the model's no call can get its result any more (R1): without one, its step would be left out.
  const isFrozen = ending.some(({ incomplete }) => incomplete);
  for (const call of open) {
    const decided = decide(call, calls);
    if (decided === "close" || (decided === "keep" && isFrozen)) {
      entries.push(...closing(conversation.dialect, call, how));
    } else if (typeof decided === "object") outcomes.push({ call, outcome: decided });
  }
  entries.push(...ending);
  return { entries, outcomes };
}

function decide(call: FoundCall, calls: NonNullable<ResumeOptions["calls"]>): "close" | "keep" | "leave" | Outcome {
  if (call.state === "provider") return "leave";
  if (typeof calls === "function") return calls(openCall(call));
  const row = CALLS[call.state][calls];
  if (row === "keep if safe") return call.replay === "safe" ? "keep" : "close";
  return row;
}

/** The result that says how far a call came. None where it cannot be phrased: then its step is left out (R8). */
export function closing<M>(dialect: Dialect<M>, call: FoundCall, how: How): RepairEntry[] {
  return closed(dialect, call, closingWords(call.state, how), call.state);
}

/** Its id depends on the call alone: the same before and after it is recorded (R1). */
export function closed<M>(dialect: Dialect<M>, call: FoundCall, words: string, synthetic: string): RepairEntry[] {
  const denied = call.approved === false ? { denied: true } : {};
  const message = dialect.result({ id: call.id, name: call.name, ...denied }, { error: words });
  if (message === null || call.message === null) return [];
  const stored = dialect.encode ? dialect.encode(message) : (message as RepairEntry["message"]);
  const place = { message: call.message, index: call.index };
  return [{ id: `${call.message}~${call.index}`, message: stored, synthetic, call: place }];
}

function endings<M>(
  conversation: Conversation<M>,
  open: readonly FoundCall[],
  row: "P" | "R" | "keep",
  how: How,
): RepairEntry[] {
  const { dialect, turn, runs } = conversation;
  const draft = conversation.draft?.content ?? null;
  const tools = { started: runs.strays.map(({ name }) => name), ended: runs.endedStrays.map(({ name }) => name) };
  const ending = ENDINGS[endOf(conversation, open, draft)][row];
  const encoded = (message: M): RepairEntry["message"] =>
    dialect.encode ? dialect.encode(message) : (message as RepairEntry["message"]);
  const entries: RepairEntry[] = [];
  const incomplete = ending.incomplete && draft ? dialect.incomplete(draft.text) : null;
  if (draft && incomplete !== null) {
    entries.push({ id: draft.id, message: encoded(incomplete), synthetic: "draft", incomplete: true });
  }
  const isNamed = tools.started.length + tools.ended.length > 0;
  if (turn && (ending.boundary || isNamed)) {
    const words =
      row === "P" ? boundaryWords(how, tools, incomplete !== null) : goOnWords(how, tools, incomplete !== null);
    const id = `${turn.prompt.id}~${row === "P" ? "end" : turn.resumes + 1}`;
    entries.push({ id, message: encoded(dialect.boundary(words)), synthetic: "boundary" });
  }
  return entries;
}

/** A repair entry as it will look once it is recorded. */
export function madeEntry<M>(
  { dialect, head, at, turns }: Conversation<M>,
  { id, message, synthetic, incomplete, call }: RepairEntry,
): Entry<M> {
  const decoded = dialect.decode ? dialect.decode(message) : (message as M);
  return {
    id,
    seq: head,
    at,
    turn: turns,
    step: id,
    message: decoded,
    metadata: {},
    synthetic,
    ...(incomplete ? { incomplete } : {}),
    ...(call ? { call } : {}),
  };
}
