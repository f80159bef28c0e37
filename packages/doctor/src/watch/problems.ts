import type { ProblemKind } from "../contract/problem.ts";

/** What says that a session can no longer be read in full. Other problems are the doctor's, when it is asked. */
export const TEXT_DAMAGE: ReadonlySet<ProblemKind> = new Set<ProblemKind>([
  "torn-record",
  "glued-records",
  "nul-run",
  "raw-line-break",
  "raw-control-character",
  "split-record",
  "unclosed-record",
  "invalid-utf8",
  "garbage",
  "header-missing",
  "header-damaged",
  "lost-record",
  "empty-file",
  "damaged-database",
  "damaged-page",
  "damaged-row",
  "truncated-compression",
  "unopenable",
]);
