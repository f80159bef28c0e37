import type { SessionUpdate } from "@agentclientprotocol/sdk";
import type { Json } from "holdfast";
import { mergeChunks } from "../record/merge-chunks.ts";
import { objectOf, type Params, stringOf } from "../record/message.ts";
import type { RecordedSession } from "../record/recorded-session.ts";
import { type InterruptedTurn, interruptedTurn } from "./interrupted-turn.ts";

const CHECKPOINT = "acp.checkpoint";

/** What the journal has beside the conversation, and what it means for the conversation. One for each session. */
export class RecordedHistory {
  static readonly #all = new WeakMap<RecordedSession, RecordedHistory>();
  readonly #recorded: RecordedSession;
  readonly #announced = new Set<string>();

  private constructor(recorded: RecordedSession) {
    this.#recorded = recorded;
  }

  static of(recorded: RecordedSession): RecordedHistory {
    const known = RecordedHistory.#all.get(recorded) ?? new RecordedHistory(recorded);
    RecordedHistory.#all.set(recorded, known);
    return known;
  }

  async read(): Promise<{ readonly history: readonly SessionUpdate[]; readonly interruption: InterruptedTurn | null }> {
    const { reading, account, history } = await this.#recorded.read();
    const interruption = this.#recorded.isRunning ? null : interruptedTurn(reading, account);
    return { history: mergeChunks(history) as unknown as SessionUpdate[], interruption };
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
    const toolCall = objectOf(params["toolCall"]);
    const call = stringOf(toolCall?.["toolCallId"]);
    // A call that is known from this request alone is announced first: the request by itself would say that it waits,
    // also after it was approved.
    if (toolCall && call !== null && !this.#announced.has(call))
      await this.update({ ...toolCall, sessionUpdate: "tool_call" });
    await this.#recorded.permission(params);
  }

  async ended(result: unknown, error: unknown): Promise<void> {
    await this.#recorded.ended(result, error);
    this.#announced.clear();
  }
}
