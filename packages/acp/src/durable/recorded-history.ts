import type { SessionUpdate } from "@agentclientprotocol/sdk";
import type { Json } from "holdfast";
import { objectOf, type Params, stringOf } from "../record/message.ts";
import type { RecordedSession } from "../record/recorded-session.ts";
import { historyOf, type InterruptedTurn, interruptedTurn } from "./history.ts";

/** The calls for which permission was requested and not given. */
const UNAPPROVED = "acp.unapproved";
const CHECKPOINT = "acp.checkpoint";
/** The newest are kept: each request rewrites the list. */
const UNAPPROVED_MAX = 100;

/** What the journal has beside the conversation, and what it means for the conversation. One for each session. */
export class RecordedHistory {
  static readonly #all = new WeakMap<RecordedSession, RecordedHistory>();
  readonly #recorded: RecordedSession;
  readonly #announced = new Set<string>();
  #unapproved: readonly string[];

  private constructor(recorded: RecordedSession) {
    this.#recorded = recorded;
    const noted = recorded.notes[UNAPPROVED];
    this.#unapproved = Array.isArray(noted) ? noted.filter((one) => typeof one === "string") : [];
  }

  static of(recorded: RecordedSession): RecordedHistory {
    const known = RecordedHistory.#all.get(recorded) ?? new RecordedHistory(recorded);
    RecordedHistory.#all.set(recorded, known);
    return known;
  }

  async read(): Promise<{ readonly history: readonly SessionUpdate[]; readonly interruption: InterruptedTurn | null }> {
    const { isRunning } = this.#recorded;
    const { entries, interruption } = await this.#recorded.read();
    const facts = { entries, isRunning, unapproved: new Set(this.#unapproved) };
    return { history: historyOf(facts), interruption: isRunning ? null : interruptedTurn(interruption, facts) };
  }

  /** As it was when the session was opened. */
  get checkpointed(): Json {
    return this.#recorded.notes[CHECKPOINT] ?? null;
  }

  async checkpoint(value: Json): Promise<void> {
    await this.#recorded.note(CHECKPOINT, value);
  }

  async update(update: Params): Promise<void> {
    const call = update["sessionUpdate"] === "tool_call" ? stringOf(update["toolCallId"]) : null;
    if (call !== null) this.#announced.add(call);
    await this.#recorded.updates([update]);
  }

  /** The agent asks for permission. On record before the client is asked. */
  async asked(params: Params): Promise<void> {
    const call = callOf(params);
    if (call !== null && !this.#unapproved.includes(call)) await this.#note([...this.#unapproved, call]);
    // A call that is known from this request alone is announced first: the request by itself would say that it waits,
    // also after it was approved.
    const toolCall = objectOf(params["toolCall"]);
    if (toolCall && call !== null && !this.#announced.has(call))
      await this.update({ ...toolCall, sessionUpdate: "tool_call" });
    await this.#recorded.permission(params);
  }

  /** The client has answered. On record before the agent learns it. */
  async decided(params: Params, outcome: Params | null): Promise<void> {
    const call = callOf(params);
    await this.#recorded.beside("client", "session/request_permission", outcome);
    if (call === null || !this.#unapproved.includes(call) || !isGiven(params, outcome)) return;
    await this.#note(this.#unapproved.filter((one) => one !== call));
  }

  async ended(result: unknown, error: unknown): Promise<void> {
    await this.#recorded.ended(result, error);
    this.#announced.clear();
  }

  async #note(unapproved: readonly string[]): Promise<void> {
    const kept = unapproved.slice(-UNAPPROVED_MAX);
    await this.#recorded.note(UNAPPROVED, kept);
    this.#unapproved = kept;
  }
}

function callOf(params: Params): string | null {
  return stringOf(objectOf(params["toolCall"])?.["toolCallId"]);
}

/** An answer that is not clearly a refusal counts as permission: the call may then have run. */
function isGiven({ options }: Params, outcome: Params | null): boolean {
  if (outcome?.["outcome"] !== "selected") return false;
  const chosen = (Array.isArray(options) ? options : [])
    .map(objectOf)
    .find((one) => one?.["optionId"] === outcome["optionId"]);
  return !String(chosen?.["kind"]).startsWith("reject");
}
