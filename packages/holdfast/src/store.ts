/**
 * Stores and their journals: for authors of stores, and for tools that work below sessions. `JournalStore` defines what
 * a store promises; the conformance suite of `@holdfast/testkit` tests it. `openStoreWith` puts sessions on it. The
 * building blocks (`Ledger`, `JournalBase`, `CommitQueue`, `Account`, and the functions for records and lines) may
 * change in a minor version, unlike the rest of the library.
 */

export type {
  Appended as JournalAppended,
  AppendOptions as JournalAppendOptions,
  Capabilities,
  DueQuery,
  Durability,
  FollowOptions,
  Holder,
  Journal,
  JournalStore,
  Listed,
  ListOptions,
  Opened,
  OpenOptions,
  Snapshot,
  Summariser,
  Trashed,
  VerbatimLine,
  Verification,
  WriterOptions,
  Written,
} from "./journal/contract.ts";
export { assertId } from "./journal/id.ts";
export { Ledger, type Prepared } from "./journal/ledger.ts";
export { openedRecord, segmentRecord } from "./journal/lifecycle.ts";
export { Account, recordsOf } from "./journal/lines/account.ts";
export { decodeLine } from "./journal/lines/decode.ts";
export type { NewRecord } from "./journal/record.ts";
export type { TextTables } from "./journal/texts.ts";
export { openStoreWith } from "./session/store.ts";
export { CommitQueue } from "./stores/commit-queue.ts";
export { JournalBase, type JournalBaseParts } from "./stores/journal-base.ts";
export { openJournalStore } from "./stores/open.ts";
export type { JournalStoreOptions } from "./stores/schemes.ts";
