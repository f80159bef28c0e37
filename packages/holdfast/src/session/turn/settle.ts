import { defined } from "../../defined.ts";
import type { Outcome } from "../../dialects/dialect.ts";
import { newId } from "../../journal/id.ts";
import { callsInDoubt, type UnansweredCall } from "../../view/interruption.ts";
import { PROBED, settledErrorWords, settledWords } from "../../view/model-words.ts";
import type { SessionContext } from "./context.ts";
import { appendOutcome, type Ended } from "./outcome.ts";
import { askProbe, type Probe, type ProbeAnswer, type ProbeOptions } from "./probe.ts";

/** What came of asking about a call. */
export type Settlement =
  /** Its outcome was found, and is recorded. */
  | { readonly kind: "outcome"; readonly outcome: Outcome }
  /** It has not taken effect, and that is recorded. `call`: where it is now. */
  | { readonly kind: "unstarted"; readonly call: UnansweredCall }
  /** Nobody can tell. */
  | { readonly kind: "unknown"; readonly call: UnansweredCall }
  /** Meanwhile it got a result, or is no longer in the conversation. */
  | { readonly kind: "gone" };

/**
 * Asks what happened to a call, and records what was found. `assertOpen`: whether it may still be recorded, asked after
 * the answer. Throws its errors, the reason of `stopped`, and store errors.
 */
export async function settleCall<M>(
  context: SessionContext<M>,
  turn: number,
  call: UnansweredCall,
  probe: Probe,
  options: ProbeOptions,
  stopped: AbortSignal,
  assertOpen: () => void,
): Promise<Settlement> {
  const { log, conversation, admission } = context;
  const found = await askAbout(probe, call, options, stopped);
  // Until then its place may have changed, and it may have got a result.
  if (log.isBehind) await log.caughtUp();
  stopped.throwIfAborted();
  assertOpen();
  const now = callsInDoubt(conversation).find((one) => one.startedSeq === call.startedSeq && one.id === call.id);
  if (!now) return { kind: "gone" };
  const { id, name, message, index } = now;
  const place = message === null ? { message } : { message, index };
  // A tool that this process has started may be on its way still.
  const isOurs = call.startedSeq !== undefined && call.startedSeq > log.since;
  if (found === "unknown" || (found === "did-not-happen" && isOurs)) return { kind: "unknown", call: now };
  if (found === "did-not-happen") {
    await log.append([{ kind: "tool.unstarted", turn, call: id, ...place, source: PROBED }]);
    return { kind: "unstarted", call: now };
  }
  const phrase = ({ value, error }: Ended): M | undefined => {
    const text = typeof value === "string" || value === undefined ? value : JSON.stringify(value);
    const words = error === undefined ? { value: settledWords(text) } : { error: settledErrorWords(error) };
    return admission.dialect.result({ id, name }, words) ?? undefined;
  };
  const record = { kind: "tool.ended", id: newId(), turn, call: id, ...place, name, source: PROBED } as const;
  await appendOutcome(context, record, admission.outcome(found), undefined, phrase);
  return { kind: "outcome", outcome: found };
}

/** Asks a probe what happened to a call. */
function askAbout(
  probe: Probe,
  call: UnansweredCall,
  options: ProbeOptions,
  stopped: AbortSignal,
): Promise<ProbeAnswer> {
  const { id, name, input, key = null, startedAt = "", before, process } = call;
  const asked = { ...{ id, name, input, key, startedAt }, ...defined({ before, process }) };
  return askProbe(probe, asked, [name, `the call ${id}`], options, stopped);
}
