/**
 * What an agent needs: a store, sessions, turns, dialects, errors. Journals, and the stores one by one, are in
 * `holdfast/store`.
 */

export { type Account, type AccountOptions, accountOf, type CallAccount } from "./account/account.ts";
export type { Act, Refusal } from "./account/acts.ts";
export type { CallState } from "./account/words.ts";
export { cutOffWords } from "./account/words.ts";
export type { AppStateChanges } from "./admit/app-state.ts";
export type { SuspendOptions } from "./admit/suspension.ts";
export type { Appended, AppendOptions, PromptOptions, StateOptions } from "./admit/to-records.ts";
export type { AcceptedRequest, DraftContent } from "./conversation/draft-state.ts";
export type { Queued } from "./conversation/prompt-queue.ts";
export type { Attributes, Link } from "./conversation/records/attributes.ts";
export type { ToolProcess } from "./conversation/records/records.ts";
export type { Cost, Usage } from "./conversation/records/usage.ts";
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
export type { ListQuery, Summary, TrashedSession } from "./listing/query.ts";
export { credentials } from "./redact/find-credentials.ts";
export { HeldBack } from "./redact/held-back.ts";
export type { SearchHit } from "./search/search-index.ts";
export { openStore } from "./session/open-store.ts";
export type { Answer } from "./session/prompts/answer.ts";
export type { Store, StoreOptions } from "./session/store-surface.ts";
export type {
  CreateOptions,
  ForkOptions,
  LatestOptions,
  Once,
  OpenOptions,
  ReadOptions,
  Recorder,
  RecordOptions,
  Session,
  TurnEnd,
} from "./session/surface.ts";
export type { Probe, ProbeAnswer, ProbedCall, ProbeOptions, SettleOptions } from "./session/turn/probe.ts";
export type { ProbedStep, StepCall, StepOptions, StepStart } from "./session/turn/steps.ts";
export type {
  AnswerOptions,
  CloseOptions,
  Delta,
  Draft,
  ToolOptions,
  ToolStartOptions,
  Turn,
  TurnRequest,
} from "./session/turn/surface.ts";
export { type ToolCall, toolCall } from "./session/turn/tool-call.ts";
export { type StandardSchema, type TypedState, typedState } from "./session/typed-state.ts";
export type { Claim, ClaimOptions, ClaimResult, Finish, WorkOptions } from "./session/work/surface.ts";
export type { SessionState } from "./session-state.ts";
export type { SyncOptions } from "./sync/given-array.ts";
export { wellFormed } from "./text/well-formed.ts";
export { changesWords } from "./view/changes-words.ts";
export {
  type CallDecision,
  type CallFacts,
  type CallPolicy,
  type ChangedFile,
  decideCall,
  type FolderChanges,
  type ToolRule,
} from "./view/decide-call.ts";
export type { CallStep, Interruption, OpenCall, SettledCall } from "./view/interruption.ts";
export type { Reading } from "./view/reading.ts";
export type { ResumeOptions } from "./view/repairs.ts";
