import { once } from "node:events";
import { openFolderStore } from "holdfast/internal";
import type { Bench } from "../bench.ts";
import type { Results } from "../figure.ts";
import { quantile } from "../statistics.ts";

const TIMES_PER_ROUND = 100;

/**
 * How long after a writer in another process called `append` a follower has the record. Both read the system's one
 * monotonic clock, so the two times can be compared.
 */
export async function followRow(bench: Bench, results: Results): Promise<void> {
  const root = bench.path("follow");
  const id = bench.id();
  const rounds = bench.size(9, 5);
  const count = rounds * TIMES_PER_ROUND;
  const writer = bench.spawnChild(["write", root, id, String(count)]);
  const stop = new AbortController();
  const ended = once(writer, "exit");
  // A writer that fails ends the wait for it.
  void ended.then(([status]) => {
    if (status !== 0) stop.abort(new Error(`the writer ended with ${status}`));
  });
  await once(writer.stdout!, "data", { signal: stop.signal });

  const store = await openFolderStore(root);
  const delaysMs: number[] = [];
  setImmediate(() => writer.stdin!.write("go\n"));
  for await (const record of store.follow(id, { signal: stop.signal })) {
    const now = process.hrtime.bigint();
    if (typeof record["sentNs"] !== "string") continue;
    delaysMs.push(Number(now - BigInt(record["sentNs"])) / 1e6);
    if (delaysMs.length === count) stop.abort();
  }
  const [status] = await ended;
  if (status !== 0) throw new Error(`the writer ended with ${status}`);
  await store.close();

  const perRound = Array.from({ length: rounds }, (_, round) =>
    quantile(delaysMs.slice(round * TIMES_PER_ROUND, (round + 1) * TIMES_PER_ROUND), 0.5),
  );
  results.figures.push({
    row: "follow",
    what: "a follower's delay behind a writer in another process, p50",
    bound: { under: 5 },
    unit: "ms",
    rounds: perRound,
    note: `p99 ${quantile(delaysMs, 0.99).toFixed(1)} ms; from before the append to the record in hand`,
  });
}
