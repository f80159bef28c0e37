/**
 * What an agent needs: a store, sessions, turns, dialects, errors. Journals, and the stores one by one, are in
 * `holdfast/store`.
 */

export { type Account, type AccountOptions, accountOf, type CallAccount } from "./account/account.ts";
export type { Act, Refusal } from "./account/acts.ts";
export type { CallState } from "./account/words.ts";
export { cutOffWords } from "./account/words.ts";
export type { AcpMessage } from "./dialects/acp.ts";
export type { AiSdkMessage } from "./dialects/ai-sdk.ts";
export type { AnthropicMessage } from "./dialects/anthropic.ts";
export type { Call, Dialect, Entry, Metadata, Outcome, Part, View } from "./dialects/dialect.ts";
export type { GeminiContent } from "./dialects/gemini.ts";
export { type DialectMessages, type DialectName, dialects, partsOf } from "./dialects/index.ts";
export { type DialectMapping, mapDialect } from "./dialects/mapped/map-dialect.ts";
export type { OpenAIChatMessage } from "./dialects/openai-chat.ts";
export type { OpenAIResponsesItem } from "./dialects/openai-responses.ts";
export { type ErrorCode, type ErrorKind, errorCodes, errorKind, HoldfastError, isHoldfastError } from "./errors.ts";
export { type Guard, type GuardOptions, guard } from "./guard/guard.ts";
export { idFrom, newId } from "./journal/id.ts";
export type { JournalRecord, Json } from "./journal/record.ts";
export { credentials } from "./redact/find-credentials.ts";
export { HeldBack } from "./redact/held-back.ts";
export { openStore } from "./session/open-store.ts";
export type {
  AnswerOptions,
  Appended,
  AppendOptions,
  Attributes,
  Cost,
  CreateOptions,
  Delta,
  Draft,
  DraftContent,
  ForkOptions,
  Interruption,
  LatestOptions,
  Link,
  ListQuery,
  Once,
  OpenCall,
  OpenOptions,
  Queued,
  Reading,
  ReadOptions,
  Recorder,
  RecordOptions,
  ResumeOptions,
  SearchHit,
  Session,
  Store,
  StoreOptions,
  Summary,
  SyncOptions,
  ToolOptions,
  ToolProcess,
  TrashedSession,
  Turn,
  TurnEnd,
  TurnRequest,
  Usage,
} from "./session/surface.ts";
export type { SessionState } from "./session-state.ts";
export { wellFormed } from "./text/well-formed.ts";
export { type CallDecision, type CallFacts, type CallPolicy, decideCall } from "./view/decide-call.ts";
