import { validateAnthropic } from "@holdfast/testkit";
import { seededRandom } from "@holdfast/testkit/internal/simulation";
import { afterEach, expect, test } from "vitest";
import { seedOf } from "../../../holdfast/test/seed.ts";
import { needsWorkerd, TestWorker } from "../workers/workerd.ts";

const seed = seedOf(import.meta.url, "kill");
const LIVES = 12;
/** Of the example: how soon a dead object's turn goes on. */
const WAKE_MS = 10_000;
const KILLS = 3;

/** What was built, as a Worker of an application imports it. */
const built = { conditions: [] };

let worker: TestWorker | undefined;
afterEach(() => worker?.remove());

async function start(source: string): Promise<TestWorker> {
  worker = await TestWorker.create(source, built);
  await worker.start();
  return worker;
}

test("P1, P6: what an object acknowledged is there when it was killed or evicted, in order and in whole units", async (context) => {
  needsWorkerd(context);
  const random = seededRandom(seed);
  const started = await start("drill-worker.ts");
  let acknowledged = 0;
  for (let life = 0; life < LIVES; life++) {
    const lines = linesOf(await started.fetch("/write"));
    const first = (await lines.next()).value ?? "";
    const { found, isInOrder } = JSON.parse(first) as { readonly found: number; readonly isInOrder: boolean };
    expect({ isInOrder, isWhole: found % 8 === 0 || found % 8 >= 4 }, first).toEqual({
      isInOrder: true,
      isWhole: true,
    });
    expect(found).toBeGreaterThanOrEqual(acknowledged);
    let wanted = random.below(15);
    const isKilled = random.chance(0.5);
    let ending: Promise<unknown> | undefined;
    for await (const line of lines) {
      acknowledged = Number(line);
      // What it had sent by then still arrives, and counts.
      if (--wanted <= 0) ending ??= isKilled ? started.kill() : started.fetch("/abort");
    }
    await ending;
    if (isKilled) await started.start();
  }
  const { damaged, missing, records } = JSON.parse(await started.text("/verify"));
  expect({ damaged, missing }).toEqual({ damaged: [], missing: [] });
  expect(records).toBeGreaterThan(acknowledged);
});

/** Until the connection ends, in whatever way. */
async function* linesOf(response: Response): AsyncGenerator<string, undefined> {
  const decoder = new TextDecoder();
  let rest = "";
  try {
    for await (const bytes of response.body!) {
      const lines = (rest + decoder.decode(bytes, { stream: true })).split("\n");
      rest = lines.pop()!;
      yield* lines;
    }
  } catch (error) {
    if (!(error instanceof TypeError)) throw error;
  }
}

interface Shown {
  readonly messages: { readonly role: string; readonly content: string | readonly { readonly type: string }[] }[];
  readonly interruption: unknown;
}

test("the example of the guide: an alarm finishes the turn of an object that was killed, without a request", async (context) => {
  needsWorkerd(context);
  const random = seededRandom(seed + 1);
  const started = await start("example-worker.ts");
  const shown = async (): Promise<Shown> => JSON.parse(await started.text("/chat"));
  const prompt = { method: "POST", body: JSON.stringify({ prompt: "Tell everybody.", key: "first" }) };
  const sent = started.fetch("/chat", prompt).then(
    () => "answered",
    () => "no answer",
  );
  await expect.poll(async () => (await shown()).messages.length).toBeGreaterThan(0);
  for (let kill = 0; kill < KILLS; kill++) {
    await new Promise((resolve) => setTimeout(resolve, random.below(kill === 0 ? 1000 : WAKE_MS)));
    await started.kill();
    await started.start();
  }
  await sent;
  const isOver = ({ messages, interruption }: Shown): boolean =>
    interruption === null && messages.at(-1)?.role === "assistant";
  await expect.poll(async () => isOver(await shown()), { timeout: 120_000 }).toBe(true);
  const { messages } = await shown();
  expect(validateAnthropic({ messages: messages.slice(0, -1) } as Parameters<typeof validateAnthropic>[0])).toEqual([]);
  expect(messages.filter(({ content }) => content === "Tell everybody.")).toHaveLength(1);
  // The client did not get its answer, and asks again, with the same key: nothing starts.
  await started.fetch("/chat", prompt);
  expect(await shown()).toEqual({ messages, interruption: null });
});
