export type {
  AnswerItem,
  CallItem,
  CallState,
  Item,
  NoteItem,
  PromptItem,
  ShownFile,
} from "@holdfast/server/internal/contract";
