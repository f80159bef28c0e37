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
 * `store.resume` and the first look at `messages`, against reading and parsing the same files: as anybody would write
 * it, and in chunks. Each in a new process, with warm files.
 */
export async function sessionResumeRow(bench: Bench, { figures, peers }: Results): Promise<void> {
  for (const dialect of Object.keys(dialects) as DialectName[]) {
    const { root, id } = await makeSession(bench.path("resume"), dialect, MESSAGES);
    const tasks = [
      ["resume", root, id],
      ["text", root, id],
      ["parse", root, id],
    ] as const;
    const rounds = await inTurn(bench, bench.size(11, 5), tasks, MESSAGES);
    const against = (which: number) => ({
      unit: "×" as const,
      rounds: rounds.map((all) => all[0]!.ms / all[which]!.ms),
      note: noteOf(rounds, which),
    });
    const what = `resume 10,000 messages against read and parse, ${dialect}`;
    figures.push({ row: "session-resume", what, bound: { atMost: 1.4 }, ...against(1) });
    peers.push({ what: `${what}, in chunks`, ...against(2) });
  }
}

/** The same with 100,000 messages, against the same messages as rows in SQLite: time and memory. */
export async function sessionResumeLongRow(bench: Bench, { figures, peers }: Results): Promise<void> {
  const count = bench.size(MANY, MANY / 5);
  const { root, id } = await makeSession(bench.path("resume-long"), "anthropic", count);
  const table = bench.path("rows");
  fillTable(table, makeConversation(count, "anthropic"));
  const tasks = [
    ["resume", root, id],
    ["rows", table],
    ["check", root, id],
  ] as const;
  const rounds = await inTurn(bench, bench.size(7, 3), tasks, count);
  const what = `resume ${count.toLocaleString("en")} messages against the same rows in SQLite`;
  for (const [of, unit] of [
    ["ms", "time"],
    ["peakMB", "peak memory"],
  ] as const) {
    figures.push({
      row: "session-resume-long",
      what: `${what}, ${unit}`,
      bound: { atMost: 1 },
      unit: "×",
      rounds: rounds.map(([ours, theirs]) => ours![of] / theirs![of]),
      note: noteOf(rounds, 1),
    });
    // The least that a journal with checksums can take.
    peers.push({
      what: `read, check and parse the lines of ${count.toLocaleString("en")} messages against the same rows in SQLite, ${unit}`,
      unit: "×",
      rounds: rounds.map(([, theirs, least]) => least![of] / theirs![of]),
    });
  }
}

function fillTable(path: string, entries: readonly Entry[]): void {
  const database = openTable(path, "NORMAL");
  const insert = database.prepare("INSERT INTO messages (session, message) VALUES (?, ?)");
  database.exec("BEGIN");
  for (const { message } of entries) insert.run("session", JSON.stringify(message));
  database.exec("COMMIT");
  database.close();
}

/** Each task in a new process, in turn: ours first, and in every other round last. One list for each round. */
async function inTurn(
  bench: Bench,
  count: number,
  tasks: readonly (readonly string[])[],
  messages: number,
): Promise<Opening[][]> {
  const rounds: Opening[][] = [];
  // The first round fills the caches.
  for (let round = -1; round < count; round++) {
    const order = tasks.map((_, which) => which);
    const all: Opening[] = [];
    for (const which of round % 2 === 0 ? order : order.reverse())
      all[which] = (await bench.child(tasks[which]!)) as Opening;
    const [ours, ...theirs] = all;
    if (ours!.records !== messages) throw new Error(`resumed with ${ours!.records} messages`);
    for (const { records } of theirs) if (records < messages) throw new Error(`found ${records} records`);
    if (round >= 0) rounds.push(all);
  }
  return rounds;
}

function noteOf(rounds: readonly Opening[][], other: number): string {
  const middle = (which: number, of: "ms" | "peakMB"): string =>
    median(rounds.map((all) => all[which]![of])).toFixed(0);
  return `${middle(0, "ms")} against ${middle(other, "ms")} ms, ${middle(0, "peakMB")} against ${middle(other, "peakMB")} MB`;
}
