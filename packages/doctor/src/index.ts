/** Reads, diagnoses and repairs the session files of other agents. */

export { AGENTS } from "./agents/list.ts";
export type * from "./contract/agent.ts";
export type * from "./contract/plan.ts";
export { PROBLEMS, type Problem, type ProblemKind, problem } from "./contract/problem.ts";
export type * from "./contract/record.ts";
export type * from "./contract/rules.ts";
export type * from "./contract/transfer.ts";
export {
  type Conversation,
  type ConversationMessage,
  type ReadableSession,
  readConversations,
} from "./conversation/conversation.ts";
export { type Diagnosis, diagnose } from "./diagnosis/diagnose.ts";
export { type Finding, type FoundSession, type Machine, sessionsAt, sessionsHere } from "./diagnosis/sessions.ts";
export { Door, Refused } from "./files/door.ts";
export { type GivenFile, writeNewFiles } from "./files/new-files.ts";
export { type Backup, type BackupStep, isUndone, listBackups, undo } from "./fix/backups.ts";
export { type Fixed, type FixOptions, fix, planFix } from "./fix/fix.ts";
export { type KeptFiles, keepSession } from "./keep/keep-session.ts";
export { type KeptCopy, keptCopyOf } from "./keep/kept-copy.ts";
export { type IndexHit, type RefreshOptions, SessionIndex } from "./overview/session-index.ts";
export type { SessionOverview } from "./overview/tables.ts";
export { Activity } from "./watch/activity.ts";
export type { Alarm } from "./watch/alarm.ts";
export { type Keeper, PACE, type WatchListeners, type WatchPace } from "./watch/contract.ts";
export { readState } from "./watch/session-state.ts";
export { SessionWatch } from "./watch/watcher.ts";
