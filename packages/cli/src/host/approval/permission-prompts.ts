import type { ModelMessage } from "ai";
import type { Account, Interruption, OpenCall } from "holdfast";
import type { Approval, AskedCall } from "../../agent/open-calls.ts";
import { type Decision, refusal } from "../../tools/permission/decide.ts";
import type { ChatEvent, ChatState, PermissionAsk } from "../host.ts";
import type { Question } from "./approval-request.ts";

export interface Answer {
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

/** Questions that are asked together, by the agent or one of its sub-agents. */
interface Batch {
  readonly open: Set<string>;
  readonly answers: Map<string, Answer>;
  readonly finish: (answers: Map<string, Answer> | null) => void;
}

const ANSWERED_MAX = 1000;

/** The open questions to a person, until all are answered or withdrawn. */
export class PermissionPrompts {
  readonly #display: PromptDisplay;
  readonly #batches = new Set<Batch>();
  #asked = Promise.withResolvers<void>();
  /** Answers given before their turn was resumed. */
  #ahead = new Map<string, Answer>();
  /** How questions were answered, by call. The newest. */
  readonly #answered = new Map<string, { readonly allowed: boolean; readonly by: string }>();

  constructor(display: PromptDisplay) {
    this.#display = display;
  }

  /** Resolves when the next question is asked. */
  get asked(): Promise<void> {
    return this.#asked.promise;
  }

  /** Null if the questions were withdrawn. */
  async ask(asks: readonly PermissionAsk[]): Promise<Map<string, Answer> | null> {
    this.#display.update({ status: "waiting", asks: [...this.#display.state.asks, ...asks] });
    this.#display.refresh();
    // Set up before the question is announced: the answer may come at once.
    const { promise, resolve: finish } = Promise.withResolvers<Map<string, Answer> | null>();
    const batch: Batch = { open: new Set(asks.map(({ call }) => call)), answers: new Map(), finish };
    this.#batches.add(batch);
    this.#asked.resolve();
    this.#asked = Promise.withResolvers();
    for (const ask of asks) {
      // A later call may have the same id.
      this.#answered.delete(ask.call);
      this.#display.emit({ type: "permission.asked", ask });
    }
    const answers = await promise;
    this.#batches.delete(batch);
    this.#display.update({ asks: this.#display.state.asks.filter((ask) => !asks.includes(ask)) });
    return answers;
  }

  /** Asks for a sub-agent, while the turn of its parent is running. */
  async askBelow(asks: readonly PermissionAsk[]): Promise<Map<string, Answer> | null> {
    const answers = await this.ask(asks);
    // Other sub-agents may be waiting.
    if (this.#display.state.asks.length === 0) this.#display.update({ status: "running" }, { type: "changed" });
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

  /** How this question was answered; undefined if it was not, or long ago. */
  answered(call: string): { readonly allowed: boolean; readonly by: string } | undefined {
    return this.#answered.get(call);
  }

  answer(ask: PermissionAsk, allowed: boolean, by: string, reason?: string): void {
    this.#answered.set(ask.call, { allowed, by });
    if (this.#answered.size > ANSWERED_MAX) this.#answered.delete(this.#answered.keys().next().value!);
    const asks = this.#display.state.asks.filter((one) => one !== ask);
    this.#display.update({ asks }, { type: "permission.answered", call: ask.call, allowed, by });
    const batch = [...this.#batches].find(({ open }) => open.delete(ask.call));
    if (!batch) return;
    batch.answers.set(ask.call, allowed ? { approved: true, ask } : { approved: false, reason: refusal(reason) });
    if (batch.open.size === 0) batch.finish(batch.answers);
  }

  withdraw(): void {
    for (const { finish } of this.#batches) finish(null);
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
    const { verdict, suggestion, isAllowable, summary, denial } = decision;
    const rule = isAllowable ? suggestion : null;
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

/** The turn waits for a person's decision, and nobody has stopped it. */
export function isAwaitingPerson({ state, can }: Pick<Account, "state" | "can">): boolean {
  return can.answer === true && state !== "stopped";
}

/** A call that was denied waits only for its turn to go on. */
function isUndecided({ state, approved }: OpenCall): boolean {
  return state === "awaiting" && approved === undefined;
}

/**
 * The questions that can be asked again at once. None if other calls are open too: a person first decides how to resume
 * those.
 */
export function openQuestions(
  interruption: Pick<Interruption<ModelMessage>, "calls">,
  account: Pick<Account, "state" | "can">,
  decide: (name: string, input: unknown) => Decision,
): readonly Question[] {
  const calls = interruption.calls.filter(({ approved }) => approved !== false);
  if (!isAwaitingPerson(account) || !calls.every(isUndecided)) return [];
  const asked = calls.map(({ id, name, input }) => ({ toolCallId: id, toolName: name, input }));
  return applyRules(asked, decide, "person").undecided;
}
