import type { Bench } from "./bench.ts";
import type { Results } from "./figure.ts";
import { powerAppend, powerInFlight, processAppend } from "./rows/append.ts";

/** One row of the table, or a few that share what they need. */
export interface Row {
  /** What `--only` calls it. */
  readonly name: string;
  readonly measure: (bench: Bench, results: Results) => Promise<void>;
}

export const rows: readonly Row[] = [
  { name: "process", measure: async (bench, { figures }) => void figures.push(await processAppend(bench)) },
  { name: "power", measure: async (bench, { figures }) => void figures.push(await powerAppend(bench)) },
  { name: "in-flight", measure: async (bench, { figures }) => void figures.push(await powerInFlight(bench)) },
];
