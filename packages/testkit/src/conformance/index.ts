export { type BrokenStore, brokenStores, goodVariants } from "./broken.ts";
export type { Case } from "./case.ts";
export { conformanceCases } from "./cases.ts";
export {
  type ConformanceOptions,
  type ConformanceTest,
  conformance,
  describeConformance,
  type Runner,
  runCase,
} from "./conformance.ts";
export { memoryCapabilities, memorySubject, type OpenInMemory } from "./memory-subject.ts";
export { noteSummariser } from "./notes.ts";
export { catchersOf, proofTable, subjectOf } from "./proof.ts";
export type { Place, Step, Subject, SubjectCapabilities, SubjectOptions } from "./subject.ts";
export type { Trial } from "./trial.ts";
