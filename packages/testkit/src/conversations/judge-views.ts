import { canonical } from "../providers/canonical.ts";
import type { Violation } from "../providers/violation.ts";
import { changesPast, marksIn, type Op } from "./events.ts";
import type { Evidence, ConversationFault as Fault } from "./evidence.ts";
import type { Log } from "./log.ts";
import type { Message, Voice } from "./voices.ts";

/** What the model sees: its provider accepts it (P4), its past does not change (R1), and nothing is missing. */
export function viewFaults(evidence: Evidence): Fault[] {
  return [
    ...requestFaults(evidence),
    ...nextFaults(evidence),
    ...pastFaults(evidence),
    ...againFaults(evidence),
    ...markFaults(evidence),
  ];
}

function stepsBefore(log: Log, at: number): (readonly Message[])[] {
  const said = log
    .of("append", "commit")
    .filter((one) => one.at < at && (one.op.do === "commit" || one.op.by === "model"));
  return said.map(({ op }) => op.messages);
}

const told = (violations: readonly Violation[]): string =>
  violations.map(({ rule, at, why }) => `${rule} ${at}: ${why}`).join("; ");

/** Checks every request of the last life as its provider would. Earlier lives have been checked. */
function requestFaults({ log, voice }: Evidence): Fault[] {
  return log
    .saidOf("asked")
    .filter(({ life }) => life === log.life)
    .flatMap(({ event, at }) => {
      // An application that hid or dropped everything has nothing to ask.
      if (event.view.length === 0 && log.tried.some((one) => one.at < at && changesPast(one.op))) return [];
      const violations = voice.judge(event.view, stepsBefore(log, at));
      return violations.length > 0 ? [{ what: "refused" as const, message: `a request: ${told(violations)}` }] : [];
    });
}

/** What comes back after a death: with a prompt after it; and as it is, where the turn can be resumed. */
function nextFaults({ log, voice, reading }: Evidence): Fault[] {
  const { messages, interruption } = reading;
  const steps = stepsBefore(log, Number.POSITIVE_INFINITY);
  const faults: Fault[] = [];
  const prompted = voice.judge([...messages, voice.user("and now?")], steps);
  if (prompted.length > 0) faults.push({ what: "refused", message: `with a prompt after it: ${told(prompted)}` });
  // If text was streamed after an answer, or the application said that the answer was not final, `resumeTurn` asks the
  // model to continue, as it does after an answer alone.
  const isOpenEnded =
    interruption?.draft || interruption?.how?.kind === "failed" || interruption?.how?.kind === "suspended";
  const isAnswered = interruption?.answered || (isOpenEnded && isModels(messages.at(-1)));
  if (interruption && !isAnswered && messages.length > 0) {
    const asIs = voice.judge(messages, steps);
    if (asIs.length > 0) faults.push({ what: "refused", message: `as it is: ${told(asIs)}` });
  }
  return faults;
}

function isModels(message: Message | undefined): boolean {
  return message?.["role"] === "assistant" || message?.["role"] === "model";
}

/** Counts how often the application changed the past: hiding and editing reach the model at the next turn. */
function eras(log: Log): (at: number) => number {
  const changes: number[] = [];
  let isPending = false;
  const started = new Set<string>();
  for (const { op, at, answer } of log.tried) {
    if (answer === "no") continue;
    if (changesPast(op)) {
      changes.push(at);
      if (op.do === "edit" || op.do === "patch") isPending = true;
    } else if (op.do === "start" && isPending) {
      changes.push(at);
      // A turn start that a death cut off may never have been written; or it was, and sending its prompt again resumes
      // that turn (R15): then the next one brings the change.
      isPending = answer !== "ok" || started.has(op.id);
    }
    if (op.do === "start") started.add(op.id);
  }
  return (at) => changes.filter((change) => change < at).length;
}

/** C35: a view that a model saw is the beginning of every later one, over all lives. */
function pastFaults({ log, voice, reading }: Evidence): Fault[] {
  const eraOf = eras(log);
  const seen = log.saidOf("asked").filter(({ event }) => event.settled);
  const views = seen.map(({ event, at }) => ({ view: event.view, era: eraOf(at) }));
  views.push({ view: reading.messages as readonly Message[], era: eraOf(Number.POSITIVE_INFINITY) });
  return views.slice(1).flatMap(({ view, era }, i) => {
    const before = views[i]!;
    const why = before.era === era ? difference(voice, before.view, view) : null;
    return why ? [{ what: "past" as const, message: why }] : [];
  });
}

function difference(voice: Voice, before: readonly Message[], after: readonly Message[]): string | null {
  const now = voice.atoms(after);
  for (const [i, atom] of voice.atoms(before).entries())
    if (canonical(atom) !== canonical(now[i]))
      return `at ${i} the model saw ${canonical(atom)}, and now ${canonical(now[i])}`;
  return null;
}

const HARMLESS: readonly Op["do"][] = ["draft", "discard", "note", "usage", "rename", "enqueue", "dequeue", "close"];

/** A turn that died while waiting for the model repeats its request when resumed. */
function againFaults({ log }: Evidence): Fault[] {
  const asked = log.saidOf("asked");
  return log.ok("resume").flatMap(({ op, at }) => {
    const before = asked.findLast((one) => one.at < at);
    const after = asked.find((one) => one.at > at);
    if (op.draft !== "discard" || !before?.event.settled || !after) return [];
    const between = log.tried.filter((one) => one.at > before.at && one.at < after.at && one.at !== at);
    const isOther = between.some((one) => !HARMLESS.includes(one.op.do) && !(one.op.do === "patch" && !one.op.hides));
    if (isOther || canonical(before.event.view) === canonical(after.event.view)) return [];
    return [{ what: "past" as const, message: "a resumed request is not the one that died" }];
  });
}

/** Each text acknowledged since the application last changed the past is in the view once. */
function markFaults({ log, reading }: Evidence): Fault[] {
  const eraOf = eras(log);
  const now = eraOf(Number.POSITIVE_INFINITY);
  const counts = new Map<string, number>();
  for (const mark of marksIn(reading.messages)) counts.set(mark, (counts.get(mark) ?? 0) + 1);
  const faults: Fault[] = [];
  for (const [mark, count] of counts)
    if (count > 1) faults.push({ what: "twice", message: `${mark} is in the view ${count} times` });
  const asked = log.saidOf("asked");
  for (const { op, at, answeredAt } of log.ok("start", "append", "commit", "toolEnded")) {
    if (eraOf(at) !== now) continue;
    // The model was asked before the outcome arrived: it may be late.
    const isOvertaken = asked.some((one) => one.at > at && one.at < answeredAt);
    const marks =
      op.do === "toolEnded"
        ? op.late || isOvertaken
          ? []
          : [op.mark]
        : marksIn(op.do === "start" ? op.message : op.messages);
    // Reasoning is left out where a provider requires that.
    for (const mark of marks)
      if (mark[1] !== "t" && !counts.has(mark))
        faults.push({ what: "lost", message: `${mark} of an acknowledged ${op.do} is not in the view` });
  }
  return faults;
}
