import { setTimeout as sleep } from "node:timers/promises";
import { openStore } from "holdfast";
import { afterAll, expect, test } from "vitest";
import { place } from "../place.ts";
import { seedOf } from "../seed.ts";
import { dice, FleetWorker, interrupted, judge, unfinished } from "./fleet-crew.ts";
import type { WorkerSaid } from "./fleet-worker.ts";

const KILLS = Number(process.env["HOLDFAST_FLEET_KILLS"] ?? 20);
const WORKERS = 4;
const STEPS = 3;
/** Before each kill this many more sessions are interrupted. */
const SESSIONS_EACH = 2;
const FINISH_MS = 120_000;
const seed = seedOf(import.meta.url, "kill");
const compiled = place();
afterAll(() => compiled[Symbol.dispose]());

test(`${WORKERS} workers of one machine finish interrupted sessions through ${KILLS} kills and pauses (HOLDFAST_FLEET_KILLS), one without descriptors: each turn is finished once, and nothing runs twice that must not`, {
  timeout: 200_000 + KILLS * 3000,
}, async () => {
  using here = place();
  const folder = `${here.path}/store`;
  const roll = dice(seed);
  await using store = await openStore(folder, { recordsToolStarts: true });
  const ids: string[] = [];
  const interrupt = async (): Promise<void> => {
    for (let n = 0; n < SESSIONS_EACH; n++) ids.push(await interrupted(store, roll(2) === 0));
  };
  for (let n = 0; n < WORKERS; n++) await interrupt();
  let lives = 0;
  const said: WorkerSaid[] = [];
  using all = new DisposableStack();
  const join = (place: number): FleetWorker => {
    const orders = { folder, steps: STEPS, slowMs: 12, life: `life${++lives}`, starves: place === 0 };
    return all.use(new FleetWorker(orders, { ...process.env, NODE_COMPILE_CACHE: compiled.path }));
  };
  const workers = Array.from({ length: WORKERS }, (_, place) => join(place));
  const tally = { killed: 0, paused: 0, deployed: 0 };
  for (let n = 0; n < KILLS; n++) {
    await interrupt();
    const place = roll(WORKERS);
    const worker = workers[place]!;
    // In the middle of its work, or of the recovery of another one's.
    await worker.hasSaid(1);
    await Promise.race([worker.hasSaid(1 + roll(4)), sleep(1000)]);
    await sleep(roll(30));
    const fate = roll(4);
    if (fate === 0) {
      tally.paused++;
      worker.child.kill("SIGSTOP");
      await sleep(50 + roll(300));
      worker.child.kill("SIGCONT");
      continue;
    }
    if (fate === 1) tally.deployed++;
    else tally.killed++;
    await worker.end(fate === 1 ? "SIGTERM" : "SIGKILL");
    said.push(...worker.said);
    workers[place] = join(place);
  }
  const until = performance.now() + FINISH_MS;
  while ((await unfinished(store)) > 0 && performance.now() < until) await sleep(50);
  expect(await unfinished(store), "turns that nobody finishes").toBe(0);
  for (const worker of workers) {
    await worker.hasSaid(1);
    await worker.end("SIGTERM");
    said.push(...worker.said);
  }
  const runs = said.filter(({ ran }) => ran !== undefined).length;
  console.log(JSON.stringify({ ...tally, lives, sessions: ids.length, runs }));
  expect(said.filter(({ refused }) => refused !== undefined)).toEqual([]);
  expect(await judge(folder, ids, STEPS)).toEqual([]);
  expect(runs).toBeGreaterThan(0);
});
