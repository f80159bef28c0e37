import type { Bench } from "./bench.ts";
import type { Results } from "./figure.ts";
import { ageRow } from "./rows/age.ts";
import { powerAppend, powerInFlight, processAppend } from "./rows/append.ts";
import { bytesRow } from "./rows/bytes.ts";
import { followRow } from "./rows/follow.ts";
import { listRow } from "./rows/list.ts";
import { openEpochRow, openLongRow } from "./rows/open.ts";
import { peersRow } from "./rows/peers.ts";

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
  { name: "age", measure: ageRow },
  { name: "bytes", measure: bytesRow },
  { name: "open-long", measure: openLongRow },
  { name: "open-epoch", measure: openEpochRow },
  { name: "list", measure: listRow },
  { name: "follow", measure: followRow },
  { name: "peers", measure: peersRow },
];
