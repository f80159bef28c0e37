/** What has changed in a folder since a call began: noted before it, compared after a crash. */
export { changesSince } from "./folder-changes.ts";
export { GitFailure } from "./git.ts";
export { KeptFiles } from "./kept-files.ts";
export type { FileRules } from "./limits.ts";
export { type NoteRef, noteFolder, noteRefFrom } from "./note-folder.ts";
export { planRestore, type RestorePlan, restoreFiles } from "./restore.ts";
