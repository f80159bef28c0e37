import { setTimeout as sleep } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import type { JournalRecord } from "holdfast";
import { openStore, type PostgresSessions } from "../../src/index.ts";
import type { Server } from "../server/server.ts";
import { dice, type Said, Worker } from "./crew.ts";
import { killed } from "./storm.ts";

const PROGRAM = fileURLToPath(new URL("fleet-worker.ts", import.meta.url));
const WORKERS = 10;
/** Before each kill this many more sessions are interrupted. */
const SESSIONS_EACH = 2;
const STEPS = 3;
const OPTIONS = { leaseMs: 60_000, answerMs: 5000 };
/** For the fleet to finish everything after the last kill. */
const FINISH_MS = 180_000;

export interface FleetOptions {
  readonly kills: number;
  readonly seed: number;
  readonly workers?: number;
  readonly signal?: AbortSignal;
  readonly onKill?: (kills: number) => void;
}

export interface FleetReceipt {
  readonly kinds: Readonly<Record<"worker" | "backend" | "backendKilled" | "server", number>>;
  readonly lives: number;
  readonly sessions: number;
  /** Tools that ran: those that must not run twice, those that may, and those in transactions. */
  readonly ran: Readonly<Record<"once" | "again" | "together", number>>;
  /** Calls that may run twice and did, because their worker died. */
  readonly again: number;
  readonly faults: readonly string[];
}

/**
 * Workers claim and finish interrupted sessions, while they, the backends that they speak to, and the server are
 * killed. At the end every turn must be finished, once; no tool may have run twice that must not; and the rows of tools
 * in transactions must be there exactly if their outcome is.
 */
export async function fleetStorm(server: Server, options: FleetOptions): Promise<FleetReceipt> {
  const { kills, seed, workers: count = WORKERS, signal, onKill } = options;
  const roll = dice(seed);
  await using store = await openStore(server.url, { monthsAhead: 0, app: "holdfast storm", ...OPTIONS });
  await server.query("CREATE TABLE effects (call text NOT NULL, life text NOT NULL)");
  const ids: string[] = [];
  const interrupt = async (): Promise<void> => {
    for (let n = 0; n < SESSIONS_EACH; n++) ids.push(await interrupted(store));
  };
  for (let n = 0; n < count; n++) await interrupt();

  let lives = 0;
  const said: Said[] = [];
  using all = new DisposableStack();
  const join = (): Worker =>
    all.use(new Worker(server.url, `life${++lives}`, [], { ...OPTIONS, steps: STEPS }, PROGRAM));
  const workers = Array.from({ length: count }, join);
  const bury = async (worker: Worker): Promise<void> => {
    await worker.kill();
    for (const one of worker.said) said.push(one);
  };
  const kinds = { worker: 0, backend: 0, backendKilled: 0, server: 0 };
  const heard = (): number => workers.reduce((sum, worker) => sum + worker.said.length, 0);
  for (let n = 0; n < kills && !signal?.aborted; n++) {
    await interrupt();
    // In the middle of the work: tools have run since the last kill.
    const before = heard();
    while (heard() < before + 3) await sleep(5);
    const die = roll(20);
    if (die < 10) {
      kinds.worker++;
      const chosen = roll(count);
      await bury(workers[chosen]!);
      workers[chosen] = join();
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
    onKill?.(n + 1);
  }
  const faults: string[] = [];
  const until = performance.now() + FINISH_MS;
  for (let left = await unfinished(store); left.length > 0; left = await unfinished(store)) {
    if (performance.now() > until) {
      faults.push(`${left.length} turns were not finished: ${left.slice(0, 3).join(", ")}`);
      break;
    }
    await sleep(100);
  }
  for (const worker of workers) await bury(worker);
  const rows = await server.query("SELECT call, count(*)::int AS count FROM effects GROUP BY call");
  const effects = new Map(rows.map((row) => [String(row["call"]), Number(row["count"])]));
  for (const id of ids) faults.push(...(await judgeSession(store, id, effects)));
  const { again, ran, faults: twice } = judgeRuns(said);
  faults.push(...twice);
  return { kinds, lives, sessions: ids.length, ran: { ...ran, together: effects.size }, again, faults };
}

/** A session whose worker was shut down in the middle of its turn. */
async function interrupted(store: PostgresSessions): Promise<string> {
  for (;;) {
    try {
      const session = await store.create({ dialect: "anthropic" });
      await session.startTurn({ role: "user", content: "Do all steps." });
      await session.close();
      return session.id;
    } catch {
      // The server was just hit.
      await sleep(50);
    }
  }
}

async function unfinished(store: PostgresSessions): Promise<string[]> {
  const left: string[] = [];
  for (const status of ["interrupted", "running"] as const)
    left.push(...(await store.list({ status, limit: 1000 })).sessions.map(({ id }) => id));
  return left;
}

/** What is wrong with one session: its turn, its calls, and the rows of its transactions. */
async function judgeSession(
  store: PostgresSessions,
  id: string,
  effects: ReadonlyMap<string, number>,
): Promise<string[]> {
  const records: JournalRecord[] = await Array.fromAsync(store.history(id));
  const faults: string[] = [];
  const completed = records.filter(({ kind, outcome }) => kind === "turn.ended" && outcome === "completed");
  // A session that was created although its creator got no answer has no turn, or one that nobody counts.
  if (completed.length !== 1) faults.push(`${id}: its turn was finished ${completed.length} times`);
  const ends = new Map<string, JournalRecord[]>();
  for (const record of records) {
    if (record.kind !== "tool.ended") continue;
    const call = String(record["call"]);
    ends.set(call, [...(ends.get(call) ?? []), record]);
  }
  for (let step = 0; step < STEPS; step++) {
    const call = `${id}/${step}/together`;
    const [first, ...more] = ends.get(call) ?? [];
    if (more.length > 0) faults.push(`${call}: ${more.length + 1} outcomes`);
    const isDone = first !== undefined && first["error"] === undefined;
    const count = effects.get(call) ?? 0;
    if (count !== (isDone ? 1 : 0)) faults.push(`${call}: ${count} rows, and its outcome is ${JSON.stringify(first)}`);
  }
  const { damaged, missing } = await store.verify(id);
  if (damaged.length + missing.length > 0) faults.push(`${id}: ${JSON.stringify({ damaged, missing })}`);
  return faults;
}

function judgeRuns(said: readonly Said[]): {
  readonly ran: { readonly once: number; readonly again: number };
  readonly again: number;
  readonly faults: readonly string[];
} {
  const runs = Map.groupBy(
    said.filter(({ ran }) => ran !== undefined),
    ({ ran }) => ran!,
  );
  const faults: string[] = [];
  const ran = { once: 0, again: 0 };
  let again = 0;
  for (const [call, times] of runs) {
    const isSafe = times[0]!.isSafe === true;
    if (isSafe) ran.again++;
    else ran.once++;
    if (times.length === 1) continue;
    if (isSafe) again++;
    else faults.push(`${call} must run once, and ran ${times.length} times: ${times.map(({ by }) => by).join(", ")}`);
  }
  return { ran, again, faults };
}
