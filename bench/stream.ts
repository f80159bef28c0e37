import { monitorEventLoopDelay } from "node:perf_hooks";
import { setTimeout as sleep } from "node:timers/promises";
import { type AnthropicMessage, type Delta, openStore } from "holdfast";

const PER_SECOND = 200;
const SLICES = 6;
/** As fine as the clock of timers is. It is part of every value that the histogram has. */
const RESOLUTION_MS = 1;
const WORDS = "the file and its test read a line of code from src/index.ts then write what changed".split(" ");

/** What a process found about its own event loop while it streamed, in equal slices of the time. */
export interface Streamed {
  readonly deltas: number;
  /** By how much the loop was late, p95 of each slice. */
  readonly p95Ms: readonly number[];
}

/**
 * An answer of the model's that comes in 200 deltas per second, words and a growing tool input: gathered, as any agent
 * does; and with a `root`, recorded as a draft in a store there.
 */
export async function streamed(root: string, seconds: number): Promise<Streamed> {
  const recorder = root === "" ? null : await record(root);
  const said = { text: "", input: "" };
  const loop = monitorEventLoopDelay({ resolution: RESOLUTION_MS });
  const p95Ms: number[] = [];
  let deltas = 0;
  const start = performance.now();
  const push = (): void => {
    const delta = deltaOf(deltas++);
    said.text += delta.text ?? "";
    said.input += delta.input ?? "";
    recorder?.push(delta);
  };
  const timer = setInterval(() => {
    while (deltas < ((performance.now() - start) / 1000) * PER_SECOND) push();
  }, 1000 / PER_SECOND);
  loop.enable();
  for (let slice = 0; slice < SLICES; slice++) {
    await sleep((seconds * 1000) / SLICES);
    p95Ms.push(loop.percentile(95) / 1e6 - RESOLUTION_MS);
    loop.reset();
  }
  loop.disable();
  clearInterval(timer);
  await recorder?.end(said.text);
  return { deltas, p95Ms };
}

function deltaOf(i: number): Delta {
  const word = `${WORDS[i % WORDS.length]!} `;
  if (i === 3) return { part: 1, call: { id: "call_1", name: "edit" }, input: word };
  return i % 4 === 3 ? { part: 1, input: word } : { part: 0, text: word };
}

async function record(
  root: string,
): Promise<{ readonly push: (delta: Delta) => void; readonly end: (text: string) => Promise<void> }> {
  const store = await openStore(root);
  const session = await store.create<AnthropicMessage>({ dialect: "anthropic" });
  const turn = await session.startTurn({ role: "user", content: "Go on." });
  const { draft } = turn.request();
  return {
    push: (delta) => draft.push(delta),
    end: async (text) => {
      await draft.commit({ role: "assistant", content: text });
      await turn.end();
      await store.close();
    },
  };
}
