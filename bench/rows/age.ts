import { openFolderStore } from "holdfast/internal";
import type { Bench } from "../bench.ts";
import type { AgePoint, Results } from "../figure.ts";
import { fill } from "../fixtures.ts";
import { compareP50, interleave } from "../interleave.ts";
import type { Entry } from "../messages.ts";
import { quantile } from "../statistics.ts";
import { p50Note } from "./append.ts";

const YOUNG = 1000;

/**
 * Append at record 1,000,000 against record 1,000, interleaved; and on the way there, how long an append takes at each
 * age. The old session is kept for the row that opens it.
 */
export async function ageRow(bench: Bench, results: Results): Promise<void> {
  const long = await bench.longSession(results.ages);
  const figures: number[] = [];
  const p50Us: [number[], number[]] = [[], []];
  const store = await openFolderStore(bench.path("young"), { durability: "process" });
  for (let round = 0; round < bench.size(9, 5); round++) {
    // A new one each round: a young session does not stay young while it is measured.
    const young = await store.create(bench.id(), []);
    await fill(young, bench.entries, YOUNG);
    const sides = [
      { awaited: (entry: Entry) => long.journal.append(entry.record) },
      { awaited: (entry: Entry) => young.append(entry.record) },
    ] as const;
    const { ratios, p50Us: times } = await compareP50(sides, bench.entries, { rounds: 1, perRound: 2000, warmUp: 200 });
    figures.push(...ratios);
    for (const which of [0, 1] as const) p50Us[which].push(...times[which]);
    await young.close();
  }
  await store.close();
  const records = long.journal.head.toLocaleString("en");
  results.figures.push({
    row: "age",
    what: `append at record ${bench.size(1_000_000, 150_000).toLocaleString("en")} against record 1,000, p50`,
    bound: { atMost: 1.2 },
    unit: "×",
    rounds: figures,
    note: `${p50Note(p50Us)}; the old one held ${records} records at the end`,
  });
}

/** Fills a session to `count` records, and looks at powers of ten on the way how long an append takes. */
export async function growSession(
  bench: Bench,
  side: (entry: Entry) => Promise<unknown>,
  fillTo: (records: number) => Promise<number>,
  count: number,
): Promise<AgePoint[]> {
  const points: AgePoint[] = [];
  const reference = bench.reference();
  const ages = [100, 1000, 10_000, 100_000, 1_000_000].filter((age) => age <= count);
  if (ages.at(-1) !== count) ages.push(count);
  for (const age of ages) {
    const records = await fillTo(age);
    bench.say(`a session of ${records.toLocaleString("en")} records`);
    const looks = Math.min(2000, Math.max(200, age / 5));
    const sides = [{ awaited: side }, { sync: reference.write }] as const;
    const [ours, theirs] = await interleave(sides, bench.entries, 0, looks);
    points.push({ who: "holdfast", records: age, p50Us: quantile(ours, 0.5) });
    points.push({ who: "stringify + writeSync", records: age, p50Us: quantile(theirs, 0.5) });
  }
  reference.close();
  return points;
}
