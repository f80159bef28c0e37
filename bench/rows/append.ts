import { setTimeout as sleep } from "node:timers/promises";
import type { Journal, JournalStore } from "holdfast/store";
import type { Bench } from "../bench.ts";
import type { Figure, Results } from "../figure.ts";
import { compareP50, type Side } from "../interleave.ts";
import type { Entry } from "../messages.ts";
import type { ReferenceFile } from "../reference.ts";
import { median } from "../statistics.ts";

type Row = (bench: Bench, results: Results) => Promise<void>;

const IN_FLIGHT = 64;
const SESSIONS = 50;

/** What a row of single appends is about, and what it is held to. */
interface Plan {
  readonly row: string;
  readonly what: string;
  readonly atMost: number;
  readonly store: (bench: Bench) => Promise<JournalStore>;
}

/** `process` append, awaited, against stringify and write. */
export function processRow(plan: Plan): Row {
  return async (bench, { figures }) => {
    const sizes = { rounds: bench.size(15, 7), perRound: bench.size(6000, 3000), warmUp: 3000 };
    figures.push(await appendFigure(bench, plan, (reference) => ({ sync: reference.write }), sizes));
  };
}

/** `power` append, one at a time, against stringify, write and an awaited fdatasync. */
export function powerRow(plan: Plan): Row {
  return async (bench, { figures }) => {
    const sizes = { rounds: bench.size(11, 5), perRound: bench.size(800, 300), warmUp: 300 };
    figures.push(await appendFigure(bench, plan, (reference) => ({ awaited: reference.writeAndSync }), sizes));
  };
}

async function appendFigure(
  bench: Bench,
  plan: Plan,
  against: (reference: ReferenceFile) => Side,
  sizes: { readonly rounds: number; readonly perRound: number; readonly warmUp: number },
): Promise<Figure> {
  await using store = await plan.store(bench);
  const journal = await store.create(bench.id(), []);
  await sureLock();
  const reference = bench.reference();
  const ours = { awaited: (entry: Entry) => journal.append(entry.record) };
  const { ratios, p50Us } = await compareP50([ours, against(reference)], bench.entries, sizes);
  reference.close();
  const { row, what, atMost } = plan;
  return { row, what, bound: { atMost }, unit: "×", rounds: ratios, note: p50Note(p50Us) };
}

/** `power` appends with 64 in flight, against the same messages in batches of 64: stringify, writev, fdatasync. */
export async function powerInFlight(bench: Bench, { figures }: Results): Promise<void> {
  await using store = await bench.folderStore("power");
  const journal = await store.create(bench.id(), []);
  const reference = bench.reference();
  const { ratios, note } = await compareRates(bench, IN_FLIGHT * 8, [
    (entries) => keepInFlight(journal, entries),
    async (entries) => {
      for (const batch of batchesOf(entries, IN_FLIGHT)) await reference.writeBatch(batch);
    },
  ]);
  reference.close();
  const what = `power append, ${IN_FLIGHT} in flight, throughput`;
  figures.push({ row: "in-flight", what, bound: { atLeast: 0.8 }, unit: "×", rounds: ratios, note });
}

/** `power` appends of 50 sessions at once, against the same messages in 50 files: stringify, write, fdatasync. */
export async function powerSessions(bench: Bench, { figures }: Results): Promise<void> {
  await using store = await bench.folderStore("power");
  const journals: Journal[] = [];
  const references: ReferenceFile[] = [];
  for (let i = 0; i < SESSIONS; i++) {
    journals.push(await store.create(bench.id(), []));
    references.push(bench.reference());
  }
  await sureLock();
  const { ratios, note } = await compareRates(bench, SESSIONS * 4, [
    async (entries) => {
      for (const batch of batchesOf(entries, SESSIONS))
        await Promise.all(batch.map(({ record }, i) => journals[i]!.append(record)));
    },
    async (entries) => {
      for (const batch of batchesOf(entries, SESSIONS))
        await Promise.all(batch.map((entry, i) => references[i]!.writeAndSync(entry)));
    },
  ]);
  for (const reference of references) reference.close();
  const what = `power append, ${SESSIONS} sessions at once, throughput`;
  figures.push({ row: "power-sessions", what, bound: { atLeast: 0.8 }, unit: "×", rounds: ratios, note });
}

function batchesOf(entries: readonly Entry[], count: number): Entry[][] {
  return Array.from({ length: entries.length / count }, (_, i) => entries.slice(i * count, (i + 1) * count));
}

/** Messages per second, ours and theirs: the two take turns, block by block. */
async function compareRates(
  bench: Bench,
  perBlock: number,
  sides: readonly [ours: Write, theirs: Write],
): Promise<{ readonly ratios: number[]; readonly note: string }> {
  const rounds = bench.size(15, 7);
  const blocks = bench.size(24, 12);
  const ratios: number[] = [];
  const rates: [number[], number[]] = [[], []];
  for (let round = -1; round < rounds; round++) {
    const spent: [number, number] = [0, 0];
    for (let block = 0; block < blocks; block++) {
      const from = ((round + 1) * blocks + block) * perBlock;
      const entries = Array.from({ length: perBlock }, (_, i) => bench.entries[(from + i) % bench.entries.length]!);
      for (let turn = 0; turn < 2; turn++) {
        const which = ((block + turn) & 1) as 0 | 1;
        const start = performance.now();
        await sides[which](entries);
        spent[which] += performance.now() - start;
      }
    }
    // The first round warms both up.
    if (round < 0) continue;
    for (const which of [0, 1] as const) rates[which].push((blocks * perBlock) / spent[which]);
    ratios.push(spent[1] / spent[0]);
  }
  return { ratios, note: `${median(rates[0]).toFixed(1)}k against ${median(rates[1]).toFixed(1)}k messages/s` };
}

type Write = (entries: readonly Entry[]) => Promise<void>;

/** Each of 64 callers appends its next message as soon as its last one is acknowledged. */
async function keepInFlight(journal: Journal, entries: readonly Entry[]): Promise<void> {
  let next = 0;
  const caller = async (): Promise<void> => {
    while (next < entries.length) await journal.append(entries[next++]!.record);
  };
  await Promise.all(Array.from({ length: IN_FLIGHT }, caller));
}

/** A new session checks its files at every append until its lock is sure, which takes a tenth of a second. */
export function sureLock(): Promise<void> {
  return sleep(500);
}

export function p50Note([ours, theirs]: readonly [number[], number[]]): string {
  return `${median(ours).toFixed(1)} against ${median(theirs).toFixed(1)} µs`;
}
