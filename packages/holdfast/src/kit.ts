/**
 * For store authors (`holdfast/kit`): the parts of a journal that every store shares. `JournalStore` defines what a
 * store promises; the conformance suite of `@holdfast/testkit` tests it. Unlike the rest of the library, these exports
 * may change in a minor version.
 */

export { defined } from "./defined.ts";
export type { Written } from "./journal/contract.ts";
export { crcIn, startAfter } from "./journal/cursor.ts";
export { assertId } from "./journal/id.ts";
export { Ledger, type Prepared } from "./journal/ledger.ts";
export { assertEpoch, closedRecord, openedRecord, segmentRecord } from "./journal/lifecycle.ts";
export { Account, type Line, recordOf, recordsOf, type Segment } from "./journal/lines/account.ts";
export { decodeLine, TRAILER_BYTES, TRAILER_START } from "./journal/lines/decode.ts";
export { assertFollows, lineOf, nothingToAdopt, segmentAt, type VerbatimLine } from "./journal/lines/verbatim.ts";
export { RowFold } from "./journal/list-row.ts";
export { OrderClock } from "./journal/order.ts";
export { FORMAT_MAJOR, FORMAT_MINOR } from "./journal/record.ts";
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
export { judgeEnd, verificationOf } from "./journal/verification.ts";
export { CommitQueue } from "./stores/commit-queue.ts";
export { JournalBase, type JournalBaseParts, unitOf } from "./stores/journal-base.ts";
export { listCursor, newestFirst, parseListCursor } from "./stores/page.ts";
export { Wake } from "./stores/wake.ts";
export { searchable, stretchesOf } from "./text/search-words.ts";
export { phrasesOf, tokensOf, withMarks } from "./text/tokens.ts";
