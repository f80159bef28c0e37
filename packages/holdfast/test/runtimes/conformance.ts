import { writeSync } from "node:fs";
import { conformance, memorySubject } from "@holdfast/testkit";
import { subjectOnDisk } from "../conformance/on-disk.ts";

/**
 * The conformance suite without a test runner, for any runtime: `conformance.ts <store> <runtime>`, where `runtime` is
 * the command that runs a program, as JSON. Prints a line of JSON when a case has ended.
 */
export interface CaseEnd {
  readonly name: string;
  readonly skipped: boolean;
  /** Absent if the case passed. */
  readonly failure?: string;
}

/** A case that hangs is reported by its name, before the test that started this program gives up. */
const CASE_MS = 60_000;

const [kind, command] = process.argv.slice(2) as ["folder" | "sqlite" | "memory", string];
const subject =
  kind === "memory" ? memorySubject() : subjectOnDisk(kind, kind, {}, JSON.parse(command) as readonly string[]);

for (const { name, skipped, execute } of conformance(subject, { caseMs: CASE_MS })) {
  const failure = skipped ? undefined : await execute().then(() => undefined, wordsOf);
  const end: CaseEnd = failure === undefined ? { name, skipped } : { name, skipped, failure };
  writeSync(1, `${JSON.stringify(end)}\n`);
}

function wordsOf(error: unknown): string {
  return error instanceof Error ? (error.stack ?? error.message) : String(error);
}
