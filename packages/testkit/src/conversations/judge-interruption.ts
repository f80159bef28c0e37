import type { OpenCall } from "holdfast";
import { marksIn, type Op } from "./events.ts";
import type { Evidence, ConversationFault as Fault } from "./evidence.ts";
import type { LoggedCall } from "./log.ts";

/** The precision of timers: some milliseconds. */
const SLACK_MS = 12;

/**
 * The report on the interrupted turn (P5): how it ended, which calls were open and how far they got, and what had been
 * streamed.
 */
export function interruptionFaults(evidence: Evidence): Fault[] {
  return [...endFaults(evidence), ...callFaults(evidence), ...draftFaults(evidence), ...wordFaults(evidence)];
}

const TURNS = ["start", "resume", "end", "abort", "fail", "suspend"] as const;
const KINDS = { start: "killed", resume: "killed", abort: "aborted", fail: "failed", suspend: "suspended" } as const;

/** The last thing done to the turn, if it is known to be done, and the conversation was not replaced since. */
function lastTurnOp({ log }: Evidence): LoggedCall<Extract<Op, { do: (typeof TURNS)[number] }>> | null {
  const last = log.of(...TURNS).at(-1);
  if (last?.answer !== "ok") return null;
  const isReplaced = log
    .of("replace", "undo")
    .some(({ at, op }) => at > last.at && (op.do === "undo" || op.reason !== "compaction"));
  return isReplaced ? null : last;
}

function endFaults(evidence: Evidence): Fault[] {
  const last = lastTurnOp(evidence);
  if (!last) return [];
  const { interruption } = evidence.reading;
  const { op } = last;
  const wanted = op.do === "end" ? undefined : KINDS[op.do];
  const found = interruption?.how.kind;
  if (found !== wanted)
    return [
      { what: "interruption", message: `after ${op.do} the turn is ${found ?? "over"}, not ${wanted ?? "over"}` },
    ];
  if (op.do === "start" && interruption?.prompt.id !== op.id)
    return [{ what: "interruption", message: `the prompt is ${interruption?.prompt.id}, not ${op.id}` }];
  return [];
}

const placeOf = ({ message, call }: { readonly message: string; readonly call: string }): string =>
  `${message} ${call}`;

/** Each state against what is on disk, and no call missing. */
function callFaults(evidence: Evidence): Fault[] {
  const { log, history, effects, reading } = evidence;
  const { interruption } = reading;
  if (!interruption) return [];
  const fault = (place: string, why: string): Fault => ({ what: "interruption", message: `call ${place}: ${why}` });
  const faults: Fault[] = [];
  const ran = new Set(effects.map(placeOf));
  const started = new Set(
    history.filter(({ kind }) => kind === "tool.started").map(({ message, call }) => `${message} ${call}`),
  );
  const states = new Map<string, OpenCall["state"]>();
  for (const { id, message, state } of interruption.calls) {
    const place = `${message} ${id}`;
    states.set(place, state);
    if (state !== "outcome-unknown" && ran.has(place)) faults.push(fault(place, `${state}, and it had its effect`));
    if (state === "never-started" && started.has(place))
      faults.push(fault(place, "never started, and its start is recorded"));
    if (state === "outcome-unknown" && !started.has(place) && !started.has(`null ${id}`))
      faults.push(fault(place, "of unknown outcome, and never started"));
    if (state === "unrecorded" || state === "provider")
      faults.push(fault(place, `${state}, by an agent that records every start`));
  }
  const last = log.of("start", "resume").at(-1);
  const isReplaced = log.of("replace", "undo", "edit").some(({ at }) => at > (last?.at ?? 0));
  if (last?.answer !== "ok" || isReplaced) return faults;
  const answered = JSON.stringify(log.of("append").map(({ op }) => (op.by === "tools" ? op.messages : [])));
  const responses = log.of("append", "commit").filter(({ op }) => op.do === "commit" || op.by === "model");
  const since = log.of("toolStarted", "toolEnded").filter(({ at }) => at > last.at);
  for (const [place, tries] of Map.groupBy(since, ({ op }) => placeOf(op))) {
    const isEnded = tries.some(({ op, answer }) => op.do === "toolEnded" && answer === "ok");
    const mayHaveEnded = tries.some(({ op }) => op.do === "toolEnded") || isIn(answered, place);
    const isStarted = tries.some(({ op, answer }) => op.do === "toolStarted" && answer === "ok");
    if (isEnded && states.has(place)) faults.push(fault(place, `it ended, and is ${states.get(place)}`));
    // Once the model has continued without it, the past is frozen: it was told that the tool is still running (R1).
    const isFrozen = responses.some(({ at }) => at > tries[0]!.at);
    const state = states.get(place) ?? states.get(`null ${tries[0]!.op.call}`);
    if (isStarted && !mayHaveEnded && !isFrozen && state !== "outcome-unknown")
      faults.push(fault(place, `it was running, and is ${state ?? "not mentioned"}`));
  }
  return faults;
}

/** Whether a message with results may have answered the call. */
function isIn(answered: string, place: string): boolean {
  return answered.includes(JSON.stringify(place.split(" ")[1]));
}

/** C2: text shown for longer than `draftMs` comes back, and nothing that was not shown. */
function draftFaults({ log, draftMs, reading }: Evidence): Fault[] {
  const last = log.of("draft").at(-1);
  if (!last) return [];
  const { draft } = last.op;
  const after = log.tried.filter(({ at }) => at > last.at);
  const isOver = after.some(({ op }) => {
    const isAnswer = op.do === "append" && op.by === "model";
    return isAnswer || ["commit", "discard", "start", "resume", "end", "replace", "undo"].includes(op.do);
  });
  if (isOver) return [];
  const pushed = log
    .saidOf("push")
    .filter(({ event }) => event.draft === draft)
    .map(({ event }) => event.text)
    .join("");
  const shown = log.saidOf("pushed").filter(({ event }) => event.draft === draft);
  const beat = log.saidOf("beat").findLast(({ life }) => life === last.life)?.event.t ?? 0;
  const isStopped = after.some(({ op, answer }) => ["abort", "fail", "suspend"].includes(op.do) && answer === "ok");
  const old = shown.filter(({ event }) => isStopped || event.t <= beat - draftMs - SLACK_MS);
  const least = old.reduce((chars, { event }) => chars + event.chars, 0);
  const found = reading.interruption?.draft?.text ?? "";
  if (reading.interruption?.draft?.gap) return [{ what: "words", message: `the draft ${draft} has a gap` }];
  if (!pushed.startsWith(found))
    return [{ what: "words", message: `the draft holds ${found}, and ${pushed} was streamed` }];
  if (found.length >= least) return [];
  return [
    { what: "words", message: `${least} characters had been shown for ${draftMs} ms, and ${found.length} came back` },
  ];
}

/** C36: the text of a discarded attempt never appears as the model's. */
function wordFaults({ log, reading }: Evidence): Fault[] {
  const wordsOf = (draft: string): string =>
    log
      .saidOf("push")
      .filter(({ event }) => event.draft === draft)
      .map(({ event }) => event.text)
      .join("");
  const gone = new Set<string>();
  for (const { op } of log.ok("discard"))
    for (const mark of marksIn(wordsOf(op.draft))) if (mark[1] === "f") gone.add(mark);
  // A resumed turn continues without the text of the stream that died, unless it was to be kept.
  for (const { op, at } of log.ok("resume")) {
    if (op.draft !== "discard") continue;
    const since = log.of("start", "resume").findLast((one) => one.at < at)?.at ?? 0;
    for (const { op: one, at: then } of log.of("draft"))
      if (then > since && then < at) for (const mark of marksIn(wordsOf(one.draft))) gone.add(mark);
  }
  for (const { op } of log.of("commit", "append")) for (const mark of marksIn(op.messages)) gone.delete(mark);
  const { messages, interruption } = reading;
  const back = marksIn([messages, interruption?.draft?.text ?? ""]).filter((mark) => gone.has(mark));
  return back.map((mark) => ({ what: "words", message: `${mark} was discarded, and came back` }));
}
