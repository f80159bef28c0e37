import type { Conversation } from "../conversation/conversation.ts";
import type { RepairEntry } from "../conversation/records/records.ts";
import { arrangeView } from "./arrange.ts";
import { type How, howOf, openCalls, type UnansweredCall } from "./interruption.ts";
import { inDoubtWords, runningWords } from "./model-words.ts";
import { repairedEntry, synthesizeResult, synthesizeResultSaying } from "./repairs.ts";

/** Whether a turn is being worked on when the conversation is read. */
export type TurnActivity =
  /** No turn is open, or nobody works on it. */
  | { readonly kind: "idle" }
  /** A turn is open; tools started after this seq are running now. */
  | { readonly kind: "active"; readonly since: number };

/**
 * The messages in a form that the provider accepts unchanged. Calls without a result are closed in this view with
 * matching words: how far each got if the turn is over, or that it is still running if not (R18). Reading records none
 * of it. Calls that wait for a person stay open as long as the turn does.
 */
export function messagesOf<M>(conversation: Conversation<M>, activity: TurnActivity): readonly M[] {
  const { turn, dialect } = conversation;
  const how: How = turn ? howOf(turn) : { kind: "completed" };
  const made = [];
  const without = new Set<string>();
  for (const call of openCalls(conversation)) {
    if (call.state === "provider" || (activity.kind === "active" && isLeftOpen(call))) continue;
    const entries =
      activity.kind === "active"
        ? liveRepair(conversation, call, activity.since)
        : synthesizeResult(dialect, call, how);
    if (entries.length === 0) without.add(conversation.find(call.message!)!.entry.step);
    for (const entry of entries) made.push(repairedEntry(conversation, entry));
  }
  // After a completed turn a prompt comes next; otherwise the model may be asked with these messages.
  const next = activity.kind === "idle" && how.kind === "completed" ? "prompt" : "model";
  return arrangeView(conversation, { next, made, without });
}

/**
 * A person has yet to decide, or has approved and the SDK will run it: the SDK looks for decided calls without a
 * result.
 */
function isLeftOpen({ state, approved }: UnansweredCall): boolean {
  return state === "awaiting" || (approved === true && state !== "outcome-unknown");
}

/** What the model is shown for calls without a result during the turn. Recorded if the model continues without them. */
export function liveRepairs<M>(conversation: Conversation<M>, since: number): RepairEntry[] {
  const open = openCalls(conversation);
  if (open.length === 0) return [];
  return open.flatMap((call) => {
    if (call.state === "provider") return [];
    if (call.state === "awaiting") return synthesizeResult(conversation.dialect, call, { kind: "completed" });
    return liveRepair(conversation, call, since);
  });
}

/** Also recorded when the model continues while a tool still runs: the model has seen these words. */
export function liveRepair<M>(
  { dialect }: Conversation<M>,
  call: UnansweredCall,
  since: number,
): ReturnType<typeof synthesizeResultSaying> {
  const isRunning = call.startedSeq !== undefined && call.startedSeq > since;
  const words = !isRunning && call.state === "outcome-unknown" ? inDoubtWords(call) : runningWords(isRunning);
  return synthesizeResultSaying(dialect, call, words, isRunning ? "running" : call.state);
}
