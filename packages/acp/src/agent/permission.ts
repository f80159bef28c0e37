import type { PermissionOption, RequestPermissionResponse } from "@agentclientprotocol/sdk/unstable";
import type { ApprovalAnswer, PermissionAsk } from "@holdfast/server/contract";

const KINDS: { readonly [A in ApprovalAnswer]: PermissionOption["kind"] } = {
  allow: "allow_once",
  always: "allow_always",
  project: "allow_always",
  deny: "reject_once",
};

/** The answers that an editor can offer. It cannot ask for a reason, so those with one are left out. */
export function optionsOf({ choices }: PermissionAsk): PermissionOption[] {
  return choices
    .filter(({ asksWhy }) => !asksWhy)
    .map(({ answer, label }) => ({ optionId: answer, name: label, kind: KINDS[answer] }));
}

/** Null: the person decided nothing, so the call keeps waiting. Anything unknown decides nothing either. */
export function answerIn({ outcome }: RequestPermissionResponse, ask: PermissionAsk): ApprovalAnswer | null {
  if (outcome.outcome !== "selected") return null;
  return ask.choices.find(({ answer, asksWhy }) => !asksWhy && answer === outcome.optionId)?.answer ?? null;
}
