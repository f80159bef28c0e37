import { rmSync } from "node:fs";
import { join } from "node:path";
import { parentPort, workerData } from "node:worker_threads";
import { readCorpus } from "./corpus.ts";
import { Inputs } from "./input.ts";
import { Broken, checkInput } from "./properties.ts";

export interface Task {
  readonly seed: number;
  readonly from: number;
  readonly to: number;
  readonly failuresMax: number;
  readonly scratch: string;
  readonly agent: string | undefined;
}

export type Message =
  | { readonly type: "failed"; readonly index: number; readonly property: string; readonly words: string }
  | { readonly type: "at" | "done"; readonly index: number };

const TELL_INPUTS = 10_000;
/** Every so many inputs the executor writes: it syncs, which takes longer than all the rest. */
const EXECUTES_EVERY = 40;
const DETECTS_EVERY = 10;
const MS = 300;
const MS_PER_BYTE = 0.03;

const { at, ...task } = workerData as Task & { readonly at: BigInt64Array };
const inputs = new Inputs(
  readCorpus().filter(({ agent }) => task.agent === undefined || agent.name === task.agent),
  task.seed,
);
const say = (message: Message): void => parentPort!.postMessage(message);
let failures = 0;
let index = task.from;
for (; index < task.to && failures < task.failuresMax; index++) {
  Atomics.store(at, 0, BigInt(index));
  try {
    const ms = await timed();
    const bytes = inputs.at(index).bytes.length;
    // Slow once may be a collection of garbage.
    if (ms > MS + bytes * MS_PER_BYTE && Math.min(await timed(), await timed()) > MS + bytes * MS_PER_BYTE)
      throw new Broken("the time for each byte is bounded", `${Math.round(ms)} ms for ${bytes} bytes`);
  } catch (error) {
    failures++;
    const property = error instanceof Broken ? error.property : "nothing throws";
    const cause = error instanceof Error && error.cause instanceof Error ? `\n${error.cause.stack}` : "";
    say({ type: "failed", index, property, words: `${error instanceof Error ? error.message : error}${cause}` });
  }
  if (index % EXECUTES_EVERY === 0) rmSync(join(task.scratch, "backups"), { recursive: true, force: true });
  if ((index + 1) % TELL_INPUTS === 0) say({ type: "at", index: index + 1 });
}
say({ type: "done", index });

async function timed(): Promise<number> {
  const input = inputs.at(index);
  // Of this thread alone: the machine may be busy.
  const started = process.threadCpuUsage();
  await checkInput(input, task.scratch, {
    executes: index % EXECUTES_EVERY === 0,
    detects: index % DETECTS_EVERY === 0,
  });
  const { user, system } = process.threadCpuUsage(started);
  return (user + system) / 1_000;
}
