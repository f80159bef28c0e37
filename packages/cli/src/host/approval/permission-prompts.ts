import type { ModelMessage } from "ai";
import type { Approval, AskedCall } from "../../agent/open-calls.ts";
import type { Decision } from "../../tools/permission/decide.ts";
import type { Board } from "../chat/chat-state-store.ts";
import type { PermissionAsk } from "../host.ts";
import type { Question } from "./approval-request.ts";

interface Word {
  readonly approved: boolean;
  readonly reason?: string;
  /** What a person has approved. None if a rule decided. */
  readonly ask?: PermissionAsk;
}

/** The questions that are put to a person, until all of them are answered or withdrawn. */
export class Permissions {
  readonly #board: Board;
  #open = new Set<string>();
  #words = new Map<string, Word>();
  #done: ((words: Map<string, Word> | null) => void) | null = null;
  #asked = Promise.withResolvers<void>();
  /** What was said of calls whose turn had not been taken up. */
  #ahead = new Map<string, Word>();

  constructor(board: Board) {
    this.#board = board;
  }

  /** Resolves when the next question is put. */
  get asked(): Promise<void> {
    return this.#asked.promise;
  }

  /** Null if the questions were withdrawn. */
  async ask(asks: readonly PermissionAsk[]): Promise<Map<string, Word> | null> {
    this.#board.change({ status: "waiting", asks });
    this.#board.refresh();
    this.#open = new Set(asks.map(({ call }) => call));
    this.#words = new Map();
    // Before anybody is told: the answer may come at once.
    const answered = new Promise<Map<string, Word> | null>((resolve) => {
      this.#done = resolve;
    });
    this.#asked.resolve();
    this.#asked = Promise.withResolvers();
    for (const ask of asks) this.#board.tell({ type: "permission.asked", ask });
    const words = await answered;
    this.#board.change({ asks: [] });
    return words;
  }

  /** The same before the turn is taken up: the answers are kept for it. False if the questions were withdrawn. */
  async askAhead(asks: readonly PermissionAsk[]): Promise<boolean> {
    const words = await this.ask(asks);
    this.#ahead = words ?? new Map();
    return words !== null;
  }

  /** The turn could not be taken up: what was said is not kept for a later call that happens to have the same id (R9). */
  forgetAhead(): void {
    this.#ahead = new Map();
  }

  /** Those that nobody has answered ahead; the answers of the others go into `words`, once. */
  withoutAnswered(asks: readonly Question[], words: Map<string, Word>): readonly Question[] {
    const ahead = this.#ahead;
    this.#ahead = new Map();
    for (const { call } of asks) if (ahead.has(call)) words.set(call, ahead.get(call)!);
    return asks.filter(({ call }) => !ahead.has(call));
  }

  answer(ask: PermissionAsk, allowed: boolean, by: string, reason?: string): void {
    const asks = this.#board.state.asks.filter((one) => one !== ask);
    this.#board.change({ asks }, { type: "permission.answered", call: ask.call, allowed, by });
    if (!this.#open.delete(ask.call)) return;
    this.#words.set(ask.call, { approved: allowed, ...(reason ? { reason } : {}), ...(allowed ? { ask } : {}) });
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
  approvals: readonly AskedCall[],
  decide: (name: string, input: unknown) => Decision,
  asks: "person" | "nobody",
): {
  readonly words: Map<string, Word>;
  readonly undecided: readonly Question[];
  readonly denied: readonly { readonly call: AskedCall; readonly decision: Decision }[];
} {
  const words = new Map<string, Word>();
  const undecided: Question[] = [];
  const denied: { call: AskedCall; decision: Decision }[] = [];
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

/** What a person has approved among these words, by call. */
export function approvedAmong(words: ReadonlyMap<string, Word>): ReadonlyMap<string, PermissionAsk> {
  return new Map([...words].flatMap(([call, { ask }]) => (ask ? [[call, ask] as const] : [])));
}

/** The words on all of these calls, as the SDK is told them. */
export function answerTo(approvals: readonly Approval[], words: ReadonlyMap<string, Word>): ModelMessage {
  const content = approvals.map(({ approvalId, toolCallId }) => {
    const { approved, reason } = words.get(toolCallId)!;
    return { type: "tool-approval-response" as const, approvalId, approved, ...(reason ? { reason } : {}) };
  });
  return { role: "tool", content };
}
