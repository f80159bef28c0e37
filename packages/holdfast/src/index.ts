export type { AcpMessage } from "./dialects/acp.ts";
export type { AiSdkMessage } from "./dialects/ai-sdk.ts";
export type { AnthropicMessage } from "./dialects/anthropic.ts";
export type { Call, Dialect, Entry, Metadata, Outcome, Part, View } from "./dialects/dialect.ts";
export type { GeminiContent } from "./dialects/gemini.ts";
export { type DialectName, dialects, partsOf } from "./dialects/index.ts";
export type { OpenAIChatMessage } from "./dialects/openai-chat.ts";
export type { OpenAIResponsesItem } from "./dialects/openai-responses.ts";
export { type ErrorCode, type ErrorKind, errorCodes, errorKind, HoldfastError, isHoldfastError } from "./errors.ts";
export { type Guard, type GuardOptions, guard } from "./guard/guard.ts";
export type {
  Appended as JournalAppended,
  AppendOptions as JournalAppendOptions,
  Capabilities,
  Damage,
  Durability,
  FollowOptions,
  Holder,
  Journal,
  JournalStore,
  Listed,
  ListHints,
  ListOptions,
  Opened,
  Recovery,
  Snapshot,
  Summariser,
  Verification,
  WriterOptions,
} from "./journal/contract.ts";
export { newId } from "./journal/id.ts";
export { cursorOf, type JournalRecord, type Json, type NewRecord, RECORD_BYTES_MAX } from "./journal/record.ts";
export { credentials } from "./redact/find-credentials.ts";
export { openStore, openStoreWith } from "./session/store.ts";
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
  Interruption,
  Link,
  ListQuery,
  OpenCall,
  OpenOptions,
  Queued,
  Reading,
  ResumeOptions,
  SearchHit,
  Session,
  Store,
  StoreOptions,
  Summary,
  SyncOptions,
  ToolOptions,
  ToolProcess,
  Turn,
  TurnRequest,
  Usage,
} from "./session/surface.ts";
export { defaultAddress } from "./stores/default-address.ts";
export { type FolderStoreOptions, openFolderStore } from "./stores/folder/store.ts";
export { Memory, type MemoryStoreOptions, openMemoryStore } from "./stores/memory/store.ts";
export { type JournalStoreOptions, openJournalStore } from "./stores/open.ts";
export { openSqliteStore, type SqliteStoreOptions } from "./stores/sqlite/store.ts";
export { wellFormed } from "./text/well-formed.ts";
