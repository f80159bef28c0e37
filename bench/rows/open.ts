import { openFolderStore } from "holdfast/internal";
import type { Bench } from "../bench.ts";
import type { Figure, Results } from "../figure.ts";
import { epochOf, fill, hastyDisk, sizeOfSession } from "../fixtures.ts";
import { median } from "../statistics.ts";

const LIVE = 1000;

interface Opening {
  readonly ms: number;
  readonly peakMB: number;
  readonly grownMB: number;
  readonly records: number;
}

/**
 * A session of 1 GB whose live context is 1,000 records, against one that holds only those. Each opening in a new
 * process.
 */
export async function openLongRow(bench: Bench, results: Results): Promise<void> {
  const { root, id, store, journal } = await bench.longSession(results.ages);
  await journal.epoch(() => epochOf(bench.entries, LIVE));
  const small = bench.id();
  await (await store.create(small, epochOf(bench.entries, LIVE))).close();
  await store.close();
  const gigabytes = (sizeOfSession(root, id) / 1e9).toFixed(1);

  const pairs = await openInTurn(bench, bench.size(15, 5), ["open", root, id], ["open", root, small]);
  const what = `open ${gigabytes} GB with ${LIVE.toLocaleString("en")} live records against those alone`;
  results.figures.push(timeFigure("open-long", what, 1.5, pairs), {
    row: "open-long",
    what: `${what}, peak memory`,
    bound: { under: 40 },
    unit: "MB",
    rounds: pairs.map(([long, alone]) => long.peakMB - alone.peakMB),
    note: memoryNote(pairs),
  });
}

/** One epoch of 100,000 records against a chunked read, JSON.parse and every object kept. Each in a new process. */
export async function openEpochRow(bench: Bench, results: Results): Promise<void> {
  const root = bench.path("epoch");
  const id = bench.id();
  const records = bench.size(100_000, 30_000);
  const store = await openFolderStore(root, { disk: hastyDisk, durability: "process" });
  await fill(await store.create(id, []), bench.entries, records);
  await store.close();

  const pairs = await openInTurn(bench, bench.size(9, 5), ["open", root, id], ["parse", root, id]);
  const what = `open an epoch of ${records.toLocaleString("en")} records against read, parse and keep`;
  results.figures.push(timeFigure("open-epoch", what, 1.4, pairs), {
    row: "open-epoch",
    what: `${what}, peak memory`,
    bound: { atMost: 1.4 },
    unit: "×",
    rounds: pairs.map(([ours, theirs]) => ours.peakMB / theirs.peakMB),
    note: memoryNote(pairs),
  });
}

function timeFigure(row: string, what: string, atMost: number, pairs: readonly [Opening, Opening][]): Figure {
  const ms = (which: 0 | 1): string => median(pairs.map((pair) => pair[which].ms)).toFixed(1);
  return {
    row,
    what: `${what}, time`,
    bound: { atMost },
    unit: "×",
    rounds: pairs.map(([ours, theirs]) => ours.ms / theirs.ms),
    note: `${ms(0)} against ${ms(1)} ms`,
  };
}

function memoryNote(pairs: readonly [Opening, Opening][]): string {
  const middle = (which: 0 | 1, of: "peakMB" | "grownMB"): string =>
    median(pairs.map((pair) => pair[which][of])).toFixed(0);
  return `${middle(0, "peakMB")} against ${middle(1, "peakMB")} MB, of which ${middle(0, "grownMB")} and ${middle(1, "grownMB")} by opening`;
}

/** Runs both tasks in turn, each in a new process, with warm files. */
async function openInTurn(
  bench: Bench,
  rounds: number,
  ours: string[],
  theirs: string[],
): Promise<[Opening, Opening][]> {
  const once = async (task: string[]): Promise<Opening> => (await bench.child(task)) as Opening;
  const expected = [(await once(ours)).records, (await once(theirs)).records] as const;
  const pairs: [Opening, Opening][] = [];
  for (let round = 0; round < rounds; round++) {
    const first = await once(round % 2 === 0 ? ours : theirs);
    const second = await once(round % 2 === 0 ? theirs : ours);
    const pair: [Opening, Opening] = round % 2 === 0 ? [first, second] : [second, first];
    if (pair[0].records !== expected[0] || pair[1].records !== expected[1])
      throw new Error("the sessions have changed");
    pairs.push(pair);
  }
  if (Math.abs(expected[0] - expected[1]) > 5) throw new Error(`opened ${expected[0]} and ${expected[1]} records`);
  return pairs;
}
