import * as fs from "node:fs";
import { join } from "node:path";
import { openFolderStore } from "holdfast/internal";
import type { JournalStore } from "holdfast/store";
import type { Bench } from "../bench.ts";
import type { Results } from "../figure.ts";
import { makeSessions, summariser } from "../fixtures.ts";
import { median } from "../statistics.ts";

/** A list of 10,000 sessions: warm, and after the catalogue was deleted. */
export async function listRow(bench: Bench, results: Results): Promise<void> {
  const count = bench.size(10_000, 2000);
  const root = await makeSessions(bench, count);
  const sessions = join(root, "sessions");
  const shown = count.toLocaleString("en");

  let store = await openFolderStore(root, { summariser });
  await listAll(store, count);
  const warm = await inTurn(
    bench.size(21, 9),
    5,
    () => listAll(store, count),
    () => statAll(sessions),
  );
  results.figures.push({
    row: "list",
    what: `list of ${shown} sessions, warm`,
    bound: { atMost: 1.3 },
    unit: "×",
    rounds: warm.ratios,
    note: msNote(warm.ms),
  });

  // As a new process finds it: the rows are in the catalogue, and not yet in memory.
  const first = await inTurn(
    bench.size(9, 5),
    1,
    () => listAll(store, count),
    () => statAll(sessions),
    async () => {
      await store.close();
      store = await openFolderStore(root, { summariser });
    },
  );
  results.peers.push({
    what: `holdfast: first list of ${shown} sessions by a store just opened, against readdir + stat`,
    unit: "×",
    rounds: first.ratios,
    note: msNote(first.ms),
  });

  const cold = await inTurn(
    bench.size(9, 5),
    1,
    () => listAll(store, count),
    () => readAll(sessions),
    async () => {
      await store.close();
      for (const name of fs.readdirSync(root)) if (name.startsWith("catalog.sqlite")) fs.rmSync(join(root, name));
      store = await openFolderStore(root, { summariser });
    },
  );
  await store.close();
  results.figures.push({
    row: "list",
    what: `the same after the catalogue was deleted`,
    bound: { atMost: 4 },
    unit: "×",
    rounds: cold.ratios,
    note: msNote(cold.ms),
  });
}

async function listAll(store: JournalStore, count: number): Promise<void> {
  const { sessions } = await store.list();
  const last = sessions.at(-1)?.summary as { messages?: number } | null | undefined;
  if (sessions.length !== count || last?.messages !== 10)
    throw new Error(`listed ${sessions.length} of ${count} sessions`);
}

/** One readdir, and one stat of each session's folder. */
function statAll(sessions: string): void {
  let folders = 0;
  for (const name of fs.readdirSync(sessions)) if (fs.statSync(join(sessions, name)).isDirectory()) folders++;
  if (folders === 0) throw new Error("there are no sessions");
}

/** Opens each session's newest segment and reads 64 KB. */
function readAll(sessions: string): void {
  const buffer = Buffer.allocUnsafe(64 * 1024);
  for (const name of fs.readdirSync(sessions)) {
    const fd = fs.openSync(join(sessions, name, "000001.jsonl"), "r");
    fs.readSync(fd, buffer, 0, buffer.length, 0);
    fs.closeSync(fd);
  }
}

/**
 * Both in turn, `perRound` times; the ratio of a round is that of the medians. `prepare` comes before each of ours,
 * untimed.
 */
async function inTurn(
  rounds: number,
  perRound: number,
  ours: () => Promise<void>,
  theirs: () => void,
  prepare?: () => Promise<void>,
): Promise<{ ratios: number[]; ms: [number[], number[]] }> {
  const ratios: number[] = [];
  const ms: [number[], number[]] = [[], []];
  for (let round = -1; round < rounds; round++) {
    const times: [number[], number[]] = [[], []];
    for (let i = 0; i < perRound * 2; i++) {
      // ours, theirs, theirs, ours
      const which = (((i + 1) >> 1) & 1) as 0 | 1;
      if (which === 0) await prepare?.();
      globalThis.gc?.();
      const start = performance.now();
      if (which === 0) await ours();
      else theirs();
      times[which].push(performance.now() - start);
    }
    if (round < 0) continue;
    for (const which of [0, 1] as const) ms[which].push(median(times[which]));
    ratios.push(ms[0].at(-1)! / ms[1].at(-1)!);
  }
  return { ratios, ms };
}

function msNote([ours, theirs]: readonly [number[], number[]]): string {
  return `${median(ours).toFixed(1)} against ${median(theirs).toFixed(1)} ms`;
}
