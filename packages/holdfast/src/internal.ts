/**
 * Only for the packages of this repository, and their tests: it changes without notice, and docs/API.md leaves it out.
 * What others need is in `holdfast` and `holdfast/store`.
 */

export { callWords, settledWords } from "./account/words.ts";
export { toolMissing } from "./admit/refusals.ts";
export { defined } from "./defined.ts";
export { removeDatabase } from "./disk/database-file.ts";
export { nodeDisk } from "./disk/node-disk.ts";
export { jitter } from "./jitter.ts";
export type { ListHints, Recovery } from "./journal/contract.ts";
export { crcIn, startAfter } from "./journal/cursor.ts";
export { assertEpoch, closedRecord } from "./journal/lifecycle.ts";
export { type Line, recordOf, type Segment } from "./journal/lines/account.ts";
export { adoptedBatches, lineOf } from "./journal/lines/verbatim.ts";
export { type ListRow, RowFold } from "./journal/list-row.ts";
export { OrderClock } from "./journal/order.ts";
export { cursorOf, FORMAT, FORMAT_MAJOR, FORMAT_MINOR, RECORD_BYTES_MAX } from "./journal/record.ts";
export {
  cursorStale,
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
} from "./journal/texts.ts";
export { judgeEnd, verificationOf } from "./journal/verification.ts";
export { AGE_MS_MAX, checkNumbers, count, duration } from "./number-options.ts";
export { type Base, IndexFailure, openBase, patiently } from "./search/base.ts";
export { SCHEMA as TEXT_SCHEMA } from "./search/tables.ts";
export { TEXT_CHARS_MAX } from "./search/texts.ts";
export { runInCall } from "./session/turn/tool-call.ts";
export { dueInLists } from "./session/work/due.ts";
export { endedAs, HANDED_OVER } from "./session-state.ts";
export { defaultAddress } from "./stores/default-address.ts";
export { type FolderStoreOptions, openFolderStore } from "./stores/folder/store.ts";
export { unitOf } from "./stores/journal-base.ts";
export { Memory, openMemoryStore } from "./stores/memory/store.ts";
export { type ListPage, listCursor, newestFirst, pageOf, parseListCursor } from "./stores/page.ts";
export { openSqliteStore } from "./stores/sqlite/store.ts";
export { GRACE_MS, StoreBase, type StoreBaseOptions } from "./stores/store-base.ts";
export { Wake } from "./stores/wake.ts";
export { canonical } from "./text/canonical.ts";
export { excerptOf, ftsOf, HIT_BEGINS, HIT_ENDS, searchable, stretchesOf, wordsOf } from "./text/search-words.ts";
export { unusedWords } from "./view/model-words.ts";
