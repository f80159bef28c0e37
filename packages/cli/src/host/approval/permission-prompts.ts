import type { ModelMessage } from "ai";
import type { Interruption } from "holdfast";
import type { Approval, AskedCall } from "../../agent/open-calls.ts";
import type { Decision } from "../../tools/permission/decide.ts";
import type { ChatEvent, ChatState, PermissionAsk } from "../host.ts";
import type { Question } from "./approval-request.ts";

interface Answer {
  readonly approved: boolean;
  readonly reason?: string;
  /** What a person approved. Absent if a rule decided. */
  readonly ask?: PermissionAsk;
}

/** Where the questions are shown. */
export interface PromptDisplay {
  readonly state: Pick<ChatState, "asks">;
  update(change: Partial<ChatState>, event?: ChatEvent): void;
  refresh(): void;
  emit(event: ChatEvent): void;
}

/** The open questions to a person, until all are answered or withdrawn. */
export class PermissionPrompts {
  readonly #display: PromptDisplay;
  #open = new Set<string>();
  #answers = new Map<string, Answer>();
  #done: ((answers: Map<string, Answer> | null) => void) | null = null;
  #asked = Promise.withResolvers<void>();
  /** Answers given before their turn was resumed. */
  #ahead = new Map<string, Answer>();

  constructor(display: PromptDisplay) {
    this.#display = display;
  }

  /** Resolves when the next question is asked. */
  get asked(): Promise<void> {
    return this.#asked.promise;
  }

  /** Null if the questions were withdrawn. */
  async ask(asks: readonly PermissionAsk[]): Promise<Map<string, Answer> | null> {
    this.#display.update({ status: "waiting", asks });
    this.#display.refresh();
    this.#open = new Set(asks.map(({ call }) => call));
    this.#answers = new Map();
    // Set up before the question is announced: the answer may come at once.
    const answered = new Promise<Map<string, Answer> | null>((resolve) => {
      this.#done = resolve;
    });
    this.#asked.resolve();
    this.#asked = Promise.withResolvers();
    for (const ask of asks) this.#display.emit({ type: "permission.asked", ask });
    const answers = await answered;
    this.#display.update({ asks: [] });
    return answers;
  }

  /** Asks before the turn is resumed and keeps the answers for it. False if the questions were withdrawn. */
  async askAhead(asks: readonly PermissionAsk[]): Promise<boolean> {
    const answers = await this.ask(asks);
    this.#ahead = answers ?? new Map();
    return answers !== null;
  }

  /** The turn could not be resumed: its answers must not apply to a later call with the same id (R9). */
  forgetAhead(): void {
    this.#ahead = new Map();
  }

  /** Returns the questions not yet answered ahead; the other answers go into `answers`, once. */
  takeAnswered(asks: readonly Question[], answers: Map<string, Answer>): readonly Question[] {
    const ahead = this.#ahead;
    this.#ahead = new Map();
    for (const { call } of asks) if (ahead.has(call)) answers.set(call, ahead.get(call)!);
    return asks.filter(({ call }) => !ahead.has(call));
  }

  answer(ask: PermissionAsk, allowed: boolean, by: string, reason?: string): void {
    const asks = this.#display.state.asks.filter((one) => one !== ask);
    this.#display.update({ asks }, { type: "permission.answered", call: ask.call, allowed, by });
    if (!this.#open.delete(ask.call)) return;
    this.#answers.set(ask.call, { approved: allowed, ...(reason ? { reason } : {}), ...(allowed ? { ask } : {}) });
    if (this.#open.size === 0) this.#finish(this.#answers);
  }

  withdraw(): void {
    this.#finish(null);
  }

  #finish(answers: Map<string, Answer> | null): void {
    this.#done?.(answers);
    this.#done = null;
    this.#open.clear();
  }
}

/** Applies the rules to waiting calls, and returns those left for a person. */
export function applyRules(
  approvals: readonly AskedCall[],
  decide: (name: string, input: unknown) => Decision,
  asks: "person" | "nobody",
): {
  readonly answers: Map<string, Answer>;
  readonly undecided: readonly Question[];
  readonly denied: readonly { readonly call: AskedCall; readonly decision: Decision }[];
} {
  const answers = new Map<string, Answer>();
  const undecided: Question[] = [];
  const denied: { call: AskedCall; decision: Decision }[] = [];
  for (const call of approvals) {
    const { toolCallId, toolName: name, input } = call;
    const decision = decide(name, input);
    const { verdict, suggestion: rule, summary, denial } = decision;
    if (verdict === "allow") answers.set(toolCallId, { approved: true });
    else if (verdict === "deny" || asks === "nobody") {
      answers.set(toolCallId, { approved: false, reason: denial });
      denied.push({ call, decision });
    } else undecided.push({ call: toolCallId, name, input, summary, rule });
  }
  return { answers, undecided, denied };
}

/** What a person approved among these answers, by call. */
export function selectApproved(answers: ReadonlyMap<string, Answer>): ReadonlyMap<string, PermissionAsk> {
  return new Map([...answers].flatMap(([call, { ask }]) => (ask ? [[call, ask] as const] : [])));
}

/** The answers for all these calls, as a message for the SDK. */
export function buildApprovalMessage(
  approvals: readonly Approval[],
  answers: ReadonlyMap<string, Answer>,
): ModelMessage {
  const content = approvals.map(({ approvalId, toolCallId }) => {
    const { approved, reason } = answers.get(toolCallId)!;
    return { type: "tool-approval-response" as const, approvalId, approved, ...(reason ? { reason } : {}) };
  });
  return { role: "tool", content };
}

/** Shown when the user tries something else while a turn waits for approval, also after a restart (R7). */
export const UNDECIDED =
  "The last turn is waiting for your approval. Finish it to be asked again, or leave it: the call will not run.";

/** The turn waits for a person's decision on a call, and nobody has stopped it. */
export function isAwaitingPerson({ how, calls }: Pick<Interruption<ModelMessage>, "how" | "calls">): boolean {
  if (how.kind === "suspended") return true;
  if (how.kind === "aborted" && how.by !== "close") return false;
  return calls.some(({ state }) => state === "awaiting");
}

/**
 * The questions that can be asked again at once. None if other calls are open too: a person first decides how to resume
 * those.
 */
export function openQuestions(
  interruption: Pick<Interruption<ModelMessage>, "how" | "calls">,
  decide: (name: string, input: unknown) => Decision,
): readonly Question[] {
  const { calls } = interruption;
  if (!isAwaitingPerson(interruption) || !calls.every(({ state }) => state === "awaiting")) return [];
  const asked = calls.map(({ id, name, input }) => ({ toolCallId: id, toolName: name, input }));
  return applyRules(asked, decide, "person").undecided;
}
