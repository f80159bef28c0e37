import type { ModelMessage } from "ai";
import { type CallFacts, dialects, type OpenCall } from "holdfast";
import { defined } from "../defined.ts";
import type { Decision } from "../tools/permission/decide.ts";
import { commandFacts, type FoundCommand } from "../tools/shell/surviving-commands.ts";
import { canonical } from "../trust/trust.ts";

interface Evidence {
  /** The command that the call ran (R7b). */
  readonly command: FoundCommand | undefined;
  /** The rules allow it now or a person approved exactly this call, and nobody has changed since what it would undo. */
  readonly mayRun: boolean;
}

/** What is known about an open call beyond the journal. */
export function callFacts({ command, mayRun }: Evidence): CallFacts {
  const known = command ? commandFacts(command) : {};
  // A rule forbids only what could still run.
  return command && !known.neverBegan ? known : { ...defined({ mustNotRun: !mayRun || undefined }), ...known };
}

/**
 * The SDK runs calls that the messages say were approved, matched by approval id. Messages come from the journal, whose
 * author may have reused an id. So each call is checked again when it runs: either the rules allow it, or it is among
 * those that this user approved. Compares inputs, not ids: where ids repeat, the tool may get a different one (R9).
 */
export function assertMayRun(
  { name, input }: { readonly name: string; readonly input: unknown },
  { verdict, denial }: Pick<Decision, "verdict" | "denial">,
  approved: readonly Pick<OpenCall, "name" | "input">[],
): void {
  if (verdict === "allow") return;
  const given = canonical(input);
  if (verdict === "ask" && approved.some((call) => call.name === name && canonical(call.input) === given)) return;
  throw new Error(denial);
}

/** A call that needs a decision. */
export interface AskedCall {
  readonly toolCallId: string;
  readonly toolName: string;
  readonly input: unknown;
}

export interface Approval extends AskedCall {
  readonly approvalId: string;
}

/** Unanswered permission requests, except automatic ones. */
export function openApprovals(messages: readonly ModelMessage[]): Approval[] {
  const { calls, results, approvals } = dialects["ai-sdk"];
  const open = new Map<string, Approval>();
  for (const message of messages) {
    for (const { id, name, input, approval } of calls(message))
      if (approval !== undefined) open.set(id, { approvalId: approval, toolCallId: id, toolName: name, input });
    for (const { call } of results(message)) open.delete(call);
    for (const { approval } of approvals!(message))
      for (const [call, { approvalId }] of open) if (approvalId === approval) open.delete(call);
  }
  return [...open.values()];
}
