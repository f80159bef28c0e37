import { defined } from "../../defined.ts";
import type { Outcome } from "../../dialects/dialect.ts";
import { newId } from "../../journal/id.ts";
import type { UnansweredCall } from "../../view/interruption.ts";
import { settledErrorWords, settledWords } from "../../view/model-words.ts";
import type { SessionContext } from "./context.ts";
import { appendOutcome } from "./outcome.ts";
import { askProbe, type Probe, type ProbeAnswer, type ProbeOptions } from "./probe.ts";

/** Where the outcomes that a probe found are known from (P3). */
export const PROBED = "probe";

/** Asks a probe what happened to a call. */
export function askAbout(
  probe: Probe,
  call: UnansweredCall,
  options: ProbeOptions,
  stopped?: AbortSignal,
): Promise<ProbeAnswer> {
  const { id, name, input, key = null, startedAt = "", before, process } = call;
  const asked = { ...{ id, name, input, key, startedAt }, ...defined({ before, process }) };
  return askProbe(probe, asked, [name, `the call ${id}`], options, stopped);
}

/** Records what a probe found, if it found anything. Returns the outcome; null if the call has none. */
export async function recordAnswer<M>(
  context: SessionContext<M>,
  turn: number,
  { id: call, name, message, index }: UnansweredCall,
  answer: ProbeAnswer,
): Promise<Outcome | null> {
  const { log, admission } = context;
  const place = { message: message!, index };
  if (answer === "did-not-happen") {
    await log.append([{ kind: "tool.unstarted", turn, call, ...place, source: PROBED }]);
    return null;
  }
  if (answer === "unknown") return null;
  const ended = admission.outcome(answer);
  const { value, error } = ended;
  const text = typeof value === "string" || value === undefined ? value : JSON.stringify(value);
  const words = error === undefined ? { value: settledWords(text) } : { error: settledErrorWords(error) };
  const shown = admission.dialect.result({ id: call, name }, words) ?? undefined;
  await appendOutcome(
    context,
    { kind: "tool.ended", id: newId(), turn, call, ...place, name, source: PROBED },
    ended,
    shown,
  );
  return answer;
}
