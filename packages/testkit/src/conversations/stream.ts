import { setTimeout as sleep } from "node:timers/promises";
import type { Draft } from "holdfast";
import { FLAW_MS } from "./job.ts";
import { tell } from "./recorder.ts";
import type { PlacedCall, Stage, Work } from "./stage.ts";
import { startEarly, steer } from "./tools.ts";
import type { Message, Step } from "./voices.ts";

const BEAT_MS = 10;
const CHARS_MAX = 24;

/** Records a response that was not streamed. Returns the calls to run. */
export async function recordWhole(
  { random, recorder }: Stage,
  { turn }: Work,
  step: Step,
  messages: Message[],
): Promise<PlacedCall[]> {
  const tokens = 1 + random.below(1000);
  const usage = { inputTokens: tokens };
  const id = recorder.serial();
  const op = { do: "append", id, messages, by: "model", queued: false, tokens } as const;
  await recorder.try(op, () => turn.append(messages, { id, usage }));
  // A retry by a client that could not know it had been recorded (R15).
  if (random.chance(0.2)) await turn.append(messages, { id, usage });
  return placed(step, messages, id);
}

function placed({ calls }: Step, messages: readonly Message[], id: string): PlacedCall[] {
  return calls.map((call) => {
    const at = messages.findIndex((message) => JSON.stringify(message).includes(JSON.stringify(call.id)));
    return { call, message: at === 0 ? id : `${id}.${at}` };
  });
}

/** The draft of an answer, and the answer as it will be recorded. */
export interface Attempt {
  readonly draft: Draft<Message>;
  readonly messages: Message[];
}

/**
 * Streams a response to the user, and records it when it is complete. Returns the calls to run; null if the user
 * stopped it.
 */
export async function stream(
  stage: Stage,
  work: Work,
  step: Step,
  attempt: Attempt,
  retry: () => Attempt,
): Promise<PlacedCall[] | null> {
  const { random, recorder, job } = stage;
  const { turn } = work;
  const tokens = 1 + random.below(1000);
  const usage = { inputTokens: tokens };
  let { draft, messages } = attempt;
  using _beats = beats();
  // A stream that fails midway, and is requested again.
  while (random.chance(0.15)) {
    await speak(stage, work, draft, `${recorder.mark("f")} ${step.text ?? ""}`, 0.6);
    if (job.flaw === "mixes-attempts") {
      recorder.announce({ do: "discard", draft: draft.id }).ok();
      await sleep(FLAW_MS);
    } else if (random.chance(0.5)) {
      const failed = draft;
      await recorder.try({ do: "discard", draft: failed.id }, () => failed.discard("the stream broke off"));
      ({ draft, messages } = retry());
    } else {
      // A second request discards the draft of the first (R10).
      const discarding = recorder.announce({ do: "discard", draft: draft.id });
      ({ draft, messages } = retry());
      discarding.ok();
    }
  }
  if (step.reasoning !== null) draft.push({ part: 0, reasoning: step.reasoning });
  if (step.text !== null) await speak(stage, work, draft, step.text, 1);
  for (const [index, { id: callId, name, input }] of step.calls.entries())
    draft.push({ part: 2 + index, call: { id: callId, name }, input: JSON.stringify(input) });
  if (random.chance(0.05)) {
    work.isPast = true;
    await recorder.try({ do: "abort" }, () => turn.abort({ by: "user" }));
    return null;
  }
  const { id } = draft;
  const [first, ...others] = placed(step, messages, id);
  const isEarly =
    first !== undefined && !first.call.id.startsWith("call_0") && job.flaw === undefined && random.chance(0.08);
  const end = isEarly ? await startEarly(stage, work, first) : null;
  const op = { do: "commit", draft: draft.id, id, messages, tokens } as const;
  await recorder.try(op, () => draft.commit(messages, { usage }));
  await end?.();
  return end ? others : placed(step, messages, id);
}

async function speak(stage: Stage, work: Work, draft: Draft<Message>, text: string, share: number): Promise<void> {
  const { random, job } = stage;
  const end = Math.floor(text.length * share);
  for (let at = 0; at < end; ) {
    const next = Math.min(end, at + 1 + random.below(CHARS_MAX));
    const piece = text.slice(at, next);
    at = next;
    // The model no longer sees it: it comes after the answer (R1).
    if (random.chance(0.02)) await steer(stage, work);
    tell({ e: "push", draft: draft.id, text: piece });
    if (job.flaw !== "keeps-its-words") draft.push({ part: 1, text: piece });
    tell({ e: "pushed", draft: draft.id, chars: piece.length, t: performance.now() });
    await sleep(random.below(random.chance(0.2) ? job.draftMs : 8));
  }
  if (job.flaw === "keeps-its-words") await sleep(FLAW_MS);
}

/** Reports when timers have run during a stream, including the draft's. */
function beats(): Disposable {
  const timer = setInterval(() => {
    const t = performance.now();
    // By the end of this round of the event loop, every timer that was due at `t` has run.
    setImmediate(() => tell({ e: "beat", t }));
  }, BEAT_MS);
  return { [Symbol.dispose]: () => clearInterval(timer) };
}
