import type { Conversation } from "../conversation/conversation.ts";
import type { RepairEntry } from "../conversation/records.ts";
import { arranged } from "./arrange.ts";
import { type FoundCall, howOf, openCalls } from "./interruption.ts";
import type { How } from "./model-words.ts";
import { runningWords } from "./model-words.ts";
import { repairedEntry, synthesizeResult, synthesizeResultSaying } from "./repairs.ts";

/** Who looks at the conversation. */
export type TurnActivity =
  /** No turn is open, or nobody works on it. */
  | { readonly kind: "idle" }
  /** A turn is open; what was started after this seq runs now. */
  | { readonly kind: "active"; readonly since: number };

/**
 * What the provider accepts as it stands. Calls without a result are closed in this view, in words that fit: of a turn that is over, how far they came; of one that goes on, that they still run (R18). Nothing of it is recorded
 * by looking. Calls that wait for a person stay open while the turn does.
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
  // Where the turn is over for good, a prompt comes next; else the model may be asked as it stands.
  const next = activity.kind === "idle" && how.kind === "completed" ? "prompt" : "model";
  return arranged(conversation, { next, made, without });
}

/** A person is to decide, or has decided and the SDK is to do it: it looks for calls that were decided and have no result. */
function isLeftOpen({ state, approved }: FoundCall): boolean {
  return state === "awaiting" || (approved === true && state !== "outcome-unknown");
}

/** What the model is shown of the calls without a result while the turn goes on: recorded when the model goes on without them. */
export function liveRepairs<M>(conversation: Conversation<M>, since: number): RepairEntry[] {
  return openCalls(conversation).flatMap((call) => {
    if (call.state === "provider") return [];
    if (call.state === "awaiting") return synthesizeResult(conversation.dialect, call, { kind: "completed" });
    return liveRepair(conversation, call, since);
  });
}

/** Also what is recorded when the model goes on though a tool still runs: it has seen these words. */
export function liveRepair<M>(
  { dialect }: Conversation<M>,
  call: FoundCall,
  since: number,
): ReturnType<typeof synthesizeResultSaying> {
  const isRunning = call.startedSeq !== undefined && call.startedSeq > since;
  return synthesizeResultSaying(dialect, call, runningWords(isRunning), isRunning ? "running" : call.state);
}
