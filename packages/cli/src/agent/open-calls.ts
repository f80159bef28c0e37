import type { ModelMessage } from "ai";
import { dialects, type Entry, type OpenCall, type Outcome, type Session, type Turn } from "holdfast";
import type { Decision } from "../tools/permission/decide.ts";
import type { FoundCommand } from "../tools/shell/surviving-commands.ts";
import { canonical } from "../trust/trust.ts";

/** What is known about an open call beyond the journal, and whether the rules allow it. */
export interface OpenCallFacts {
  /** The command that the call ran (R7b). */
  readonly command?: FoundCommand;
  /** Safe to run twice, because its work resumes where it stopped (a sub-agent). */
  readonly isResumable?: boolean;
  /** Running it again would undo someone's later change. */
  readonly isStale?: boolean;
  /** The rules allow it now, or a person approved exactly this call. */
  readonly isAllowed: boolean;
}

/**
 * Decides what happens to a call that an interrupted turn left open. It runs again only if that is safe and allowed.
 * Otherwise it is closed, and the model is told how far it got, so that it can check (C4).
 */
export function decideOpenCall(call: OpenCall, known: OpenCallFacts): "close" | "keep" | Outcome<string> {
  // Not decided yet, so it has not started (R7).
  if (call.state === "awaiting") return "keep";
  if (call.state === "provider") return "keep";
  const { command } = known;
  if (command?.kind === "ended") return { value: command.shown };
  // How far it got is unknown, but not what it printed.
  if (command && command.kind !== "not-begun") return { error: command.shown };
  if (!known.isAllowed) return "close";
  if (call.state === "never-started" || command?.kind === "not-begun") return "keep";
  if (known.isStale) return "close";
  return call.replay === "safe" || known.isResumable ? "keep" : "close";
}

export function resumeInterrupted(
  session: Session<ModelMessage>,
  factsOf: (call: OpenCall) => OpenCallFacts,
): Promise<Turn<ModelMessage>> {
  return session.resumeTurn({ calls: (call) => decideOpenCall(call, factsOf(call)) });
}

/**
 * Whether a person approved exactly this call. Matches its message too: some servers reuse call ids (R9), and an
 * approval is for one call only.
 */
export function isApproved(
  entries: readonly Entry<ModelMessage>[],
  { id, message }: Pick<OpenCall, "id" | "message">,
): boolean {
  const { calls, approvals } = dialects["ai-sdk"];
  const made = calls(entries.find((entry) => entry.id === message)?.message).filter((call) => call.id === id);
  const isOurs = (request: string): boolean => made.some(({ approval }) => approval === request);
  return entries.some((entry) =>
    approvals!(entry.message).some(({ approval, approved }) => approved && isOurs(approval)),
  );
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
