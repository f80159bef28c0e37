import type { ModelMessage } from "ai";
import type { Entry, OpenCall, Outcome, Session, Turn } from "holdfast";
import type { FoundCommand } from "../tools/shell/surviving-commands.ts";

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
  const asked = partsOf(entries.find((entry) => entry.id === message)?.message).flatMap((part) =>
    part.type === "tool-approval-request" && part.toolCallId === id ? [part.approvalId] : [],
  );
  return entries.some((entry) =>
    partsOf(entry.message).some(
      (part) => part.type === "tool-approval-response" && part.approved && asked.includes(part.approvalId),
    ),
  );
}

function partsOf(message: ModelMessage | undefined): readonly Exclude<ModelMessage["content"], string>[number][] {
  return message === undefined || typeof message.content === "string" ? [] : message.content;
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
  const calls = new Map<string, { readonly toolName: string; readonly input: unknown }>();
  const open = new Map<string, Approval>();
  for (const message of messages) {
    if (typeof message.content === "string") continue;
    for (const part of message.content) {
      switch (part.type) {
        case "tool-call":
          calls.set(part.toolCallId, part);
          break;
        case "tool-approval-request": {
          const { toolName = "", input } = calls.get(part.toolCallId) ?? {};
          if (!part.isAutomatic) {
            open.set(part.toolCallId, { approvalId: part.approvalId, toolCallId: part.toolCallId, toolName, input });
          }
          break;
        }
        case "tool-approval-response":
          for (const [call, { approvalId }] of open) if (approvalId === part.approvalId) open.delete(call);
          break;
        case "tool-result":
          open.delete(part.toolCallId);
          break;
      }
    }
  }
  return [...open.values()];
}
