import { setTimeout as sleep } from "node:timers/promises";
import { haveEffect } from "./effects.ts";
import { Refused, tell } from "./recorder.ts";
import { type PlacedCall, pause, type Stage, typed, type Work } from "./stage.ts";

const TOOL_MS_MAX = 15;
const SLOW_MS = 300;

/** How the outcome of a tool is recorded: by `turn.tool`, by the two calls that it is made of, or in a message alone. */
type Manner = "tool" | "started and ended" | "message";

interface Ran {
  readonly placed: PlacedCall;
  readonly text: string;
  readonly inMessage: boolean;
}

/** Runs the calls of a response, all at once. Some are slow; now and then the user stops it all, steers, or queues a prompt meanwhile. */
export async function runCalls(stage: Stage, work: Work, calls: readonly PlacedCall[]): Promise<void> {
  const { random, job } = stage;
  const inMessages = random.chance(0.4);
  const heldBack: (() => Promise<void>)[] = [];
  const running = calls.map(async (placed) => {
    await pause(stage, TOOL_MS_MAX);
    return runCall(stage, work, placed, inMessages, heldBack);
  });
  const isStopped = random.chance(0.07);
  if (isStopped) {
    await pause(stage, TOOL_MS_MAX * 2);
    work.isPast = true;
    await stage.recorder.try({ do: "abort" }, () => work.turn.abort({ by: "user" }));
  } else if (random.chance(0.25)) await steer(stage, work);
  const ran = (await Promise.all(running)).filter((one) => one !== null);
  if (job.flaw === "results-at-the-end") await sleep(20);
  for (const record of heldBack) await record();
  const held = ran.filter(({ inMessage }) => inMessage);
  if (!work.isPast && held.length > 0) await appendResults(stage, work, held);
}

/** Of one call: its start, its effect, its outcome. Null if the turn was stopped before. */
async function runCall(
  stage: Stage,
  work: Work,
  placed: PlacedCall,
  inMessages: boolean,
  heldBack: (() => Promise<void>)[],
): Promise<Ran | null> {
  const { recorder, random, job } = stage;
  const { turn } = work;
  const { call, message } = placed;
  if (work.isPast) return null;
  const manner: Manner = random.chance(0.5)
    ? "tool"
    : inMessages && random.chance(0.5)
      ? "message"
      : "started and ended";
  const replay = random.chance(0.2) ? ("safe" as const) : ("never" as const);
  const mark = recorder.mark("r");
  const text = `${mark} done`;
  const take = async (): Promise<string> => {
    await pause(stage, TOOL_MS_MAX);
    act(stage, placed);
    await (random.chance(0.08) ? sleep(SLOW_MS) : pause(stage, TOOL_MS_MAX));
    return text;
  };
  const start = () => recorder.announce({ do: "toolStarted", message, call: call.id, replay });
  const end = () => recorder.announce({ do: "toolEnded", message, call: call.id, mark, late: work.isPast });

  if (job.flaw === "runs-before-start") {
    act(stage, placed);
    await sleep(20);
  }
  if (manner === "tool" && job.flaw === undefined) {
    const starting = start();
    let ending: ReturnType<typeof end> | undefined;
    try {
      await turn.tool(
        call.id,
        async () => {
          starting.ok();
          const value = await take();
          ending = end();
          return value;
        },
        { replay },
      );
      // After an abort it answers, and the tool is not run.
      ending?.ok();
    } catch (error) {
      (ending ?? starting).no(error);
    }
    return ending ? { placed, text, inMessage: inMessages } : null;
  }
  const starting = start();
  try {
    await turn.toolStarted(call.id, { replay });
    starting.ok();
  } catch (error) {
    // Stopped in the meantime: the call is not started any more.
    if (work.isPast) return refused(() => starting.no(error));
    starting.no(error);
  }
  if (job.flaw !== "runs-before-start") await take();
  if (manner === "message") return { placed, text, inMessage: true };
  const ending = end();
  const record = async (): Promise<void> => {
    await turn.toolEnded(call.id, { value: text }).catch((error) => ending.no(error));
  };
  if (job.flaw === "results-at-the-end") heldBack.push(record);
  else await record();
  ending.ok();
  return { placed, text, inMessage: inMessages };
}

function refused(no: () => never): null {
  try {
    return no();
  } catch (error) {
    if (error instanceof Refused) return null;
    throw error;
  }
}

function act({ job }: Stage, { call, message }: PlacedCall): void {
  haveEffect(job.effects, { message, call: call.id, life: job.life });
  tell({ e: "effect", message, call: call.id });
}

/** As the SDKs do it: when all tools are back, their results are told to the model in messages of their own. */
async function appendResults(stage: Stage, { turn }: Work, ran: readonly Ran[]): Promise<void> {
  const { voice, recorder } = stage;
  const messages = voice.results(ran.map(({ placed: { call }, text }) => ({ call, text })));
  const id = recorder.serial();
  const op = { do: "append", id, messages, by: "tools", queued: false, tokens: 0 } as const;
  await recorder.try(op, () => turn.append(messages, { id }));
}

/** Somebody types while the agent is busy: into the turn, or into the queue. */
export async function steer(stage: Stage, { turn }: Work): Promise<void> {
  const { recorder, random, session } = stage;
  const waiting = session.queue[0];
  if (waiting && random.chance(0.5)) {
    const op = {
      do: "append",
      id: waiting.id,
      messages: [waiting.prompt],
      by: "user",
      queued: true,
      tokens: 0,
    } as const;
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
