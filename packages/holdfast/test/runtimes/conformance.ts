import { writeSync } from "node:fs";
import { conformance, memorySubject } from "@holdfast/testkit";
import { subjectOnDisk } from "../conformance/on-disk.ts";

/**
 * The conformance suite without a test runner, for any runtime: `conformance.ts <store> <runtime>`, where `runtime` is
 * the command that starts this program, as JSON. Prints a line of JSON for each case when it ends.
 */
export interface CaseEnd {
  readonly name: string;
  readonly skipped: boolean;
  /** What went wrong; absent if the case passed or was skipped. */
  readonly failure?: string;
}

const [kind, command] = process.argv.slice(2) as ["folder" | "sqlite" | "memory", string];
const runtime = JSON.parse(command) as string[];
const subject = kind === "memory" ? memorySubject() : subjectOnDisk(kind, kind, {}, runtime);

for (const { name, skipped, execute } of conformance(subject, { caseMs: 60_000 })) {
  const t = performance.now();
  const failure = skipped ? {} : await execute().then(() => ({}), (error) => ({ failure: wordsOf(error) }));
  writeSync(1, `${JSON.stringify({ name, skipped, ...failure, ms: Math.round(performance.now()-t) } as any satisfies CaseEnd)}\n`);
}

function wordsOf(error: unknown): string {
  return error instanceof Error ? (error.stack ?? error.message) : String(error);
}
