/** What a screen, a script or a server may know of an agent: types alone. */

export type { EditorOffer } from "./editor.ts";
export type {
  ApprovalAnswer,
  Chat,
  ChatEvent,
  ChatOptions,
  ChatState,
  ForkChat,
  Host,
  InterruptionShown,
  Mode,
  NewChat,
  PermissionAsk,
  PromptImage,
  UnfinishedSession,
} from "./host.ts";
export type { AnswerItem, CallItem, Item, NoteItem, PromptItem } from "./item.ts";
export type { FileChange, SaidShown, ServedHost } from "./served-host.ts";
