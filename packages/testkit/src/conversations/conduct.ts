import { setTimeout as sleep } from "node:timers/promises";
import type { Draft, Interruption, OpenCall, Outcome, ResumeOptions, Turn } from "holdfast";
import type { Op } from "./events.ts";
import { extras } from "./extras.ts";
import { FLAW_MS } from "./job.ts";
import { respond } from "./model.ts";
import { tell } from "./recorder.ts";
import { type PlacedCall, pause, type Stage, typed, type Work } from "./stage.ts";
import { type Attempt, recordWhole, stream } from "./stream.ts";
import { runCalls } from "./tools.ts";
import type { Message, ModelCall } from "./voices.ts";

const RESPONSES_MAX = 7;

/** One turn of an agent: resumes an interrupted one, or starts another. */
export async function liveTurn(stage: Stage, isFirst: boolean): Promise<void> {
  await extras(stage, null);
  const begun = await begin(stage, isFirst);
  const work: Work = { turn: begun.turn, isPast: false, responses: 0, left: [], leftIn: -1 };
  if (begun.open.length > 0) await runCalls(stage, work, begun.open);
  for (let nth = 0; !work.isPast && nth < RESPONSES_MAX; nth++) {
    await extras(stage, work);
    const isLast = await respondOnce(stage, work, nth);
    if (isLast) break;
  }
  if (!work.isPast) await finish(stage, work);
  await Promise.all(work.left);
}

/** Asks the model, records its response, and runs its calls. True if this was the final answer. */
async function respondOnce(stage: Stage, work: Work, nth: number): Promise<boolean> {
  const { job, voice, recorder, random } = stage;
  const nthOfAll = work.responses++;
  const { view, draft } = request(stage, work, nthOfAll);
  const isStreamed = random.chance(0.8);
  if (isStreamed) recorder.announce({ do: "draft", draft: draft.id }).ok();
  await pause(stage, 10);
  const mark = (kind: string): string => recorder.mark(kind);
  const repeatsIds = job.voice === "openai-chat" && job.seed % 2 === 0;
  const step = respond({ seed: job.seed, view, nth, serial: recorder.serial(), mark, repeatsIds });
  /** The request is made again. The answer is signed for what the model is sent now. */
  const retry = (): Attempt => {
    const again = request(stage, work, nthOfAll);
    recorder.announce({ do: "draft", draft: again.draft.id }).ok();
    return { draft: again.draft, messages: voice.step(step, again.view) };
  };
  const messages = voice.step(step, view);
  const calls = isStreamed
    ? await stream(stage, work, step, { draft, messages }, retry)
    : await recordWhole(stage, work, step, messages);
  if (calls === null || step.calls.length === 0) return true;
  if (calls.length === 0) return false;
  if (random.chance(0.1)) return suspend(stage, work, calls);
  await runCalls(stage, work, calls);
  return false;
}

/** What the model is asked with. `nth`: the number of responses before this one. */
function request(
  { session, job }: Stage,
  { turn, leftIn }: Work,
  nth: number,
): { readonly view: readonly Message[]; readonly draft: Draft<Message> } {
  const { messages, draft } = turn.request();
  const view = job.flaw === "sends-entries" ? session.entries.map(({ message }) => message) : messages;
  tell({ e: "asked", view, settled: turn.open.length === 0 && leftIn !== nth });
  return { view, draft };
}

/** Some calls need a person's approval: the others run, then the turn waits (R7). */
async function suspend(stage: Stage, work: Work, calls: readonly PlacedCall[]): Promise<true> {
  const { random, recorder } = stage;
  const first = random.below(calls.length);
  if (first > 0) await runCalls(stage, work, calls.slice(0, first));
  if (work.isPast) return true;
  const waiting = calls.slice(first).map(({ call }) => call.id);
  work.isPast = true;
  await recorder.try({ do: "suspend", calls: waiting }, () =>
    work.turn.suspend({ reason: "approval", calls: waiting }),
  );
  return true;
}

async function finish({ random, recorder }: Stage, { turn }: Work): Promise<void> {
  const dice = random.next();
  if (dice < 0.05) await recorder.try({ do: "fail" }, () => turn.fail(new Error("the provider hung up")));
  else if (dice < 0.1) await recorder.try({ do: "abort" }, () => turn.abort({ by: "user", reason: "enough" }));
  else await recorder.try({ do: "end" }, () => turn.end());
}

interface OpenTurn {
  readonly turn: Turn<Message>;
  readonly open: readonly PlacedCall[];
}

async function begin(stage: Stage, isFirst: boolean): Promise<OpenTurn> {
  const { session, random, recorder, job } = stage;
  const { interruption, queue } = session;
  if (isFirst && job.retry) return { turn: await start(stage, job.retry.message, job.retry.id), open: [] };
  if (interruption && random.chance(0.65)) return resume(stage, interruption);
  const waiting = queue[0];
  if (waiting && job.flaw === "delivers-twice")
    return { turn: await start(stage, waiting.prompt, recorder.serial()), open: [] };
  if (waiting && random.chance(0.7)) {
    const op: Op = { do: "start", id: waiting.id, message: waiting.prompt, queued: true };
    return { turn: await recorder.try(op, () => session.startTurn(waiting)), open: [] };
  }
  return { turn: await start(stage, typed(stage, "p"), recorder.serial()), open: [] };
}

async function start({ recorder, session, job }: Stage, message: Message, id: string): Promise<Turn<Message>> {
  const op: Op = { do: "start", id, message, queued: false };
  if (job.flaw !== "acknowledges-early") return recorder.try(op, () => session.startTurn(message, { id }));
  recorder.announce(op).ok();
  await sleep(FLAW_MS);
  return session.startTurn(message, { id });
}

/** Resumes a turn with one policy or another, and runs what the library says to run. */
async function resume(stage: Stage, { turn: number }: Interruption<Message>): Promise<OpenTurn> {
  const { session, random, recorder, job } = stage;
  const draft = random.chance(0.3) ? "keep" : "discard";
  const policy = job.flaw === "runs-again" ? "again" : random.pick(["close", "rerun", "rerun", "each"] as const);
  const isApproved = random.chance(0.6);
  const each = (call: OpenCall): "close" | "keep" | Outcome => decide(stage, call, isApproved);
  const calls: ResumeOptions["calls"] = policy === "each" ? each : policy === "again" ? runAgain : policy;
  const op: Op = { do: "resume", turn: number, draft, calls: policy };
  const turn = await recorder.try(op, () => session.resumeTurn({ calls: calls!, draft }));
  const open = turn.open.map(({ id, name, input, message, replay }) => ({
    call: { id, name, input: input as ModelCall["input"] },
    message: message ?? "",
    ...(replay ? { replay } : {}),
  }));
  return { turn, open };
}

/** The flaw: it says of every call that it has not taken effect. */
function runAgain({ state }: OpenCall): "keep" | "did-not-happen" {
  return state === "outcome-unknown" ? "did-not-happen" : "keep";
}

function decide(
  { random, recorder }: Stage,
  { state, replay }: OpenCall,
  isApproved: boolean,
): "close" | "keep" | Outcome {
  if (state === "awaiting") return isApproved ? "keep" : { error: "denied" };
  if (state === "never-started") return random.pick(["close", "keep", "keep"] as const);
  if (state === "outcome-unknown" && replay === "safe" && random.chance(0.7)) return "keep";
  return random.chance(0.5) ? "close" : { value: `${recorder.mark("o")} checked by hand` };
}
