import type { Bench } from "../bench.ts";
import type { Results } from "../figure.ts";
import { median } from "../statistics.ts";
import type { Streamed } from "../stream.ts";

/**
 * How late the event loop is while an answer streams in, recorded as a draft, against the same stream that nobody
 * records. Both at the same time, in a process each: what else the machine does is done to both.
 */
export async function sessionStreamRow(bench: Bench, { figures }: Results): Promise<void> {
  const seconds = bench.size(60, 6);
  const streamed = async (root: string): Promise<Streamed> =>
    (await bench.child(["stream", root, "", String(seconds)])) as Streamed;
  await bench.child(["nothing"]);
  const [ours, theirs] = await Promise.all([streamed(bench.path("stream")), streamed("")]);
  for (const { deltas } of [ours, theirs]) {
    if (deltas < seconds * 190) throw new Error(`only ${deltas} deltas came in ${seconds} s`);
  }
  figures.push({
    row: "session-stream",
    what: `event loop delay, 200 deltas/s for ${seconds} s, p95`,
    bound: { atMost: 1.5 },
    unit: "×",
    rounds: ours.p95Ms.map((p95, slice) => p95 / theirs.p95Ms[slice]!),
    note: `late by ${median(ours.p95Ms).toFixed(3)} against ${median(theirs.p95Ms).toFixed(3)} ms, power`,
  });
}
