import type { Conversation } from "../conversation/conversation.ts";
import type { AcceptedRequest, DraftContent } from "../conversation/draft-state.ts";
import type { ToolProcess } from "../conversation/records/records.ts";
import type { ToolStart } from "../conversation/tool-starts.ts";
import { recordsStarts, type TurnState } from "../conversation/turn-state.ts";
import { defined } from "../defined.ts";
import type { Entry } from "../dialects/dialect.ts";
import type { Json } from "../journal/record.ts";
import { endedAs, isHandedOver } from "../session-state.ts";
import { endsWithAnswer } from "./arrange.ts";

/** How far a step of a call got. `unknown`: it had started. */
export interface CallStep {
  readonly name: string;
  readonly state: "finished" | "failed" | "unknown";
}

export interface OpenCall {
  readonly id: string;
  /** The message that makes it; null if the process died before recording that message. */
  readonly message: string | null;
  readonly name: string;
  readonly input: unknown;
  readonly startedAt?: string;
  readonly replay?: "never" | "safe";
  readonly child?: string;
  /** The idempotency key that its tool was given; absent if it never started. */
  readonly key?: string;
  /** It was started and has not taken effect, so it counts as never started: who said so ("probe"). */
  readonly unstarted?: string;
  /** The program that started it can ask what happened to it. */
  readonly probe?: true;
  /** What that program noted before it started. */
  readonly before?: Json;
  /** Where the tool was recorded as running (`turn.toolProcess`): it may still be running there. */
  readonly process?: ToolProcess;
  /** Its steps, in the order in which they started; absent if it has none. */
  readonly steps?: readonly CallStep[];
  /** A person's decision about it; absent if nobody has decided. */
  readonly approved?: boolean;
  readonly state: "never-started" | "outcome-unknown" | "unrecorded" | "awaiting" | "provider";
}

/** A call whose outcome was unknown after a crash, and is known since somebody was asked. */
export interface SettledCall {
  readonly id: string;
  readonly name: string;
  /** Where it is known from: "probe" if the tool's service was asked. */
  readonly source: string;
  /** It has not taken effect: it counts as never started. */
  readonly unstarted: boolean;
}

export interface Interruption<M> {
  readonly turn: number;
  readonly startedAt: string;
  readonly lastAt: string;
  /** How often the turn has been resumed: lets a supervisor give up on a poisoned turn (R16). */
  readonly resumes: number;
  /** The same since the last progress, and without hand-overs: after too many, workers park the turn. */
  readonly attempts: number;
  readonly prompt: Entry<M>;
  /**
   * The model had answered, no call is open, and the turn neither failed nor waits: only its end is missing. Do not ask
   * the model again: `session.completeTurn()` ends it as completed, and so does the next `startTurn`.
   */
  readonly answered: boolean;
  readonly how:
    | { readonly kind: "killed" }
    | { readonly kind: "signal"; readonly signal: string }
    | { readonly kind: "aborted"; readonly by: string; readonly reason?: string }
    | { readonly kind: "failed"; readonly error: string }
    /** The process that closed the session handed the turn over: it continues as if nothing had happened. */
    | { readonly kind: "handed-over" }
    /**
     * `until`: when it continues by itself. `parked`: workers gave up after that many tries. Otherwise it waits for a
     * person.
     */
    | { readonly kind: "suspended"; readonly reason: string; readonly until?: string; readonly parked?: number };
  /** The streamed text. `gap`: a piece was lost to damage, and the text is cut there. */
  readonly draft: DraftContent | null;
  /**
   * The provider has accepted the last request (`draft.accepted`), and may still be answering it. Resume the turn, and
   * `turn.request()` says whether its answer still counts.
   */
  readonly accepted: AcceptedRequest | null;
  readonly calls: readonly OpenCall[];
  /** The turn's calls whose outcome was unknown, and is known since somebody was asked. */
  readonly settled: readonly SettledCall[];
}

/** A call without a result, and its position. */
export interface UnansweredCall extends OpenCall {
  readonly index: number;
  /** The seq of its start. */
  readonly startedSeq?: number;
}

/**
 * How a turn ended, for the words that tell the model. The words are recorded with their repair, so a later release may
 * change them (R1).
 */
export type How = Interruption<unknown>["how"] | { readonly kind: "completed" };

/** How a turn ended, if it did. */
export function howOf<M>({ ended, suspended, signal }: TurnState<M>): How {
  if (ended?.outcome === "aborted") {
    const { by = "", reason } = ended;
    return reason === undefined ? { kind: "aborted", by } : { kind: "aborted", by, reason };
  }
  if (ended?.outcome === "failed") return { kind: "failed", error: ended.error ?? "" };
  if (ended && endedAs(ended.outcome, ended.by) === "completed") return { kind: "completed" };
  if (suspended && !ended) {
    const { reason, until, parked } = suspended;
    return isHandedOver(suspended)
      ? { kind: "handed-over" }
      : { kind: "suspended", reason, ...defined({ until, parked }) };
  }
  if (signal?.error !== undefined) return { kind: "failed", error: signal.error };
  return signal ? { kind: "signal", signal: signal.signal } : { kind: "killed" };
}

/** The calls without a result at the end of the conversation, in order. */
export function openCalls<M>({ exchange, toolStarts, turn }: Conversation<M>): UnansweredCall[] {
  // Asked for every answer, and nearly always every call has its result by then.
  if (exchange.isAnswered) return [];
  const isRecorded = turn !== null && recordsStarts(turn);
  const waiting = new Set(turn?.suspended?.calls);
  const found: UnansweredCall[] = [];
  for (const { item, index, call, answer, approved } of exchange.calls) {
    if (answer) continue;
    const { id, name, input, by, awaiting } = call;
    const message = item.entry.id;
    const run = toolStarts.of(message, index);
    // Nobody has decided, or the decision was not to run it.
    const isWaiting = approved === null ? awaiting === true || waiting.has(id) : !approved;
    // The starts of earlier turns are forgotten, so nothing can be said about their calls (R5).
    const idle = toolStarts.unstarted(message, index);
    const isKnown = (isRecorded && item.entry.turn === turn.number) || idle !== null;
    const withoutRun = isWaiting ? "awaiting" : isKnown ? "never-started" : "unrecorded";
    const state = by === "provider" ? "provider" : run ? "outcome-unknown" : withoutRun;
    found.push({
      ...{ id, message, index, name, input, state },
      ...(run ? { ...startOf(run), startedSeq: run.seq } : {}),
      ...(idle ? { ...defined({ key: idle.idempotencyKey, unstarted: idle.unstarted }), ...stepsOf(idle) } : {}),
      ...(approved === null ? {} : { approved }),
    });
  }
  return found;
}

/** Drops the members that are internal to this room. */
export function openCall({ index: _index, startedSeq: _seq, ...call }: UnansweredCall): OpenCall {
  return call;
}

/** Tools that were started although their call was never recorded (R9). */
function callsStartedEarly<M>({ toolStarts }: Conversation<M>): UnansweredCall[] {
  return toolStarts.earlyStarts.map((run) => {
    const { call: id, name, input, seq: startedSeq } = run;
    return { id, message: null, index: 0, name, input, ...startOf(run), startedSeq, state: "outcome-unknown" };
  });
}

/** The calls that a tool was started for, with an outcome that nobody knows. */
export function callsInDoubt<M>(conversation: Conversation<M>): UnansweredCall[] {
  const open = openCalls(conversation).filter(({ state }) => state === "outcome-unknown");
  return [...open, ...callsStartedEarly(conversation)];
}

function settledCalls<M>(conversation: Conversation<M>, turn: number): SettledCall[] {
  const { items, dialect, toolStarts } = conversation;
  const settled: SettledCall[] = [];
  for (const { entry } of items) {
    const { call: place, source } = entry;
    if (source === undefined || entry.turn !== turn || !place) continue;
    const said = conversation.find(place.message)?.entry.message;
    const call = said && dialect.calls(said)[place.index];
    if (call) settled.push({ id: call.id, name: call.name, source, unstarted: false });
  }
  for (const { call: id, name, source } of toolStarts.earlyEnds)
    if (source !== undefined) settled.push({ id, name, source, unstarted: false });
  for (const { call: id, name, unstarted: source = "" } of toolStarts.unstartedStarts)
    settled.push({ id, name, source, unstarted: true });
  return settled;
}

function startOf(run: ToolStart) {
  const { at, replay, child, process, idempotencyKey: key, probe, before } = run;
  const start = { startedAt: at, replay: replay ?? ("never" as const) };
  return { ...start, ...defined({ child, process, key, probe, before }), ...stepsOf(run) };
}

function stepsOf(run: ToolStart): Pick<OpenCall, "steps"> {
  if (!run.steps) return {};
  const steps = [...run.steps].map(([name, { ended }]): CallStep => {
    return { name, state: ended ? (ended.error === undefined ? "finished" : "failed") : "unknown" };
  });
  return { steps };
}

/** The calls of the last turn that have no result, recorded or not. */
export function callsInFlight<M>(conversation: Conversation<M>, open = openCalls(conversation)): OpenCall[] {
  return [...open, ...callsStartedEarly(conversation)].map(openCall);
}

/** What was in flight when the last turn was cut off (P5). Null if it completed, or was left for another. */
export function interruptionOf<M>(conversation: Conversation<M>): Interruption<M> | null {
  const { turn } = conversation;
  if (!turn) return null;
  const how = howOf(turn);
  if (how.kind === "completed") return null;
  const { number, startedAt, lastAt, resumes, attempts, prompt } = turn;
  const open = openCalls(conversation);
  const draft = conversation.draft?.content ?? null;
  const calls = callsInFlight(conversation, open);
  // An application that reports the turn as failed or waiting means that its answer is not final.
  const isOpenEnded = turn.ended?.outcome === "failed" || how.kind === "suspended";
  const answered = !isOpenEnded && calls.length === 0 && endOf(conversation, open, draft) === "answered";
  const settled = settledCalls(conversation, number);
  const accepted = acceptedOf(conversation);
  return { turn: number, startedAt, lastAt, resumes, attempts, prompt, answered, how, draft, accepted, calls, settled };
}

/** The accepted request without an answer, as the application sees it. */
export function acceptedOf<M>({ accepted, items }: Conversation<M>): AcceptedRequest | null {
  if (!accepted) return null;
  const { handle, acceptedAt, asked } = accepted;
  return { handle, acceptedAt, saidSince: (items.at(-1)?.entry.seq ?? 0) > asked };
}

/** How a turn that did not complete ends: the rows of the table in repairs.ts. */
export type End = "completed" | "answered" | "draft" | "draft behind an answer" | "cut";

export function endOf<M>(
  conversation: Conversation<M>,
  open: readonly UnansweredCall[],
  draft: DraftContent | null,
): End {
  const { turn, dialect } = conversation;
  if (!turn || howOf(turn).kind === "completed") return "completed";
  // What counts is how the request would end, not what is recorded (R2). An accepted request was sent after the answer.
  const isAnswered = !conversation.accepted && open.length === 0 && endsWithAnswer(conversation);
  if (draft && dialect.incomplete(draft.text) !== null) return isAnswered ? "draft behind an answer" : "draft";
  return isAnswered ? "answered" : "cut";
}
