import type { CallItem } from "@holdfast/server/contract";

/** What an editor shows of a call. The agent knows its tools, so it says this. */
export interface CallWords {
  /** What the call does, on one line. */
  title(call: Pick<CallItem, "name" | "input">): string;
  /** What it changes in a file; null if it changes none. The path may be relative to the working folder. */
  change(call: Pick<CallItem, "name" | "input">): FileChange | null;
  /** The file that it reads or changes, if it names one. */
  path(call: Pick<CallItem, "name" | "input">): string | null;
  kind(call: Pick<CallItem, "name" | "input">): ToolKind;
  /** The plan that it sets; null if it sets none. */
  plan(call: Pick<CallItem, "name" | "input">): readonly PlanStep[] | null;
  /** The plan in the summary of a conversation that was replaced; null if there is none. */
  planInSummary(text: string): readonly PlanStep[] | null;
}

export interface PlanStep {
  readonly content: string;
  readonly status: "pending" | "in_progress" | "completed";
  readonly priority: "high" | "medium" | "low";
}

export interface FileChange {
  readonly path: string;
  /** Null for a new file. */
  readonly oldText: string | null;
  readonly newText: string;
}

/** The kinds that editors have icons for. */
export type ToolKind = "read" | "edit" | "search" | "execute" | "fetch" | "think" | "other";
