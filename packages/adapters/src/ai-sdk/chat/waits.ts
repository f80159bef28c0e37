import type { ModelMessage, ToolSet } from "ai";
import { type Entry, type Interruption, idFrom, type OpenCall, type Reading, type Session } from "holdfast";
import { isClientTool } from "../content.ts";
import { openRequests } from "../resume.ts";

/** Who stopped a turn that a person stopped. */
export const BY_USER = "the user";

/** A person stopped it, and knows. */
export function isStopped({ how }: Pick<Interruption<ModelMessage>, "how">): boolean {
  return how.kind === "aborted" && how.by === BY_USER;
}

/** What a turn waits for. */
export interface Waits {
  /** Approval requests nobody has answered, by their id; and whether the provider runs the call. */
  readonly approvals: ReadonlyMap<string, boolean>;
  /** Calls of client-side tools without an output, by their id. */
  readonly outputs: ReadonlyMap<string, OpenCall>;
}

type View = Pick<Reading<ModelMessage>, "entries" | "interruption"> & Partial<Pick<Session<ModelMessage>, "turn">>;

const NOTHING: Waits = { approvals: new Map(), outputs: new Map() };

/** A turn that a person stopped waits for nothing. */
export function waitsOf(view: View, tools: ToolSet | undefined): Waits {
  if (view.interruption && isStopped(view.interruption)) return NOTHING;
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

/**
 * Calls without an outcome that no page can answer: what ran them was killed, or a person stopped it. A call that was
 * approved and never started is not one: it runs when the turn goes on.
 */
export function cutOffCalls(view: View, tools: ToolSet | undefined): OpenCall[] {
  const { interruption, entries } = view;
  if (!interruption) return [];
  const open = interruption.calls.filter(({ state }) => state !== "provider");
  if (isStopped(interruption)) return open;
  const { outputs } = waitsOf(view, tools);
  const { approved } = decisionsIn(entries, interruption.turn);
  return open.filter(
    ({ id, state }) => state !== "awaiting" && !outputs.has(id) && !(state === "never-started" && approved.has(id)),
  );
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
