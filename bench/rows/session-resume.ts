import { type DialectName, dialects } from "holdfast";
import type { Bench } from "../bench.ts";
import type { Results } from "../figure.ts";
import { type Entry, makeConversation } from "../messages.ts";
import { makeSession } from "../sessions.ts";
import { median } from "../statistics.ts";
import { openTable } from "./peers.ts";

interface Opening {
  readonly ms: number;
  readonly peakMB: number;
  readonly records: number;
}

const MESSAGES = 10_000;
const MANY = 100_000;

/**
 * `store.resume` and the first look at `messages`, against reading and parsing the same bytes. Each in a new process,
 * with warm files.
 */
export async function sessionResumeRow(bench: Bench, { figures }: Results): Promise<void> {
  for (const dialect of Object.keys(dialects) as DialectName[]) {
    const { root, id } = await makeSession(bench.path("resume"), dialect, MESSAGES);
    const tasks = [
      ["resume", root, id],
      ["parse", root, id],
    ] as const;
    const pairs = await inTurn(bench, bench.size(11, 5), tasks, MESSAGES);
    figures.push({
      row: "session-resume",
      what: `resume 10,000 messages against read and parse, ${dialect}`,
      bound: { atMost: 1.4 },
      unit: "×",
      rounds: pairs.map(([ours, theirs]) => ours.ms / theirs.ms),
      note: noteOf(pairs),
    });
  }
}

/** The same with 100,000 messages, against the same messages as rows in SQLite: time and memory. */
export async function sessionResumeLongRow(bench: Bench, { figures }: Results): Promise<void> {
  const count = bench.size(MANY, MANY / 5);
  const { root, id } = await makeSession(bench.path("resume-long"), "anthropic", count);
  const table = bench.path("rows");
  fillTable(table, makeConversation(count, "anthropic"));
  const tasks = [
    ["resume", root, id],
    ["rows", table],
  ] as const;
  const pairs = await inTurn(bench, bench.size(7, 3), tasks, count);
  const what = `resume ${count.toLocaleString("en")} messages against the same rows in SQLite`;
  for (const [of, unit] of [
    ["ms", "time"],
    ["peakMB", "peak memory"],
  ] as const)
    figures.push({
      row: "session-resume-long",
      what: `${what}, ${unit}`,
      bound: { atMost: 1 },
      unit: "×",
      rounds: pairs.map(([ours, theirs]) => ours[of] / theirs[of]),
      note: noteOf(pairs),
    });
}

function fillTable(path: string, entries: readonly Entry[]): void {
  const database = openTable(path, "NORMAL");
  const insert = database.prepare("INSERT INTO messages (session, message) VALUES (?, ?)");
  database.exec("BEGIN");
  for (const { message } of entries) insert.run("session", JSON.stringify(message));
  database.exec("COMMIT");
  database.close();
}

/** Each task in a new process, in turn. */
async function inTurn(
  bench: Bench,
  rounds: number,
  tasks: readonly [readonly string[], readonly string[]],
  count: number,
): Promise<[Opening, Opening][]> {
  const pairs: [Opening, Opening][] = [];
  // The first round fills the caches.
  for (let round = -1; round < rounds; round++) {
    const pair: Opening[] = [];
    for (const which of round % 2 === 0 ? [0, 1] : [1, 0]) pair[which] = (await bench.child(tasks[which]!)) as Opening;
    const [ours, theirs] = pair as [Opening, Opening];
    if (ours.records !== count) throw new Error(`resumed with ${ours.records} messages`);
    if (theirs.records < count) throw new Error(`found ${theirs.records} records`);
    if (round >= 0) pairs.push([ours, theirs]);
  }
  return pairs;
}

function noteOf(pairs: readonly [Opening, Opening][]): string {
  const middle = (which: 0 | 1, of: "ms" | "peakMB"): string => median(pairs.map((pair) => pair[which][of])).toFixed(0);
  return `${middle(0, "ms")} against ${middle(1, "ms")} ms, ${middle(0, "peakMB")} against ${middle(1, "peakMB")} MB`;
}
