import type { Durability } from "holdfast/store";
import type { Bench } from "../bench.ts";
import type { Figure, Results } from "../figure.ts";
import { interleave, type Side } from "../interleave.ts";
import { makeConversation } from "../messages.ts";
import { eachTurn, sessionStore } from "../sessions.ts";
import { median, quantile } from "../statistics.ts";
import { p50Note, sureLock } from "./append.ts";

/** Above this, a sync is left to the thread pool, so that is what it is compared with. */
const FAST_SYNC_US = 1000;

/**
 * `turn.append`, awaited, against what anybody would write: `JSON.stringify` and a write, and for `power` a sync too.
 * Calls, results and answers in turns of ten; starts and ends of turns are not timed.
 */
export async function sessionAppendRow(bench: Bench, { figures }: Results): Promise<void> {
  const reference = bench.reference();
  figures.push({
    ...(await compare(bench, "process", { sync: reference.write }, { rounds: bench.size(15, 7), turns: 600 })),
    what: "turn.append, process, against stringify and write, p50",
    bound: { atMost: 1.6 },
  });
  const plan = { rounds: bench.size(9, 3), turns: bench.size(90, 30) };
  const blocking = await compare(bench, "power", { sync: reference.writeAndSyncNow }, plan);
  const isFast = blocking.referenceUs < FAST_SYNC_US;
  const awaited = { awaited: reference.writeAndSync };
  figures.push({
    ...(isFast ? blocking : await compare(bench, "power", awaited, plan)),
    what: `turn.append, power, against stringify, write and ${isFast ? "sync" : "an awaited sync"}, p50`,
    bound: { atMost: 1.15 },
  });
  reference.close();
}

async function compare(
  bench: Bench,
  durability: Durability,
  reference: Side,
  plan: { readonly rounds: number; readonly turns: number },
): Promise<Pick<Figure, "row" | "unit" | "rounds" | "note"> & { readonly referenceUs: number }> {
  const entries = makeConversation(plan.turns * 10, "anthropic");
  await using store = await sessionStore(bench.path("session"), durability);
  const ratios: number[] = [];
  const p50Us: [number[], number[]] = [[], []];
  // The first round warms both up. Each has a new session: a context does not grow without end.
  for (let round = -1; round < plan.rounds; round++) {
    await using session = await store.create<unknown>({ dialect: "anthropic" });
    await sureLock();
    const times: [number[], number[]] = [[], []];
    await eachTurn(session, entries, async (turn, rest) => {
      const ours: Side = { awaited: (entry) => turn.append(entry.message) };
      const both = await interleave([ours, reference], rest, 0, rest.length);
      for (const which of [0, 1] as const) times[which].push(...both[which]);
    });
    if (session.entries.length !== entries.length) throw new Error(`${session.entries.length} messages were recorded`);
    if (round < 0) continue;
    for (const which of [0, 1] as const) p50Us[which].push(quantile(times[which], 0.5));
    ratios.push(p50Us[0].at(-1)! / p50Us[1].at(-1)!);
  }
  return {
    row: "session-append",
    unit: "×",
    rounds: ratios,
    note: p50Note(p50Us),
    referenceUs: median(p50Us[1]),
  };
}
