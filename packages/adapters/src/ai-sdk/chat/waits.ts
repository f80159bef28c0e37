import type { ModelMessage, ToolSet } from "ai";
import { type Entry, idFrom, type OpenCall, type Reading, type Session } from "holdfast";
import { ownTool } from "../content.ts";
import { openRequests } from "../resume.ts";

/** What a turn waits for. */
export interface Waits {
  /** Approval requests nobody has answered, by their id; and whether the provider runs the call. */
  readonly approvals: ReadonlyMap<string, boolean>;
  /** Calls of client-side tools without an output, by their id. */
  readonly outputs: ReadonlyMap<string, OpenCall>;
}

type View = Pick<Reading<ModelMessage>, "entries" | "interruption"> & Partial<Pick<Session<ModelMessage>, "turn">>;

const NOTHING: Waits = { approvals: new Map(), outputs: new Map() };

export function waitsOf(view: View, tools: ToolSet | undefined): Waits {
  const open = view.turn
    ? { turn: view.turn.number, calls: view.turn.open }
    : view.interruption && { turn: view.interruption.turn, calls: view.interruption.calls };
  if (!open) return NOTHING;
  const { requested, approved } = decisionsIn(view.entries, open.turn);
  const outputs = open.calls.filter(
    ({ id, name, state }) =>
      state !== "provider" && isClientTool(tools, name) && (!requested.has(id) || approved.has(id)),
  );
  return { approvals: openRequests(view, open), outputs: new Map(outputs.map((call) => [call.id, call])) };
}

export function isClientTool(tools: ToolSet | undefined, name: string): boolean {
  const tool = ownTool(tools, name);
  return tool !== undefined && typeof tool.execute !== "function" && tool.type !== "provider";
}

/** The calls of a turn that a person was asked about, and those that were approved. */
function decisionsIn(
  entries: readonly Entry<ModelMessage>[],
  turn: number,
): { readonly requested: ReadonlySet<string>; readonly approved: ReadonlySet<string> } {
  const calls = new Map<string, string>();
  const approved = new Set<string>();
  for (const { message, turn: of } of entries) {
    for (const part of of === turn && typeof message.content !== "string" ? message.content : []) {
      if (part.type === "tool-approval-request") calls.set(part.approvalId, part.toolCallId);
      if (part.type !== "tool-approval-response" || !part.approved) continue;
      const call = calls.get(part.approvalId);
      if (call !== undefined) approved.add(call);
    }
  }
  return { requested: new Set(calls.values()), approved };
}

/**
 * A key for each answer that a page can give in this turn, so that it is recorded once: by approval id, and by call id.
 * It names the message that made the call, because servers repeat call ids (R9).
 */
export class AnswerKeys {
  readonly #approvals = new Map<string, string>();
  readonly #outputs = new Map<string, string>();

  constructor(entries: readonly Entry<ModelMessage>[], turn: number, tools: ToolSet | undefined) {
    for (const { id, message, turn: of } of entries) {
      if (of !== turn || message.role !== "assistant" || typeof message.content === "string") continue;
      for (const part of message.content) {
        if (part.type === "tool-approval-request")
          this.#approvals.set(part.approvalId, `chat ${idFrom(`approval ${id} ${part.approvalId}`)}`);
        if (part.type === "tool-call" && isClientTool(tools, part.toolName))
          this.#outputs.set(part.toolCallId, `chat ${idFrom(`output ${id} ${part.toolCallId}`)}`);
      }
    }
  }

  /** Null if nobody asked. */
  of({ kind, id }: { readonly kind: "approval" | "output"; readonly id: string }): string | null {
    return (kind === "approval" ? this.#approvals : this.#outputs).get(id) ?? null;
  }
}
