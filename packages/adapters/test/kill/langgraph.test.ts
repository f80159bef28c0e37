import { join } from "node:path";
import { openStore } from "holdfast";
import { afterAll, beforeAll, expect, test } from "vitest";
import { place } from "../../../holdfast/test/place.ts";
import { seedOf } from "../../../holdfast/test/seed.ts";
import { HoldfastSaver } from "../../src/langgraph/index.ts";
import { bundled, chance, dieAtRandom, inPairs, linesOf, runKilled } from "./killed-program.ts";
import { CONFIG, graph, live, type Orders, PROMPT } from "./langgraph-program.ts";

/**
 * A graph in a process of its own, killed after each write to its journal and at random instants. What it must hold is
 * written down here; nothing of it is asked from the saver.
 */

const seed = seedOf(import.meta.url, "kill");
const here = place();
let program = "";
let lifeMs = 0;

/** What the graph says, whatever happens to its process. */
const SAID = [
  PROMPT,
  ...[0, 1, 2].flatMap((round) => [`round ${round}`, ...[0, 1].map((call) => `seen by call_${round}_${call}`)]),
  "It is good, and yes.",
];
/** What its nodes do, in the order in which they can: a step begins when the one before it is saved. */
const STEPS = [
  ...[0, 1, 2].flatMap((round) => [[`model ${round}`], [`call_${round}_0`, `call_${round}_1`]]),
  ["weigh"],
  ["last"],
];

beforeAll(async () => {
  program = await bundled(join(import.meta.dirname, "langgraph-program.ts"), here.path);
  using folder = place();
  const death = await runKilled(program, ordersIn(folder.path));
  expect(death).toMatchObject({ lines: ["begun", "completed"], signal: null });
  lifeMs = death.ms;
});
afterAll(() => here[Symbol.dispose]());

function ordersIn(folder: string, given: Partial<Orders> = {}): Orders {
  const effects = join(folder, "effects");
  return { address: join(folder, "store"), kind: "folder", durability: "sync", killAfter: 0, effects, ...given };
}

function textsOf(messages: readonly { readonly text: string }[]): string[] {
  return messages.map(({ text }) => text);
}

/** Kills it, reads what is left, goes on in this process, and judges both lives. False: it came to its end. */
async function judge(given: Partial<Orders>, what: string, afterMs?: number): Promise<boolean> {
  using folder = place();
  const orders = ordersIn(folder.path, given);
  const { lines, signal } = await runKilled(program, orders, afterMs);
  const before = linesOf(orders.effects);
  const address = orders.kind === "folder" ? orders.address : `sqlite:${orders.address}/threads.db`;
  await using saver = await HoldfastSaver.open(address);
  const left = (await graph(saver, orders.effects).getState(CONFIG)).values;
  const said = textsOf(left.messages ?? []);
  expect(said, `${what}: what is left is a beginning`).toEqual(SAID.slice(0, said.length));

  const began = STEPS.findLastIndex((step) => step.some((act) => before.includes(act)));
  const saved =
    began < 1
      ? 0
      : 1 +
        STEPS.slice(0, began)
          .flat()
          .filter((act) => act !== "weigh").length;
  if (orders.durability === "sync")
    expect(said.length, `${what}: what was saved before the last step began is there`).toBeGreaterThanOrEqual(saved);
  if (lines.includes("completed")) expect(said, `${what}: all of it is there`).toEqual(SAID);

  const values = await live(saver, orders);
  expect(textsOf(values.messages), `${what}: it reaches its end`).toEqual(SAID);
  const after = linesOf(orders.effects).slice(before.length);
  for (const step of STEPS) {
    for (const act of step) {
      const isSaved = said.includes(act.replace("model", "round")) || said.includes(`seen by ${act}`);
      if (isSaved) expect(after, `${what}: what is saved does not run again`).not.toContain(act);
      expect(linesOf(orders.effects), `${what}: everything ran`).toContain(act);
    }
  }
  const { sessions } = await (await openStore(address)).list();
  expect(sessions, what).toMatchObject([{ title: PROMPT }]);
  return signal !== null;
}

function* everyWrite(): Generator<number> {
  for (let killAfter = 1; ; killAfter++) yield killAfter;
}

let kills = 0;

test.each(["sync", "async", "exit"] as const)("SIGKILL after each write, durability %s", async (durability) => {
  const count = await inPairs(everyWrite(), (killAfter) =>
    judge({ durability, killAfter }, `${durability}, killed after write ${killAfter}`),
  );
  kills += count;
  expect(count).toBeGreaterThan(durability === "exit" ? 1 : 15);
});

// Several tests, so that none takes minutes on a busy machine.
test.each([0, 1, 2, 3, 4])("SIGKILL at random instants, in a folder and in SQLite, part %i", async (part) => {
  kills += await dieAtRandom(36, part * 1000, (n) => {
    const kind = n % 3 === 0 ? "sqlite" : "folder";
    const afterMs = chance(seed, n) * lifeMs;
    return judge({ kind }, `${kind}, seed ${seed}, try ${n}, killed after ${afterMs.toFixed(1)} ms`, afterMs);
  });
});

test("that was at least 200 kills", () => {
  expect(kills).toBeGreaterThanOrEqual(200);
});
