/**
 * Stores and their journals: for tools that work below sessions, and for authors of stores. `JournalStore` defines what
 * a store promises; the conformance suite of `@holdfast/testkit` tests it. `openStoreWith` puts sessions on it. The parts
 * that every store shares (`Ledger`, `Account`, `OrderClock`, refusals and the like) may change in a minor version,
 * unlike the rest of the library.
 */

export { defined } from "./defined.ts";
export {
  type Appended as JournalAppended,
  type AppendOptions as JournalAppendOptions,
  type Capabilities,
  type Damage,
  type Durability,
  type FollowOptions,
  type Holder,
  type Journal,
  type JournalStore,
  type Listed,
  type ListHints,
  type ListOptions,
  type Opened,
  type Recovery,
  rowIn,
  type Snapshot,
  type Summariser,
  type Verification,
  type WriterOptions,
} from "./journal/contract.ts";
export { crcIn, startAfter } from "./journal/cursor.ts";
export { assertId } from "./journal/id.ts";
export { Ledger, type Prepared } from "./journal/ledger.ts";
export { assertEpoch, assertFormat, closedRecord, openedRecord, segmentRecord } from "./journal/lifecycle.ts";
export { Account, type Line, recordOf, type Segment } from "./journal/lines/account.ts";
export { decodeLine, TRAILER_BYTES, TRAILER_START } from "./journal/lines/decode.ts";
export { assertFollows, lineOf, nothingToAdopt, segmentAt, type VerbatimLine } from "./journal/lines/verbatim.ts";
export { aheadAfter, aheadOf, OrderClock, stampOf } from "./journal/order.ts";
export { cursorOf, FORMAT_MAJOR, FORMAT_MINOR, type NewRecord, RECORD_BYTES_MAX } from "./journal/record.ts";
export {
  cursorStale,
  journalClosed,
  notSupported,
  sessionBusy,
  sessionExists,
  sessionNotFound,
  storeClosed,
} from "./journal/refusals.ts";
export type { TextBehind, TextChange, TextFound, TextMark, TextQuery, TextTables } from "./journal/texts.ts";
export { openStoreWith } from "./session/store.ts";
export { defaultAddress } from "./stores/default-address.ts";
export { type FolderStoreOptions, openFolderStore } from "./stores/folder/store.ts";
export { tellAll } from "./stores/listeners.ts";
export { Memory, type MemoryStoreOptions, openMemoryStore } from "./stores/memory/store.ts";
export { type JournalStoreOptions, openJournalStore } from "./stores/open.ts";
export { listCursor, newestFirst, parseListCursor } from "./stores/page.ts";
export { openSqliteStore, type SqliteStoreOptions } from "./stores/sqlite/store.ts";
export { Wake } from "./stores/wake.ts";
export { searchable, stretchesOf } from "./text/search-words.ts";
export { phrasesOf, tokensOf, withMarks } from "./text/tokens.ts";
