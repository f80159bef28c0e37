import { type AcpMessage, isHoldfastError, type Json, type Session, type Turn } from "holdfast";
import { mergeChunks } from "./merge-chunks.ts";
import { objectOf, type Params, stringOf } from "./message.ts";

/** Notes of a session: the agent's own id for it, and what was said beside the conversation. */
const AGENT_SESSION = "acp.agentSession";
const BESIDE = "acp.line";

/**
 * One session of a wrapped agent, in the journal. Each method resolves when what it was given is recorded, so that the
 * caller can pass it on. Nothing here throws for what an agent or an editor says: an update that is no conversation is
 * recorded beside it.
 */
export class RecordedSession {
  /** The id that the editor knows. */
  readonly id: string;
  readonly #session: Session<AcpMessage>;
  /** The calls that have not ended. */
  readonly #open = new Set<string>();

  constructor(id: string, session: Session<AcpMessage>) {
    this.id = id;
    this.#session = session;
  }

  /** The agent's id for it. Another one if the agent has forgotten the session. */
  get agentSession(): string {
    return stringOf(this.#session.attributes.notes[AGENT_SESSION]) ?? this.id;
  }

  get journal(): string {
    return this.#session.id;
  }

  /** The conversation as updates: what a client is shown when it loads the session. */
  get history(): readonly Params[] {
    return this.#session.messages as readonly Params[];
  }

  get isEmpty(): boolean {
    return this.#session.messages.length === 0;
  }

  /** What the agent has not finished. */
  get openCalls(): readonly string[] {
    return [...this.#open];
  }

  async movedTo(agentSession: string): Promise<void> {
    await this.#session.note(AGENT_SESSION, agentSession);
  }

  async prompt({ sessionId: _, ...params }: Params): Promise<void> {
    const message = params as AcpMessage;
    if (this.#session.turn) await this.#session.turn.append(message);
    else await this.#session.startTurn(message);
  }

  /** What the agent said in one go. */
  async updates(updates: readonly Params[]): Promise<void> {
    for (const update of updates) this.#follow(update);
    const messages = mergeChunks(updates);
    const { turn } = this.#session;
    try {
      if (turn) {
        await turn.append(messages as unknown as AcpMessage[]);
        return;
      }
    } catch (error) {
      if (!isHoldfastError(error, "MESSAGE_UNFIT")) throw error;
    }
    // Outside a turn, or with one that is no conversation: each by itself.
    for (const message of messages) await this.#said(message as AcpMessage, message);
  }

  /** Which calls are open. */
  #follow(update: Params): void {
    const call = stringOf(update["toolCallId"]);
    const kind = update["sessionUpdate"];
    if (call === null || (kind !== "tool_call" && kind !== "tool_call_update")) return;
    if (update["status"] === "completed" || update["status"] === "failed") this.#open.delete(call);
    else this.#open.add(call);
  }

  async permission({ sessionId: _, ...params }: Params): Promise<void> {
    const call = stringOf(objectOf(params["toolCall"])?.["toolCallId"]);
    if (call !== null) this.#open.add(call);
    await this.#said(params as AcpMessage, params);
  }

  /** Something that is not part of the conversation, such as the agent's use of the editor's files. */
  async beside(from: "agent" | "client", method: string, params: Params | null): Promise<void> {
    await this.#session.note(BESIDE, { from, method, ...(params ? { params: params as Json } : {}) });
  }

  /** The agent has answered the prompt. */
  async ended(result: unknown, error: unknown): Promise<void> {
    const { turn } = this.#session;
    if (!turn) return;
    const reason = stringOf(objectOf(result)?.["stopReason"]);
    if (error !== undefined)
      await turn.fail(stringOf(objectOf(error)?.["message"]) ?? "the agent answered with an error");
    else if (reason === "cancelled") await turn.abort({ by: "user" });
    else await turn.end();
    this.#open.clear();
  }

  /** The agent or the editor is gone in the middle of a turn. Returns the updates that close the open calls. */
  async interrupted(why: string): Promise<readonly Params[]> {
    const { turn } = this.#session;
    const closing = this.openCalls.map((toolCallId) => ({
      sessionUpdate: "tool_call_update",
      toolCallId,
      status: "failed",
      content: [{ type: "content", content: { type: "text", text: `Interrupted, outcome unknown: ${why}.` } }],
    }));
    this.#open.clear();
    if (!turn) return closing;
    for (const update of closing) await turn.append(update as unknown as AcpMessage);
    await turn.fail(why);
    return closing;
  }

  close(): Promise<void> {
    return this.#session.close();
  }

  async #said(message: AcpMessage, params: Params): Promise<void> {
    const turn: Turn<AcpMessage> | null = this.#session.turn;
    try {
      if (turn) await turn.append(message);
      else await this.beside("agent", "session/update", params);
    } catch (error) {
      // A kind of update that no version of the protocol has had yet.
      if (!isHoldfastError(error, "MESSAGE_UNFIT")) throw error;
      await this.beside("agent", "session/update", params);
    }
  }
}
