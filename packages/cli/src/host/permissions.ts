import type { ModelMessage } from "ai";
import type { Approval } from "../agent/reopened.ts";
import type { Decision } from "../tools/permission.ts";
import type { PermissionAsk } from "./host.ts";

type Word = { readonly approved: boolean; readonly reason?: string };

/** The questions that are put to a person, until all of them are answered or withdrawn. */
export class Permissions {
  #open = new Set<string>();
  #words = new Map<string, Word>();
  #done: ((words: Map<string, Word> | null) => void) | null = null;
  #asked = Promise.withResolvers<void>();

  /** Resolves when the next question is put. */
  get asked(): Promise<void> {
    return this.#asked.promise;
  }

  /** Null if the questions were withdrawn. */
  ask(calls: readonly string[]): Promise<Map<string, Word> | null> {
    this.#open = new Set(calls);
    this.#words = new Map();
    const answered = new Promise<Map<string, Word> | null>((resolve) => {
      this.#done = resolve;
    });
    this.#asked.resolve();
    this.#asked = Promise.withResolvers();
    return answered;
  }

  answer(call: string, approved: boolean, reason?: string): void {
    if (!this.#open.delete(call)) return;
    this.#words.set(call, { approved, ...(reason ? { reason } : {}) });
    if (this.#open.size === 0) this.#finish(this.#words);
  }

  withdraw(): void {
    this.#finish(null);
  }

  #finish(words: Map<string, Word> | null): void {
    this.#done?.(words);
    this.#done = null;
    this.#open.clear();
  }
}

/** What the rules say of calls that wait, and which of them are left to a person. */
export function byRules(
  approvals: readonly Approval[],
  decide: (name: string, input: unknown) => Decision,
  asks: "person" | "nobody",
): {
  readonly words: Map<string, Word>;
  readonly undecided: readonly PermissionAsk[];
  readonly denied: readonly { readonly call: Approval; readonly decision: Decision }[];
} {
  const words = new Map<string, Word>();
  const undecided: PermissionAsk[] = [];
  const denied: { call: Approval; decision: Decision }[] = [];
  for (const call of approvals) {
    const { toolCallId, toolName: name, input } = call;
    const decision = decide(name, input);
    const { verdict, suggestion: rule, summary, denial } = decision;
    if (verdict === "allow") words.set(toolCallId, { approved: true });
    else if (verdict === "deny" || asks === "nobody") {
      words.set(toolCallId, { approved: false, reason: denial });
      denied.push({ call, decision });
    } else undecided.push({ call: toolCallId, name, input, summary, rule });
  }
  return { words, undecided, denied };
}

/** The words on all of these calls, as the SDK is told them. */
export function answerTo(approvals: readonly Approval[], words: ReadonlyMap<string, Word>): ModelMessage {
  const content = approvals.map(({ approvalId, toolCallId }) => {
    const { approved, reason } = words.get(toolCallId)!;
    return { type: "tool-approval-response" as const, approvalId, approved, ...(reason ? { reason } : {}) };
  });
  return { role: "tool", content };
}
