/**
 * Stores and their journals: for tools that work below sessions, and for authors of stores. `JournalStore` defines what
 * a store promises; the conformance suite of `@holdfast/testkit` tests it. `openStoreWith` puts sessions on it. The
 * parts that every store shares (`Ledger`, `Account`, `OrderClock`, refusals and the like) may change in a minor
 * version, unlike the rest of the library.
 */

export { defined } from "./defined.ts";
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
  OpenOptions,
  Recovery,
  Snapshot,
  Summariser,
  Trashed,
  VerbatimLine,
  Verification,
  WriterOptions,
  Written,
} from "./journal/contract.ts";
export { crcIn, startAfter } from "./journal/cursor.ts";
export { assertId } from "./journal/id.ts";
export { Ledger, type Prepared } from "./journal/ledger.ts";
export { assertEpoch, closedRecord, openedRecord, segmentRecord } from "./journal/lifecycle.ts";
export { Account, type Line, recordOf, recordsOf, type Segment } from "./journal/lines/account.ts";
export { decodeLine, TRAILER_BYTES, TRAILER_START } from "./journal/lines/decode.ts";
export { assertFollows, lineOf, nothingToAdopt, segmentAt } from "./journal/lines/verbatim.ts";
export { RowFold } from "./journal/list-row.ts";
export { OrderClock } from "./journal/order.ts";
export { cursorOf, FORMAT_MAJOR, FORMAT_MINOR, type NewRecord, RECORD_BYTES_MAX } from "./journal/record.ts";
export {
  cursorStale,
  journalClosed,
  notInTrash,
  notSupported,
  sessionBusy,
  sessionExists,
  sessionNotFound,
  storeClosed,
} from "./journal/refusals.ts";
export type {
  TextBacklog,
  TextBehind,
  TextChange,
  TextFound,
  TextMark,
  TextProgress,
  TextQuery,
  TextTables,
} from "./journal/texts.ts";
export { judgeEnd, verificationOf } from "./journal/verification.ts";
export { openStoreWith } from "./session/store.ts";
export { CommitQueue } from "./stores/commit-queue.ts";
export { defaultAddress } from "./stores/default-address.ts";
export { type FolderStoreOptions, openFolderStore } from "./stores/folder/store.ts";
export { JournalBase, type JournalBaseParts, unitOf } from "./stores/journal-base.ts";
export { Memory, type MemoryStoreOptions, openMemoryStore } from "./stores/memory/store.ts";
export { type JournalStoreOptions, openJournalStore } from "./stores/open.ts";
export { listCursor, newestFirst, parseListCursor } from "./stores/page.ts";
export { openSqliteStore, type SqliteStoreOptions } from "./stores/sqlite/store.ts";
export { Wake } from "./stores/wake.ts";
export { searchable, stretchesOf } from "./text/search-words.ts";
export { phrasesOf, tokensOf, withMarks } from "./text/tokens.ts";
