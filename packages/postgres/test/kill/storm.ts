import { setTimeout as sleep } from "node:timers/promises";
import { type JournalRecord, newId } from "holdfast";
import { openPostgresStore } from "../../src/index.ts";
import type { Server } from "../server/server.ts";
import { dice, judge, type Said, Worker } from "./crew.ts";

const WORKERS = 3;
const SESSIONS_EACH = 3;
/** A worker that waits for its dead predecessor's lease looks often; the lock frees it, not the time. */
const OPTIONS = { leaseMs: 60_000, answerMs: 5000 };
/** For one who follows all the while to see the end. */
const CATCH_UP_MS = 60_000;

export interface StormOptions {
  readonly kills: number;
  readonly seed: number;
  /** Ends it early; what was done until then is judged. */
  readonly signal?: AbortSignal;
  readonly onKill?: (kills: number) => void;
}

export interface StormReceipt {
  /** What was killed, and how often. */
  readonly kinds: Readonly<Record<"worker" | "backend" | "backendKilled" | "server", number>>;
  /** Workers that were started. */
  readonly lives: number;
  readonly acknowledged: number;
  readonly recovered: number;
  /** Of those that were acknowledged as `process`, what a crash of the server took. */
  readonly softLost: number;
  readonly faults: readonly string[];
}

/**
 * Workers append without end, while they, the backends that they speak to, and the server are killed; then all that
 * they said is compared with what is there, and with what one saw who followed.
 */
export async function storm(server: Server, options: StormOptions): Promise<StormReceipt> {
  const roll = dice(options.seed);
  await using store = await openPostgresStore(server.url, { monthsAhead: 0, ...OPTIONS });
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
  // None of them outlives this, whatever happens.
  using all = new DisposableStack();
  const join = (crew: number): Worker =>
    all.use(new Worker(server.url, `life${++lives}`, crews[crew]!, { ...OPTIONS, soft: crew > 0 }));
  const workers = crews.map((_, crew) => join(crew));
  const bury = async (worker: Worker): Promise<void> => {
    await worker.kill();
    for (const one of worker.said) said.push(one);
  };
  const kinds = { worker: 0, backend: 0, backendKilled: 0, server: 0 };
  for (let kills = 0; kills < options.kills && !options.signal?.aborted; kills++) {
    const ready = workers.flatMap((worker, crew) => (worker.isAtWork ? [crew] : []));
    const crew = ready.length > 0 ? ready[roll(ready.length)]! : roll(WORKERS);
    // In the middle of its work: something of it was acknowledged since the last time, and more is under way.
    await workers[crew]!.works();
    const die = roll(20);
    if (die < 6) {
      kinds.worker++;
      await bury(workers[crew]!);
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
    options.onKill?.(kills + 1);
  }
  for (const worker of workers) {
    await worker.works();
    await bury(worker);
  }
  const { faults, acknowledged, recovered, softLost } = await judge(store, ids, said);

  // Nothing was missed and nothing doubled by the one who followed all the while.
  const { head } = (await store.list()).sessions.find(({ id }) => id === ids[0])!;
  const until = performance.now() + CATCH_UP_MS;
  while ((followed.at(-1)?.seq ?? 0) < head && performance.now() < until) await sleep(20);
  over.abort();
  await following;
  const odd = followed.findIndex(({ seq }, index) => seq !== index + 1);
  if (odd >= 0) faults.push(`a follower was shown ${followed[odd]!.seq} in the place of ${odd + 1}`);
  if (followed.length !== head) faults.push(`a follower was shown ${followed.length} of ${head} records`);
  return { kinds, lives, acknowledged, recovered, softLost, faults };
}

/** False if it had ended by itself. */
export function killed(pid: number): boolean {
  try {
    return process.kill(pid, "SIGKILL");
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== "ESRCH") throw error;
    return false;
  }
}
