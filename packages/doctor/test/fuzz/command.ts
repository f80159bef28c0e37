import { existsSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { Worker } from "node:worker_threads";
import { AGENTS } from "../../src/index.ts";
import { readCorpus } from "./corpus.ts";
import { Inputs } from "./input.ts";
import type { Message, Task } from "./worker.ts";

const HELP = `npm run fuzz-readers -- [options]

Gives every reader of the doctor, its judge, plans and repairs bytes that nobody wrote: recorded sessions with random
changes, and garbage. Nothing may throw or hang, no readable record may be lost, a second fix may change nothing. Exits
with 1 if an input breaks one of these; the input is kept in the folder that it prints.

  --inputs <n>    how many inputs (default 1000000)
  --seed <n>      the seed (default: another one each time; it is printed)
  --from <n>      the first input of this seed, as a failure names it (default 0)
  --agent <name>  only this agent: ${AGENTS.map(({ name }) => name).join(", ")}
  --fail <n>      stop after this many failures (default 20)

Example: npm run fuzz-readers -- --seed 1 --from 4711 --inputs 1
`;
/** An input that takes longer hangs. */
const HANG_MS = 120_000;

const { values } = parseArgs({
  options: {
    inputs: { type: "string", default: "1000000" },
    seed: { type: "string", default: String(Math.floor(Math.random() * 2 ** 31)) },
    from: { type: "string", default: "0" },
    agent: { type: "string" },
    fail: { type: "string", default: "20" },
    help: { type: "boolean" },
  },
});

if (values.help) process.stdout.write(HELP);
else process.exitCode = await main();

function whole(name: "inputs" | "seed" | "from" | "fail"): number {
  if (/^\d{1,12}$/.test(values[name])) return Number(values[name]);
  process.stderr.write(`--${name} takes a whole number, not "${values[name]}"\n`);
  process.exit(2);
}

async function main(): Promise<number> {
  const [seed, from, inputs, most] = [whole("seed"), whole("from"), whole("inputs"), whole("fail")];
  const { agent } = values;
  if (agent !== undefined && !AGENTS.some(({ name }) => name === agent)) {
    process.stderr.write(`--agent takes ${AGENTS.map(({ name }) => name).join(", ")}, not "${agent}"\n`);
    return 2;
  }
  // A million files: in memory, where the system has such a folder.
  const scratch = mkdtempSync(join(existsSync("/dev/shm") ? "/dev/shm" : tmpdir(), "holdfast-fuzz-"));
  const failures = join(tmpdir(), `holdfast-fuzz-failures-${seed}`);
  const corpus = readCorpus().filter((file) => agent === undefined || file.agent.name === agent);
  const made = new Inputs(corpus, seed);
  process.stdout.write(`seed ${seed}, inputs ${from} to ${from + inputs - 1}, from ${corpus.length} files\n`);
  const started = performance.now();
  let failed = 0;
  let next = from;
  const report = (index: number, property: string, words: string): void => {
    failed++;
    mkdirSync(failures, { recursive: true });
    const input = made.at(index);
    const path = join(failures, `${index}-${input.agent.name}-${input.name}`);
    writeFileSync(path, input.bytes);
    process.stdout.write(`FAILED input ${index} (${input.agent.name}) ${property}\n${words}\n  ${path}\n`);
  };
  const tell = (): void => {
    const seconds = Math.round((performance.now() - started) / 1_000);
    process.stdout.write(`${next - from} inputs in ${seconds} s, ${failed} failures\n`);
  };
  try {
    // After a hang, another worker goes on behind the input.
    while (next < from + inputs && failed < most) {
      const task: Task = { seed, from: next, to: from + inputs, failuresMax: most - failed, scratch, agent };
      const hung = await runWorker(task, (message) => {
        if (message.type === "failed") report(message.index, message.property, message.words);
        else if (message.type === "at") {
          next = message.index;
          tell();
        } else next = message.index;
      });
      if (hung !== null) {
        report(hung.index, "nothing hangs", hung.words);
        next = hung.index + 1;
      }
    }
  } finally {
    rmSync(scratch, { recursive: true, force: true });
  }
  tell();
  if (failed > 0)
    process.stdout.write(
      `To repeat one: npm run fuzz-readers -- --seed ${seed} --from <input> --inputs 1${agent ? ` --agent ${agent}` : ""}\n`,
    );
  return failed > 0 ? 1 : 0;
}

/** Until it is done; the input at which it hung or died, if it did. */
function runWorker(task: Task, on: (message: Message) => void): Promise<{ index: number; words: string } | null> {
  const at = new BigInt64Array(new SharedArrayBuffer(8));
  return new Promise((resolve) => {
    const worker = new Worker(new URL("worker.ts", import.meta.url), { workerData: { ...task, at } });
    let last = -1n;
    let since = performance.now();
    const end = (result: { index: number; words: string } | null): void => {
      clearInterval(timer);
      void worker.terminate().then(() => resolve(result));
    };
    const timer = setInterval(() => {
      const index = Atomics.load(at, 0);
      if (index !== last) {
        last = index;
        since = performance.now();
      } else if (performance.now() - since > HANG_MS)
        end({ index: Number(index), words: `longer than ${HANG_MS / 1_000} s` });
    }, 500);
    worker.on("message", (message: Message) => {
      on(message);
      if (message.type === "done") end(null);
    });
    worker.on("error", (error) => end({ index: Number(Atomics.load(at, 0)), words: String(error) }));
  });
}
