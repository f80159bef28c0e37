import type { JournalRecord } from "holdfast";
import type { Effect } from "./effects.ts";
import type { Evidence, ConversationFault as Fault } from "./evidence.ts";

const placeOf = (of: object): string => {
  const { message, call } = of as { readonly message?: unknown; readonly call?: unknown };
  return `${message} ${call}`;
};

/** Starts are durable before tools run, outcomes are kept, and nothing runs twice that must not. */
export function toolFaults({ log, history, effects }: Evidence): Fault[] {
  const faults: Fault[] = [];
  const starts = Map.groupBy(
    history.filter(({ kind }) => kind === "tool.started"),
    placeOf,
  );
  // A start whose call is not recorded yet is recorded again, under its id, when an epoch begins.
  const ends = new Map(history.filter(({ kind }) => kind === "tool.ended").map((record) => [record["id"], record]));
  // A tool may start before its call is recorded (R9): then its start names no message.
  const startsOf = (place: string, call: string): readonly JournalRecord[] => [
    ...(starts.get(`null ${call}`) ?? []),
    ...(starts.get(place) ?? []),
  ];
  for (const { op } of log.ok("toolStarted"))
    if (startsOf(placeOf(op), op.call).length === 0)
      faults.push({ what: "lost", message: `the start of call ${placeOf(op)}` });
  for (const [place, ran] of Map.groupBy(effects, placeOf)) {
    const recorded = startsOf(place, ran[0]!.call);
    if (recorded.length < ran.length)
      faults.push({
        what: "unrecorded start",
        message: `call ${place} had ${ran.length} effects and ${recorded.length} starts`,
      });
    const isSafe = recorded.slice(0, -1).every(({ replay }) => replay === "safe");
    if (ran.length > 1 && !isSafe)
      faults.push({
        what: "ran twice",
        message: `call ${place} had its effect in lives ${ran.map(({ life }) => life)}`,
      });
  }
  const texts = [...ends.values()].map((record) => JSON.stringify(record));
  for (const { op, answer } of log.of("toolEnded")) {
    const times = texts.filter((text) => text.includes(op.mark)).length;
    if (answer === "ok" && times === 0)
      faults.push({ what: "lost", message: `the outcome ${op.mark} of call ${placeOf(op)}` });
    if (times > 1)
      faults.push({ what: "twice", message: `the outcome ${op.mark} of call ${placeOf(op)} is there ${times} times` });
  }
  return [...faults, ...stepFaults(history), ...closingFaults(history, effects)];
}

/** A step that has ended never starts again. */
function stepFaults(history: readonly JournalRecord[]): Fault[] {
  const steps = Map.groupBy(
    history.filter(({ kind, carried }) => kind.startsWith("step.") && carried !== true),
    (record) => `${record["step"]} of call ${placeOf(record)}`,
  );
  return [...steps].flatMap(([step, records]): Fault[] => {
    const end = records.findIndex(({ kind }) => kind === "step.ended");
    const isTwice = end >= 0 && records.slice(end).some(({ kind }) => kind === "step.started");
    return isTwice ? [{ what: "ran twice", message: `the step ${step} started again after its end` }] : [];
  });
}

/** P3: the model is never told that a tool did not run if it did. */
function closingFaults(history: readonly JournalRecord[], effects: readonly Effect[]): Fault[] {
  const faults: Fault[] = [];
  for (const { kind, entries } of history) {
    if (kind !== "repair") continue;
    for (const { call, message } of entries as unknown as { call?: { message: string }; message: unknown }[]) {
      const words = JSON.stringify(message);
      if (!call || !/[Nn]ot run|never started|did not run/.test(words)) continue;
      const ran = effects.find((one) => one.message === call.message && words.includes(JSON.stringify(one.call)));
      if (ran)
        faults.push({
          what: "interruption",
          message: `call ${placeOf(ran)} had its effect, and the model is told ${words}`,
        });
    }
  }
  return faults;
}
