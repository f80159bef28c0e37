/** Tests of a store's promises and of a dialect, for any test runner, and validators of the providers' rules. */

export {
  type ConformanceOptions,
  type ConformanceTest,
  conformance,
  describeConformance,
  type Runner,
} from "./conformance/conformance.ts";
export { memorySubject } from "./conformance/memory-subject.ts";
export { noteSummariser } from "./conformance/notes.ts";
export type { Place, Step, Subject, SubjectCapabilities, SubjectOptions } from "./conformance/subject.ts";
export { type DialectSubject, describeDialect, type SampleCall } from "./dialects/index.ts";
export { validateAcp } from "./providers/acp.ts";
export { validateAiSdk } from "./providers/ai-sdk.ts";
export { validateAnthropic } from "./providers/anthropic.ts";
export { validateGemini } from "./providers/gemini.ts";
export { validateOpenaiChat } from "./providers/openai-chat.ts";
export { validateOpenaiResponses } from "./providers/openai-responses.ts";
export type { Violation } from "./providers/violation.ts";
