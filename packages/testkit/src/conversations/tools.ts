import { setTimeout as sleep } from "node:timers/promises";
import type { ToolCall } from "holdfast";
import { haveEffect } from "./effects.ts";
import { FLAW_MS } from "./job.ts";
import { Refused, tell } from "./recorder.ts";
import { type PlacedCall, pause, type Stage, typed, type Work } from "./stage.ts";

const TOOL_MS_MAX = 15;
const SLOW_MS = 300;

/** A run of a tool, and what is known about it in advance. */
interface Run {
  readonly placed: PlacedCall;
  readonly replay: "safe" | "never";
  readonly mark: string;
  readonly text: string;
  /** Which response it belongs to, counted from the first. */
  readonly response: number;
}

interface PastRun extends Run {
  /** Its outcome reaches the model in a message. */
  readonly inMessage: boolean;
  /** Its end is recorded by itself. */
  readonly isEnded: boolean;
}

function newRun({ recorder, random }: Stage, { responses }: Work, placed: PlacedCall): Run {
  const mark = recorder.mark("r");
  const replay = placed.replay ?? (random.chance(0.2) ? "safe" : "never");
  return { placed, mark, text: `${mark} done`, replay, response: responses };
}

/**
 * Runs the calls of a response in parallel. Some are slow; now and then the user stops everything, steers, or queues a
 * prompt meanwhile.
 */
export async function runCalls(stage: Stage, work: Work, calls: readonly PlacedCall[]): Promise<void> {
  const { random, job } = stage;
  if (calls.length > 1 && job.flaw === undefined && random.chance(0.06)) {
    await leaveRunning(stage, work, calls.at(-1)!);
    return runCalls(stage, work, calls.slice(0, -1));
  }
  const inMessages = random.chance(0.4);
  const heldBack: (() => Promise<void>)[] = [];
  const running = calls.map(async (placed) => {
    await pause(stage, TOOL_MS_MAX);
    return runCall(stage, work, placed, inMessages, heldBack);
  });
  if (random.chance(0.07)) {
    await pause(stage, TOOL_MS_MAX * 2);
    work.isPast = true;
    await stage.recorder.try({ do: "abort" }, () => work.turn.abort({ by: "user" }));
  } else if (random.chance(0.25)) await steer(stage, work);
  const ran = (await Promise.all(running)).filter((one) => one !== null);
  if (job.flaw === "results-at-the-end") await sleep(FLAW_MS);
  for (const record of heldBack) await record();
  const held = ran.filter(({ inMessage }) => inMessage);
  if (!work.isPast) return held.length > 0 ? appendResults(stage, work, held) : undefined;
  // Stopped: no message will contain these.
  for (const run of ran) if (!run.isEnded) await end(stage, work, run);
}

/** A slow tool whose result nobody waits for: the model is asked again meanwhile (R18). */
async function leaveRunning(stage: Stage, work: Work, placed: PlacedCall): Promise<void> {
  const { promise: started, resolve } = Promise.withResolvers<void>();
  const take = async (): Promise<void> => {
    resolve();
    act(stage, placed);
    await pause(stage, SLOW_MS);
  };
  work.leftIn = work.responses;
  work.left.push(runByTool(stage, work, newRun(stage, work, placed), take).finally(resolve));
  await started;
}

/**
 * For one call: its start, its effect and its outcome, recorded in one way or another. Null if the turn was stopped
 * before.
 */
async function runCall(
  stage: Stage,
  work: Work,
  placed: PlacedCall,
  inMessages: boolean,
  heldBack: (() => Promise<void>)[],
): Promise<PastRun | null> {
  const { random, job } = stage;
  if (work.isPast) return null;
  const run = newRun(stage, work, placed);
  const take = async (): Promise<void> => {
    await pause(stage, TOOL_MS_MAX);
    act(stage, placed);
    if (job.flaw === "runs-again") await sleep(FLAW_MS);
    await (random.chance(0.08) ? sleep(SLOW_MS) : pause(stage, TOOL_MS_MAX));
  };
  if (random.chance(0.5) && job.flaw === undefined) {
    const isRun = await runByTool(stage, work, run, take);
    return isRun ? { ...run, inMessage: inMessages, isEnded: true } : null;
  }
  if (job.flaw === "runs-before-start") {
    act(stage, placed);
    await sleep(FLAW_MS);
  }
  if (!(await start(stage, work, run, {}))) return null;
  if (job.flaw !== "runs-before-start") await take();
  // Only a message records its outcome.
  if (inMessages && random.chance(0.5)) return { ...run, inMessage: true, isEnded: false };
  if (job.flaw === "results-at-the-end") {
    announceEnd(stage, work, run).ok();
    heldBack.push(() => work.turn.toolEnded(placed.call.id, { value: run.text }));
  } else await end(stage, work, run);
  return { ...run, inMessage: inMessages, isEnded: true };
}

/** With `turn.tool`, its work perhaps in a step. False if the turn was stopped before the tool ran. */
async function runByTool(
  { recorder, ...rest }: Stage,
  work: Work,
  run: Run,
  take: () => Promise<void>,
): Promise<boolean> {
  const { placed, replay, text } = run;
  const starting = recorder.announce({ do: "toolStarted", message: placed.message, call: placed.call.id, replay });
  let ending: ReturnType<typeof announceEnd> | undefined;
  const isStep = rest.random.chance(0.5) && rest.job.flaw === undefined;
  const tool = async (_signal: AbortSignal, { step }: ToolCall): Promise<string> => {
    starting.ok();
    await (isStep ? step("work", take, { replay }) : take());
    ending = announceEnd({ recorder, ...rest }, work, run);
    return text;
  };
  try {
    await work.turn.tool(placed.call.id, tool, { replay });
    // After an abort it resolves, and the tool does not run.
    ending?.ok();
  } catch (error) {
    if (!ending && work.isPast) return refused(() => starting.no(error));
    (ending ?? starting).no(error);
  }
  return ending !== undefined;
}

/** Only the start. False if the turn was stopped in the meantime. */
async function start(
  { recorder }: Stage,
  work: Work,
  run: Run,
  early: { name?: string; input?: unknown },
): Promise<boolean> {
  const { placed, replay } = run;
  const starting = recorder.announce({ do: "toolStarted", message: placed.message, call: placed.call.id, replay });
  try {
    await work.turn.toolStarted(placed.call.id, { replay, ...early });
    starting.ok();
    return true;
  } catch (error) {
    if (work.isPast) return refused(() => starting.no(error));
    return starting.no(error);
  }
}

function announceEnd(
  { recorder }: Stage,
  work: Work,
  { placed, mark, response }: Run,
): ReturnType<Stage["recorder"]["announce"]> {
  const late = work.isPast || work.responses !== response;
  return recorder.announce({ do: "toolEnded", message: placed.message, call: placed.call.id, mark, late });
}

async function end(stage: Stage, work: Work, run: Run): Promise<void> {
  const ending = announceEnd(stage, work, run);
  await work.turn.toolEnded(run.placed.call.id, { value: run.text }).catch((error) => ending.no(error));
  ending.ok();
}

/**
 * A tool that starts while the stream is running (R9): its call is not recorded yet. Resolves to a function that ends
 * it.
 */
export async function startEarly(stage: Stage, work: Work, placed: PlacedCall): Promise<() => Promise<void>> {
  // If the process dies before the call is recorded, only the boundary message tells the model about it.
  const run = { ...newRun(stage, work, placed), response: -1 };
  const { name, input } = placed.call;
  await start(stage, work, run, { name, input });
  act(stage, placed);
  if (!stage.random.chance(0.5)) return () => end(stage, work, run);
  await end(stage, work, run);
  return async () => undefined;
}

function refused(no: () => never): false {
  try {
    return no();
  } catch (error) {
    if (error instanceof Refused) return false;
    throw error;
  }
}

function act({ job }: Stage, { call, message }: PlacedCall): void {
  haveEffect(job.effects, { message, call: call.id, life: job.life });
  tell({ e: "effect", message, call: call.id });
}

/** As the SDKs do: when all tools are back, separate messages tell the model their results. */
async function appendResults({ voice, recorder }: Stage, { turn }: Work, ran: readonly PastRun[]): Promise<void> {
  const messages = voice.results(ran.map(({ placed: { call }, text }) => ({ call, text })));
  const id = recorder.serial();
  const op = { do: "append", id, messages, by: "tools", queued: false, tokens: 0 } as const;
  await recorder.try(op, () => turn.append(messages, { id }));
}

/** A user types while the agent is busy: into the turn, or into the queue. */
export async function steer(stage: Stage, { turn }: Work): Promise<void> {
  const { recorder, random, session } = stage;
  const waiting = session.queue[0];
  if (waiting && random.chance(0.5)) {
    const { id, prompt } = waiting;
    const op = { do: "append", id, messages: [prompt], by: "user", queued: true, tokens: 0 } as const;
    await recorder.try(op, () => turn.append(waiting));
    return;
  }
  const message = typed(stage, "s");
  const id = recorder.serial();
  if (random.chance(0.5)) await recorder.try({ do: "enqueue", id, message }, () => session.enqueue(message, { id }));
  else {
    const op = { do: "append", id, messages: [message], by: "user", queued: false, tokens: 0 } as const;
    await recorder.try(op, () => turn.append(message, { id }));
  }
}
