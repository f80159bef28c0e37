export type { AnswerItem, CallItem, Item, NoteItem, PromptItem } from "@holdfast/server/contract";
export type { CallState, ShownFile } from "@holdfast/server/internal";
