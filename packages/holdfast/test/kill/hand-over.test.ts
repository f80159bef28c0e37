import { setTimeout as sleep } from "node:timers/promises";
import { type JournalRecord, openStore } from "holdfast";
import { afterAll, expect, test } from "vitest";
import { place } from "../place.ts";
import { seedOf } from "../seed.ts";
import { dice, FleetWorker, interrupted, judge, unfinished } from "./fleet-crew.ts";
import type { WorkerSaid } from "./fleet-worker.ts";

const DEPLOYS = 20;
const STEPS = 24;
const seed = seedOf(import.meta.url, "kill");
const compiled = place();
afterAll(() => compiled[Symbol.dispose]());

test.each([
  ["", false],
  [", half of the processes killed meanwhile", true],
])(`${DEPLOYS} deploys in one turn%s: it goes on each time, and no tool runs twice`, async (_, kills) => {
  using here = place();
  const folder = `${here.path}/store`;
  const roll = dice(seed);
  const said: WorkerSaid[] = [];
  const id = await (async () => {
    await using store = await openStore(folder, { recordsToolStarts: true });
    return await interrupted(store, true);
  })();
  const start = (life: number): FleetWorker => {
    const orders = { folder, steps: STEPS, slowMs: 6, life: `life${life}`, starves: false };
    return new FleetWorker(orders, { ...process.env, NODE_COMPILE_CACHE: compiled.path });
  };
  let killed = 0;
  for (let deploy = 1; deploy <= DEPLOYS; deploy++) {
    using worker = start(deploy);
    // It has opened the store, has taken the session, and is in the middle of something.
    await worker.hasSaid(2 + roll(3));
    await sleep(roll(20));
    if (kills && roll(2) === 0) {
      worker.child.kill("SIGTERM");
      await sleep(roll(15));
      worker.child.kill("SIGKILL");
      await worker.closed;
      killed++;
    } else await worker.end("SIGTERM");
    said.push(...worker.said);
  }
  {
    using worker = start(DEPLOYS + 1);
    await using store = await openStore(folder, { recordsToolStarts: true });
    while ((await unfinished(store)) > 0) await sleep(20);
    await worker.end("SIGTERM");
    said.push(...worker.said);
  }
  expect(await judge(folder, [id], STEPS)).toEqual([]);
  expect(said.filter(({ refused }) => refused !== undefined)).toEqual([]);
  await using store = await openStore(folder, { recordsToolStarts: true });
  const records: JournalRecord[] = await Array.fromAsync(store.history(id));
  const handOvers = records.filter(({ kind, reason }) => kind === "turn.suspended" && reason === "hand-over");
  if (kills) {
    expect(killed).toBeGreaterThan(0);
    return;
  }
  // The first is that of the program that started the turn.
  expect(handOvers).toHaveLength(DEPLOYS + 1);
  expect(records.filter(({ kind }) => kind === "repair")).toEqual([]);
  expect(said.filter(({ told }) => told !== undefined)).toEqual([]);
  const took = said.filter(({ took }) => took !== undefined);
  expect(took.map(({ took, resumes, tries }) => ({ took, resumes, tries }))).toEqual(
    Array.from({ length: DEPLOYS + 1 }, () => ({ took: "handed-over", resumes: 0, tries: 1 })),
  );
});
