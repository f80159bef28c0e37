import type { Mutant } from "./mutant.ts";

export type Verdict = "killed" | "timed out" | "survived" | "equivalent" | "harmless";

export interface Judged {
  readonly room: string;
  readonly mutant: Mutant;
  readonly verdict: Verdict;
  /** The test that noticed, or the reason why none has to. */
  readonly by: string;
  /** How many tests ran the mutated place. */
  readonly tests: number;
  readonly ms: number;
}

export interface Score {
  readonly room: string;
  readonly all: number;
  readonly counts: Readonly<Record<Verdict, number>>;
  /** Of the mutants that some test should notice, the part that was noticed; 1 if there are none. */
  readonly score: number;
}

const VERDICTS: readonly Verdict[] = ["killed", "timed out", "survived", "equivalent", "harmless"];

export function scoresOf(judged: readonly Judged[]): Score[] {
  return [...Map.groupBy(judged, ({ room }) => room)].map(([room, group]) => {
    const count = (verdict: Verdict): number => group.filter((one) => one.verdict === verdict).length;
    const counts = Object.fromEntries(VERDICTS.map((verdict) => [verdict, count(verdict)])) as Record<Verdict, number>;
    const noticed = counts.killed + counts["timed out"];
    const wanted = noticed + counts.survived;
    return { room, all: group.length, counts, score: wanted === 0 ? 1 : noticed / wanted };
  });
}

export function tableOf(scores: readonly Score[]): string {
  const head = ["room", "mutants", ...VERDICTS, "score"];
  const rows = scores.map(({ room, all, counts, score }) => [
    room,
    String(all),
    ...VERDICTS.map((verdict) => String(counts[verdict])),
    `${(Math.floor(score * 1000) / 10).toFixed(1)} %`,
  ]);
  const widths = head.map((_, column) => Math.max(...[head, ...rows].map((row) => row[column]!.length)));
  const line = (row: readonly string[]): string =>
    row.map((cell, i) => (i === 0 ? cell.padEnd(widths[i]!) : cell.padStart(widths[i]!))).join("  ");
  return [line(head), ...rows.map(line)].join("\n");
}

/** What to look at, and how to see it again. */
export function survivorText({ mutant, tests }: Judged): string {
  const marked = (mark: string, text: string): string[] => shortened(text).map((line) => `    ${mark} ${line}`);
  return [
    `${mutant.file}:${mutant.line}  ${mutant.operator}${mutant.within === "" ? "" : `, in ${mutant.within}`}`,
    ...marked("-", mutant.before),
    ...marked("+", mutant.after),
    `    ${tests === 0 ? "no test runs this place" : `${tests} tests run this place, and all pass`}`,
    `    npm run mutate -- --mutant ${mutant.id}`,
  ].join("\n");
}

function shortened(text: string): string[] {
  const lines = text.split("\n");
  return lines.length <= 6 ? lines : [...lines.slice(0, 3), "…", ...lines.slice(-2)];
}
