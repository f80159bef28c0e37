import { type JournalRecord, newId } from "holdfast";
import { afterAll, beforeAll, expect, test } from "vitest";
import { openPostgresStore } from "../../src/index.ts";
import { type Server, startServer } from "../server/server.ts";
import { dice, judge, type Said, Worker } from "./crew.ts";

const KILLS = Number(process.env["HOLDFAST_PG_KILLS"] ?? 80);
const SEED = Number(process.env["HOLDFAST_PG_SEED"] ?? Date.now() % 1_000_000_007);
const WORKERS = 3;
const SESSIONS_EACH = 3;
/** A worker that waits for its dead predecessor's lease looks often; the lock frees it, not the time. */
const OPTIONS = { leaseMs: 60_000, answerMs: 5000 };

let server: Server;

beforeAll(async () => {
  server = await startServer(["fsync=off", "restart_after_crash=on"]);
});
afterAll(() => server.stop());

/** False if it had ended by itself. */
function killed(pid: number): boolean {
  try {
    return process.kill(pid, "SIGKILL");
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== "ESRCH") throw error;
    return false;
  }
}

test(`P1, P2, S25: ${KILLS} kills of workers, backends and the server in mid-append lose nothing that was acknowledged, double nothing, and nobody writes after his replacement`, {
  timeout: 60_000 + KILLS * 2000,
}, async () => {
  console.log(`seed ${SEED}: HOLDFAST_PG_SEED=${SEED} HOLDFAST_PG_KILLS=${KILLS}`);
  const roll = dice(SEED);
  const store = await openPostgresStore(server.url, { monthsAhead: 0, ...OPTIONS });
  const crews = Array.from({ length: WORKERS }, () => Array.from({ length: SESSIONS_EACH }, () => newId()));
  const ids = crews.flat();
  for (const id of ids) await (await store.create(id, [])).close();
  const followed: JournalRecord[] = [];
  const over = new AbortController();
  const following = (async () => {
    for await (const record of store.follow(ids[0]!, { signal: over.signal })) followed.push(record);
  })();

  let lives = 0;
  const said: Said[] = [];
  const join = (crew: number): Worker =>
    new Worker(server.url, `life${++lives}`, crews[crew]!, { ...OPTIONS, soft: crew > 0 });
  const workers = crews.map((_, crew) => join(crew));
  const kinds = { worker: 0, backend: 0, backendKilled: 0, server: 0 };
  for (let kills = 0; kills < KILLS; kills++) {
    const ready = workers.flatMap((worker, crew) => (worker.isAtWork ? [crew] : []));
    const crew = ready.length > 0 ? ready[roll(ready.length)]! : roll(WORKERS);
    // In the middle of its work: something of it was acknowledged since the last time, and more is under way.
    await workers[crew]!.works();
    const die = roll(20);
    if (die < 6) {
      kinds.worker++;
      await workers[crew]!.kill();
      for (const one of workers[crew]!.said) said.push(one);
      workers[crew] = join(crew);
    } else if (die < 16) {
      kinds.backend++;
      await server.query(
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'holdfast' AND pid % 3 = $1",
        [roll(3)],
      );
    } else if (die < 18) {
      const [backend] = await server.query(
        "SELECT pid FROM pg_stat_activity WHERE application_name = 'holdfast' ORDER BY state = 'active' DESC, random() LIMIT 1",
      );
      if (backend && killed(Number(backend["pid"]))) kinds.backendKilled++;
    } else {
      kinds.server++;
      await server.crash();
    }
  }
  for (const worker of workers) {
    await worker.works();
    await worker.kill();
    for (const one of worker.said) said.push(one);
  }
  const { faults, acknowledged, recovered, softLost } = await judge(store, ids, said);
  console.log(JSON.stringify({ kinds, lives, acknowledged, recovered, softLost }));
  expect(faults).toEqual([]);

  // Nothing was missed and nothing doubled by the one who followed all the while.
  const { head } = (await store.list()).sessions.find(({ id }) => id === ids[0])!;
  while (followed.at(-1)?.seq !== head) await new Promise((resolve) => setTimeout(resolve, 20));
  over.abort();
  await following;
  expect(followed.map(({ seq }) => seq)).toEqual(Array.from({ length: head }, (_, i) => i + 1));
  await store.close();
});
