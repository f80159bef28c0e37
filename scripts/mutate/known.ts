import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import type { Mutant } from "./mutant.ts";
import { OPERATORS } from "./operators.ts";

/** A mutant that no test has to notice, and why. It is matched by its text, so it stays known when lines move. */
export interface KnownMutant {
  readonly file: string;
  readonly within: string;
  readonly operator: string;
  readonly before: string;
  readonly after: string;
  /** Which one, if the same text stands more than once in the same function. */
  readonly nth?: number;
  /**
   * Equivalent: nothing can tell it from the original. Harmless: something can, and nobody who uses the library minds.
   */
  readonly verdict: "equivalent" | "harmless";
  /** One sentence. */
  readonly reason: string;
}

const PATH = join(import.meta.dirname, "known.json");

export function readKnown(): KnownMutant[] {
  return JSON.parse(readFileSync(PATH, "utf8")) as KnownMutant[];
}

export function writeKnown(known: readonly KnownMutant[]): void {
  writeFileSync(PATH, `${JSON.stringify(known, null, 2)}\n`);
}

/** The list with these mutants in it, in place of what was said of them before, in the order of the files. */
export function addKnown(
  known: readonly KnownMutant[],
  mutants: readonly Mutant[],
  verdict: KnownMutant["verdict"],
  reason: string,
): KnownMutant[] {
  const others = known.filter((entry) => !mutants.some((mutant) => isSame(entry, mutant)));
  const added = mutants.map(({ file, within, operator, before, after, nth }) => {
    return { file, within, operator, before, after, ...(nth > 1 && { nth }), verdict, reason };
  });
  return [...others, ...added].sort((a, b) => (a.file === b.file ? 0 : a.file < b.file ? -1 : 1));
}

export function findKnown(known: readonly KnownMutant[], mutant: Mutant): KnownMutant | undefined {
  return known.find((entry) => isSame(entry, mutant));
}

/** What is wrong with an entry, given all mutants of its file; null if it fits. */
export function misfit(entry: KnownMutant, mutants: readonly Mutant[]): string | null {
  if (!(entry.operator in OPERATORS)) return `there is no operator "${entry.operator}"`;
  if (entry.verdict !== "equivalent" && entry.verdict !== "harmless") return `there is no verdict "${entry.verdict}"`;
  if (!/^\S.*\.$/.test(entry.reason)) return "the reason is not a sentence";
  if (mutants.some((mutant) => isSame(entry, mutant))) return null;
  return "no mutant of the file has this text: remove the entry, or follow the change of the source";
}

function isSame(entry: KnownMutant, mutant: Mutant): boolean {
  return (
    entry.file === mutant.file &&
    entry.within === mutant.within &&
    entry.operator === mutant.operator &&
    entry.before === mutant.before &&
    entry.after === mutant.after &&
    (entry.nth ?? 1) === mutant.nth
  );
}
