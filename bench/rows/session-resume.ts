import type { Bench } from "../bench.ts";
import type { Results } from "../figure.ts";
import { makeSession } from "../sessions.ts";
import { median } from "../statistics.ts";

interface Opening {
  readonly ms: number;
  readonly peakMB: number;
  readonly records: number;
}

const MESSAGES = 10_000;

/**
 * `store.resume` and the first look at `messages`, against reading and parsing the same bytes. Each in a new process,
 * with warm files.
 */
export async function sessionResumeRow(bench: Bench, { figures }: Results): Promise<void> {
  for (const dialect of ["anthropic", "ai-sdk"] as const) {
    const { root, id } = await makeSession(bench.path("resume"), dialect, MESSAGES);
    const tasks = [
      ["resume", root, id],
      ["parse", root, id],
    ] as const;
    const pairs: [Opening, Opening][] = [];
    // The first round fills the caches.
    for (let round = -1; round < bench.size(15, 5); round++) {
      const pair: Opening[] = [];
      for (const which of round % 2 === 0 ? [0, 1] : [1, 0])
        pair[which] = (await bench.child(tasks[which]!)) as Opening;
      const [ours, theirs] = pair as [Opening, Opening];
      if (ours.records !== MESSAGES) throw new Error(`resumed with ${ours.records} messages`);
      if (theirs.records < MESSAGES) throw new Error(`parsed ${theirs.records} records`);
      if (round >= 0) pairs.push([ours, theirs]);
    }
    const middle = (which: 0 | 1, of: "ms" | "peakMB"): string =>
      median(pairs.map((pair) => pair[which][of])).toFixed(0);
    figures.push({
      row: "session-resume",
      what: `resume 10,000 messages against read and parse, ${dialect}`,
      bound: { atMost: 2 },
      unit: "×",
      rounds: pairs.map(([ours, theirs]) => ours.ms / theirs.ms),
      note: `${middle(0, "ms")} against ${middle(1, "ms")} ms, ${middle(0, "peakMB")} against ${middle(1, "peakMB")} MB`,
    });
  }
}
