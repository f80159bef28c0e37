import { bundleCommand } from "../../scripts/bundle.ts";
import type { Bench } from "../bench.ts";
import type { Results } from "../figure.ts";
import { median, quantile } from "../statistics.ts";
import { cpuSecondsOf, peakBytesOf, resetPeakOf, WrappedPipe } from "../wrapped-pipe.ts";

/** The two layouts of `holdfast wrap`, and what the table calls them. */
const LAYOUTS = [
  ["supervisor", []],
  ["direct", ["--direct"]],
] as const;

const TICKS_PER_ROUND = 200;

/** How much later a message arrives: a round trip of two recorded messages, against the same one without us. */
export async function wrapDelayRow(bench: Bench, results: Results): Promise<void> {
  await bundleCommand();
  const alone = await WrappedPipe.open(bench.path("agent"), null);
  for (const [name, layout] of LAYOUTS) {
    const wrapped = await WrappedPipe.open(bench.path("wrap"), layout);
    const added: number[] = [];
    const rounds: number[] = [];
    for (let round = -1; round < bench.size(9, 5); round++) {
      const ms: [number[], number[]] = [[], []];
      for (let n = 0; n < TICKS_PER_ROUND; n++) {
        ms[0].push(await wrapped.tick(n));
        ms[1].push(await alone.tick(n));
      }
      if (round < 0) continue;
      const without = quantile(ms[1], 0.5);
      const each = ms[0].map((one) => (one - without) / 2);
      added.push(...each);
      rounds.push(quantile(each, 0.5));
    }
    await wrapped.close();
    results.figures.push({
      row: "wrap-delay",
      what: `holdfast wrap (${name}): added delay per message, p50`,
      bound: { under: 0.5 },
      unit: "ms",
      rounds,
      note: `p99 ${quantile(added, 0.99).toFixed(2)} ms`,
    });
  }
  await alone.close();
}

/** A flood of updates that the agent makes and the editor reads, against the same flood without us. */
export async function wrapFloodRow(bench: Bench, results: Results): Promise<void> {
  await bundleCommand();
  const count = bench.size(100_000, 30_000);
  for (const [name, layout] of LAYOUTS) {
    const alone = await WrappedPipe.open(bench.path("agent"), null);
    const wrapped = await WrappedPipe.open(bench.path("wrap"), layout);
    const ratios: number[] = [];
    const perSecond: [number[], number[]] = [[], []];
    const cpu: number[] = [];
    for (let round = -1; round < bench.size(5, 3); round++) {
      const before = cpuSecondsOf(wrapped.recorder()) ?? 0;
      const with_ = count / (await wrapped.flood(count));
      const used = (cpuSecondsOf(wrapped.recorder()) ?? 0) - before;
      const without = count / (await alone.flood(count));
      if (round < 0) continue;
      perSecond[0].push(with_);
      perSecond[1].push(without);
      cpu.push((used / count) * 1e6);
      ratios.push(with_ / without);
    }
    await alone.close();
    await wrapped.close();
    results.figures.push({
      row: "wrap-flood",
      what: `holdfast wrap (${name}): throughput of a flood, against a pipe`,
      bound: { atLeast: 0.5 },
      unit: "×",
      rounds: ratios,
      note: `${Math.round(median(perSecond[0]) / 1000)}k against ${Math.round(median(perSecond[1]) / 1000)}k messages/s; ${median(cpu).toFixed(1)} µs of processor time for each`,
    });
  }
}

/**
 * The recorder's peak memory in a session of a million messages, against its peak after the first hundred thousand:
 * until then the heap of a new process grows to its working size.
 */
export async function wrapMemoryRow(bench: Bench, results: Results): Promise<void> {
  await bundleCommand();
  const few = 100_000;
  const many = bench.size(1_000_000, 400_000);
  const wrapped = await WrappedPipe.open(bench.path("wrap"), []);
  const pid = wrapped.recorder();
  const peakOf = async (count: number): Promise<number | null> => {
    resetPeakOf(pid);
    await wrapped.flood(count, "mixed");
    return peakBytesOf(pid);
  };
  await peakOf(few);
  const first = await peakOf(few);
  await peakOf(many - 3 * few);
  const last = await peakOf(few);
  await wrapped.close();
  // The kernel does not say.
  if (first === null || last === null) return;
  results.figures.push({
    row: "wrap-memory",
    what: `holdfast wrap: peak memory after ${many.toLocaleString("en")} messages, against after ${few.toLocaleString("en")}`,
    bound: { atMost: 1.25 },
    unit: "×",
    rounds: [last / first],
    note: `${(last / 1e6).toFixed(0)} against ${(first / 1e6).toFixed(0)} MB`,
  });
}
