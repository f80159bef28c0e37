import { setTimeout as sleep } from "node:timers/promises";
import { newId } from "holdfast";
import { openPostgresStore } from "../../src/index.ts";
import { Network } from "../proxy/network.ts";
import { startServer } from "../server/server.ts";
import { type Primary, requireStandby, STANDBY_NAME, Standby } from "../server/standby.ts";
import { dice, judge, type Said, Worker } from "./crew.ts";

const WORKERS = 2;
const SESSIONS_EACH = 3;
const OPTIONS = { leaseMs: 60_000, answerMs: 2000, patienceMs: 60_000 };
/** Enough log for a standby that starts while workers append. */
const SETTINGS = ["wal_keep_size=512MB", "max_connections=60"];

export interface FailOverOptions {
  readonly failOvers: number;
  readonly seed: number;
  /** Ends it early; what was done until then is judged. */
  readonly signal?: AbortSignal;
  readonly onFailOver?: (failOvers: number) => void;
}

export interface FailOverReceipt {
  readonly failOvers: number;
  /** How often the workers found the standby before it was promoted. */
  readonly foundStandby: number;
  readonly acknowledged: number;
  readonly recovered: number;
  readonly faults: readonly string[];
}

/**
 * Workers append without end through an address that leads to the primary. It has a synchronous standby. The primary is
 * killed, its standby is promoted and gets the address and a standby of its own, and so on. Then everything that the
 * workers were told is compared with what is there.
 */
export async function failOverDrill(options: FailOverOptions): Promise<FailOverReceipt> {
  const roll = dice(options.seed);
  await using stack = new AsyncDisposableStack();
  const first = stack.adopt(await startServer(SETTINGS), (server) => server.stop());
  const network = stack.adopt(await Network.open(first.port), (proxy) => proxy.close());
  const url = network.through(first.url);
  await using store = await openPostgresStore(url, { monthsAhead: 0, ...OPTIONS });
  const crews = Array.from({ length: WORKERS }, () => Array.from({ length: SESSIONS_EACH }, () => newId()));
  const ids = crews.flat();
  for (const id of ids) await (await store.create(id, [])).close();
  const workers = crews.map((crew, i) => stack.use(new Worker(url, `worker${i}`, crew, OPTIONS)));
  let primary: Primary = first;
  let killPrimary = (): Promise<void> => first.kill();
  let failOvers = 0;
  let foundStandby = 0;
  for (; failOvers < options.failOvers && !options.signal?.aborted; failOvers++) {
    await requireStandby(primary.url, STANDBY_NAME);
    // From here on nothing is acknowledged, until the standby has it too.
    const standby = stack.adopt(await Standby.of(primary, SETTINGS), (server) => server.stop());
    for (const worker of workers) await worker.works();
    for (let more = roll(40); more > 0; more--) await workers[roll(WORKERS)]!.works();
    await killPrimary();
    // With some managers the address moves before the standby is promoted.
    const isEarly = roll(2) === 0;
    const move = (): void => {
      network.target = standby.port;
      network.cut();
    };
    if (isEarly) {
      foundStandby++;
      move();
      await sleep(roll(1000));
    }
    await standby.promote();
    if (!isEarly) move();
    for (const worker of workers) await worker.works();
    primary = standby;
    killPrimary = () => standby.kill();
    options.onFailOver?.(failOvers + 1);
  }
  const said: Said[] = [];
  for (const worker of workers) {
    await worker.kill();
    said.push(...worker.said);
  }
  const { faults, acknowledged, recovered } = await judge(store, ids, said);
  return { failOvers, foundStandby, acknowledged, recovered, faults };
}
