import type { ModelMessage, ToolSet } from "ai";
import {
  type CallPolicy,
  decideCall,
  type Entry,
  type Interruption,
  idFrom,
  type OpenCall,
  type Reading,
  type Session,
} from "holdfast";
import { isClientTool } from "../content.ts";
import { openRequests, policyFor } from "../resume.ts";

/** Who stopped a turn that a person stopped. */
export const BY_USER = "the user";

/** A person stopped it, and knows. */
export function isStopped({ how }: Pick<Interruption<ModelMessage>, "how">): boolean {
  return how.kind === "aborted" && how.by === BY_USER;
}

/** The process that made the answer handed it over: the next one that is asked about it continues it. */
export function isHandedOver({ interruption }: Pick<Reading<ModelMessage>, "interruption">): boolean {
  return interruption?.how.kind === "handed-over";
}

/** What a turn waits for. */
export interface Waits {
  /** The calls of approval requests nobody has answered, by the request's id. */
  readonly approvals: ReadonlyMap<string, OpenCall>;
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
  const approvals = openRequests(view, open);
  const undecided = new Set([...approvals.values()].map(({ id }) => id));
  const outputs = open.calls.filter(
    ({ id, name, state, approved }) =>
      state !== "provider" && isClientTool(tools, name) && approved !== false && !undecided.has(id),
  );
  return { approvals, outputs: new Map(outputs.map((call) => [call.id, call])) };
}

/** What happens to open calls when the turn goes on. What a person stopped is neither asked again nor run. */
export function chatPolicy(view: View, tools: ToolSet | undefined): CallPolicy {
  if (view.interruption && isStopped(view.interruption)) return {};
  return policyFor(waitsOf(view, tools).outputs.values());
}

/**
 * Calls without an outcome that no page can answer: what ran them was killed, or a person stopped it. A call that was
 * approved is not one if it runs when the turn goes on. Of a turn that was handed over, only those are that do not run.
 */
export function cutOffCalls(view: View, tools: ToolSet | undefined): OpenCall[] {
  const { interruption } = view;
  if (!interruption) return [];
  const policy = chatPolicy(view, tools);
  return interruption.calls.filter((call) => {
    const decision = decideCall(call, policy);
    if (decision === "leave" || decision === "wait") return false;
    return isHandedOver(view) ? decision === "tell-model" : !(decision === "run" && call.approved);
  });
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
