import type { Conversation } from "../conversation/conversation.ts";
import type { RepairEntry, SessionRecord } from "../conversation/records/records.ts";
import { isContinued } from "../conversation/turn-state.ts";
import { defined } from "../defined.ts";
import type { Dialect, Entry, Outcome } from "../dialects/dialect.ts";
import { modelChangesWords } from "./changes-words.ts";
import { type CallPolicy, decideCall, factsOf } from "./decide-call.ts";
import {
  type End,
  endOf,
  type How,
  howOf,
  interruptionOf,
  type OpenCall,
  openCall,
  openCalls,
  type UnansweredCall,
} from "./interruption.ts";
import { boundaryWords, goOnWords, resultWords } from "./model-words.ts";

export interface ResumeOptions {
  /**
   * What happens to calls without a result. "close" (default): the model is told how far each got. "rerun": calls that
   * are safe to run again (never started, or recorded with `replay: "safe"`) stay open, in `turn.open`, and so do those
   * whose probe can be asked: `turn.tool` asks it. A policy says
   * in data what the program can do and what it knows (`decideCall` has the rule). A function decides per call: close
   * it, keep it open, say that it has not taken effect (then it may run), or return its outcome.
   */
  readonly calls?: "close" | "rerun" | CallPolicy | ((call: OpenCall) => "close" | "keep" | "did-not-happen" | Outcome);
  /**
   * What happens to the streamed text. "discard" (default): the request is the one that died. "keep": the text is shown
   * as an incomplete message; calls before it are closed, since no result can follow it.
   */
  readonly draft?: "discard" | "keep";
}

/** Ends a turn that another one replaces: as completed if only its end is missing, else as left. */
export function leaveTurn<M>(conversation: Conversation<M>): SessionRecord[] {
  const { turn } = conversation;
  if (!turn || turn.ended) return [];
  const outcome = interruptionOf(conversation)?.answered ? "completed" : "left";
  return [{ kind: "turn.ended", turn: turn.number, outcome }];
}

interface Ending {
  /** The streamed text is shown as an incomplete message. */
  readonly incomplete: boolean;
  /** A message in the user's role reports the interruption. */
  readonly boundary: boolean;
}

const NOTHING: Ending = { incomplete: false, boundary: false };
const BOUNDARY: Ending = { incomplete: false, boundary: true };
const BOTH: Ending = { incomplete: true, boundary: true };

/**
 * With a new prompt (P), with `resumeTurn` (R), and with `resumeTurn({ draft: "keep" })`. If tools were started whose
 * calls are lost, there is always a boundary, which names them.
 */
export const END_REPAIRS: { readonly [E in End]: { readonly P: Ending; readonly R: Ending; readonly keep: Ending } } = {
  completed: { P: NOTHING, R: NOTHING, keep: NOTHING },
  answered: { P: NOTHING, R: BOUNDARY, keep: BOUNDARY },
  draft: { P: BOTH, R: NOTHING, keep: BOTH },
  "draft behind an answer": { P: BOTH, R: BOUNDARY, keep: BOTH },
  cut: { P: BOUNDARY, R: NOTHING, keep: NOTHING },
};

/** What to record before a new prompt. */
export function repairForPrompt<M>(conversation: Conversation<M>): RepairEntry[] {
  const { turn } = conversation;
  const how: How = turn ? howOf(turn) : { kind: "completed" };
  const open = openCalls(conversation);
  const results = open.flatMap((call) => closingResult(conversation.dialect, call, how));
  return [...results, ...repairsForEnd(conversation, open, "P", how)];
}

/** What to record before the turn continues: repairs, and the outcomes that the application supplies. */
export interface ResumePlan {
  readonly entries: RepairEntry[];
  readonly outcomes: { readonly call: UnansweredCall; readonly outcome: Outcome }[];
  /** Calls whose start has not taken effect. */
  readonly unstarted: UnansweredCall[];
}

/** `clean`: hides credentials in what the program found in files. */
export function planResume<M>(
  conversation: Conversation<M>,
  { calls = "close", draft = "discard" }: ResumeOptions,
  clean: (text: string) => string = (text) => text,
): ResumePlan {
  const { turn } = conversation;
  const how: How = turn ? howOf(turn) : { kind: "completed" };
  const open = openCalls(conversation);
  const entries: RepairEntry[] = [];
  const outcomes: { call: UnansweredCall; outcome: Outcome }[] = [];
  const unstarted: UnansweredCall[] = [];
  const ending = repairsForEnd(conversation, open, draft === "keep" ? "keep" : "R", how);
  // After the model's words no call can get a result any more (R1), and without one its step would be left out.
  const isFrozen = ending.some(({ incomplete }) => incomplete);
  for (const call of open) {
    const decided = decide(call, calls);
    if (decided === "close" || (isFrozen && (decided === "keep" || decided === "did-not-happen"))) {
      entries.push(...synthesizeResult(conversation.dialect, call, how));
    } else if (typeof decided === "object" && "closing" in decided) {
      const words = `${resultWords(call.state, how)} ${clean(decided.closing)}`;
      entries.push(...synthesizeResultSaying(conversation.dialect, call, words, call.state));
    } else if (typeof decided === "object") outcomes.push({ call, outcome: decided });
    else if (decided === "did-not-happen" && call.startedSeq !== undefined) unstarted.push(call);
  }
  entries.push(...ending);
  return { entries, outcomes, unstarted };
}

function decide(
  call: UnansweredCall,
  calls: NonNullable<ResumeOptions["calls"]>,
): "close" | "keep" | "leave" | "did-not-happen" | { readonly closing: string } | Outcome {
  if (typeof calls === "function") return call.state === "provider" ? "leave" : calls(openCall(call));
  const policy = typeof calls === "object" ? calls : { runs: calls === "rerun" };
  switch (decideCall(call, policy)) {
    case "leave":
      return "leave";
    case "settle":
      return factsOf(call, policy).outcome!;
    case "tell-model": {
      const { report, changes } = factsOf(call, policy);
      const isUnknown = call.state === "outcome-unknown" && changes !== undefined;
      const since = isUnknown ? modelChangesWords(changes) : null;
      if (report !== undefined) return { error: since === null ? report : `${report}\n${since}` };
      if (since !== null) return { closing: since };
      // Denied: the framework that asked the person also tells the model, with the reason.
      return call.approved === false && policy.asks ? "keep" : "close";
    }
    case "run":
      return call.state === "outcome-unknown" ? "did-not-happen" : "keep";
    default:
      return "keep";
  }
}

/** The result that closes a call before a new prompt. None for a call that the provider runs. */
export function closingResult<M>(dialect: Dialect<M>, call: UnansweredCall, how: How): RepairEntry[] {
  return decideCall(call, {}) === "leave" ? [] : synthesizeResult(dialect, call, how);
}

/**
 * The result that says how far a call got. None if the dialect cannot phrase it: then the call's step is left out (R8).
 */
export function synthesizeResult<M>(dialect: Dialect<M>, call: UnansweredCall, how: How): RepairEntry[] {
  return synthesizeResultSaying(dialect, call, resultWords(call.state, how, call), call.state);
}

/** Its id depends only on the call, so it is the same before and after it is recorded (R1). */
export function synthesizeResultSaying<M>(
  dialect: Dialect<M>,
  call: UnansweredCall,
  words: string,
  synthetic: string,
): RepairEntry[] {
  const denied = call.approved === false ? { denied: true } : {};
  const message = dialect.result({ id: call.id, name: call.name, ...denied }, { error: words });
  if (message === null || call.message === null) return [];
  const stored = dialect.encode ? dialect.encode(message) : (message as RepairEntry["message"]);
  const place = { message: call.message, index: call.index };
  return [{ id: `${call.message}~${call.index}`, message: stored, synthetic, call: place }];
}

function repairsForEnd<M>(
  conversation: Conversation<M>,
  open: readonly UnansweredCall[],
  row: "P" | "R" | "keep",
  how: How,
): RepairEntry[] {
  const { dialect, turn, toolStarts } = conversation;
  const draft = conversation.draft?.content ?? null;
  const ends = toolStarts.earlyEnds;
  const tools = {
    started: toolStarts.earlyStarts.map(({ name }) => name),
    ended: ends.filter(({ error }) => error === undefined).map(({ name }) => name),
    failed: ends.filter(({ error }) => error !== undefined).map(({ name }) => name),
  };
  const ending = END_REPAIRS[endOf(conversation, open, draft)][row];
  const encoded = (message: M): RepairEntry["message"] =>
    dialect.encode ? dialect.encode(message) : (message as RepairEntry["message"]);
  const entries: RepairEntry[] = [];
  const incomplete = ending.incomplete && draft ? dialect.incomplete(draft.text) : null;
  if (draft && incomplete !== null) {
    entries.push({ id: draft.id, message: encoded(incomplete), synthetic: "draft", incomplete: true });
  }
  const isNamed = tools.started.length + ends.length > 0;
  if (turn && (ending.boundary || isNamed)) {
    const words =
      row === "P" ? boundaryWords(how, tools, incomplete !== null) : goOnWords(how, tools, incomplete !== null);
    // A continuation has no number of its own.
    const nth = isContinued(turn) ? `at ${conversation.head}` : turn.resumes + 1;
    const id = `${turn.prompt.id}~${row === "P" ? "end" : nth}`;
    entries.push({ id, message: encoded(dialect.boundary(words)), synthetic: "boundary" });
  }
  return entries;
}

/** A repair entry as it will look once recorded. */
export function repairedEntry<M>(
  { dialect, head, at, turns }: Conversation<M>,
  { id, message, synthetic, incomplete, call }: RepairEntry,
): Entry<M> {
  const decoded = dialect.decode ? dialect.decode(message) : (message as M);
  return {
    ...{ id, seq: head, at, turn: turns, step: id, message: decoded, metadata: {}, synthetic },
    ...defined({ incomplete, call }),
  };
}
