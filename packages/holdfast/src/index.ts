export { type ErrorCode, errorCodes, HoldfastError, isHoldfastError } from "./errors.ts";
export type * from "./journal/contract.ts";
export { newId } from "./journal/id.ts";
export { cursorOf, type JournalRecord, type Json, type NewRecord, RECORD_BYTES_MAX } from "./journal/record.ts";
export { type FolderStoreOptions, openFolderStore } from "./stores/folder/store.ts";
export { Memory, type MemoryStoreOptions, openMemoryStore } from "./stores/memory/store.ts";
export { type JournalStoreOptions, openJournalStore } from "./stores/open.ts";
export { openSqliteStore, type SqliteStoreOptions } from "./stores/sqlite/store.ts";
