import type { BrokenStore } from "./broken.ts";
import { conformanceCases } from "./cases.ts";
import { type ConformanceTest, conformance } from "./conformance.ts";
import { memoryCapabilities, memorySubject } from "./memory-subject.ts";
import type { Subject } from "./subject.ts";

/** A broken store never delivers what a case waits for; a good one in memory does so at once. */
const PATIENCE_MS = 1000;
const CASE_MS = 3000;

export function subjectOf({ name, capabilities, open }: BrokenStore): Subject {
  return memorySubject(name, open, { ...memoryCapabilities, ...capabilities });
}

/** The cases that catch a broken store, by name, with their messages. */
export async function catchersOf(broken: BrokenStore): Promise<Map<string, string>> {
  const tests = conformance(subjectOf(broken), {
    patienceMs: PATIENCE_MS,
    ...(broken.heavy ? {} : { caseMs: CASE_MS }),
  });
  const found = await Promise.all(tests.filter((test) => isWorthRunning(test, broken)).map(findingOf));
  return new Map(found.filter((finding) => finding !== null));
}

/** In parallel: each case has its own place, and most of them only wait. */
async function findingOf({ name, execute }: ConformanceTest): Promise<[name: string, said: string] | null> {
  try {
    await execute();
    return null;
  } catch (error) {
    return [name, error instanceof Error ? error.message : String(error)];
  }
}

/** Write large records only for stores that fail at large records. */
function isWorthRunning(test: ConformanceTest, broken: BrokenStore): boolean {
  return !test.skipped && test.heavy === (broken.heavy === true);
}

/**
 * Which broken stores each case catches, as a Markdown table. `caught`: for each broken store, the cases that catch it.
 */
export function proofTable(caught: ReadonlyMap<string, ReadonlySet<string>>): string {
  const rows = conformanceCases.map(({ name, promises }) => {
    const stores = [...caught].filter(([, cases]) => cases.has(name)).map(([store]) => store);
    return `| ${name} | ${promises.join(", ")} | ${stores.join("; ")} |`;
  });
  return ["| case | shows | fails on a store that |", "|---|---|---|", ...rows, ""].join("\n");
}
