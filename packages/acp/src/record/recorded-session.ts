import { type AcpMessage, dialects, isHoldfastError, type Json, type Reading, type Recorder } from "holdfast";
import { mergeChunks } from "./merge-chunks.ts";
import { objectOf, type Params, stringOf } from "./message.ts";

/** Notes of a session: the agent's own id for it, and what was said beside the conversation. */
export const AGENT_SESSION = "acp.agentSession";
const BESIDE = "acp.line";
/** An agent may never end its calls: the oldest are forgotten first. */
const OPEN_CALLS_MAX = 1000;

/**
 * One session of a wrapped agent, in the journal. Each method resolves when what it was given is recorded, so that the
 * caller can pass it on. Nothing here throws for what an agent or an editor says: an update that is no conversation is
 * recorded beside it. The conversation is only in the journal, so a session of any length takes the same memory.
 */
export class RecordedSession {
  /** The id that the editor knows. */
  readonly id: string;
  readonly #recorder: Recorder<AcpMessage>;
  /** The calls that have not ended. */
  readonly #open = new Set<string>();
  #agentSession: string;

  constructor(id: string, recorder: Recorder<AcpMessage>) {
    this.id = id;
    this.#recorder = recorder;
    this.#agentSession = agentSessionIn(recorder.attributes.notes[AGENT_SESSION], id);
  }

  /** The agent's id for it. Another one if the agent has forgotten the session. */
  get agentSession(): string {
    return this.#agentSession;
  }

  get journal(): string {
    return this.#recorder.id;
  }

  get cwd(): string | null {
    return this.#recorder.attributes.cwd ?? null;
  }

  /** Each recorded message, and what was in flight. */
  read(): Promise<Reading<AcpMessage>> {
    return this.#recorder.read();
  }

  /** A prompt has not been answered. */
  get isRunning(): boolean {
    return this.#recorder.turn !== null;
  }

  /** As they were when the session was opened, or later. */
  get notes(): Readonly<Record<string, Json>> {
    return this.#recorder.attributes.notes;
  }

  async note(name: string, value: Json): Promise<void> {
    await this.#recorder.note(name, value);
  }

  get isEmpty(): boolean {
    return this.#recorder.turns === 0;
  }

  /** The conversation as updates, from the journal: what a client is shown when it loads the session. */
  async history(): Promise<readonly Params[]> {
    const { messages, entries } = await this.#recorder.read();
    if (this.#recorder.turn === null) return messages as readonly Params[];
    // The turn goes on: its open calls are shown as open.
    return dialects.acp.arrange(entries, { changedAt: null, next: "model" }) as Params[];
  }

  async movedTo(agentSession: string): Promise<void> {
    await this.#recorder.note(AGENT_SESSION, { session: this.id, agent: agentSession });
    this.#agentSession = agentSession;
    await this.#recorder.setLabels({ [AGENT_SESSION]: agentSession });
  }

  /** One that was moved before lists could show that has no label for it. */
  async addLabel(): Promise<void> {
    const labelled = this.#recorder.attributes.labels[AGENT_SESSION] ?? this.id;
    if (labelled !== this.#agentSession) await this.#recorder.setLabels({ [AGENT_SESSION]: this.#agentSession });
  }

  async prompt({ sessionId: _, ...params }: Params): Promise<void> {
    const message = params as AcpMessage;
    if (this.#recorder.turn === null) await this.#recorder.startTurn(message);
    else await this.#recorder.append(message);
  }

  /** What the agent said in one go. */
  async updates(updates: readonly Params[]): Promise<void> {
    for (const update of updates) this.#follow(update);
    const messages = mergeChunks(updates);
    if (this.#recorder.turn !== null) {
      try {
        await this.#recorder.append(messages as unknown as AcpMessage[]);
        return;
      } catch (error) {
        if (!isHoldfastError(error, "MESSAGE_UNFIT")) throw error;
      }
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
    else this.#opened(call);
  }

  #opened(call: string): void {
    this.#open.add(call);
    if (this.#open.size > OPEN_CALLS_MAX) this.#open.delete(this.#open.values().next().value!);
  }

  async permission({ sessionId: _, ...params }: Params): Promise<void> {
    const call = stringOf(objectOf(params["toolCall"])?.["toolCallId"]);
    if (call !== null) this.#opened(call);
    await this.#said(params as AcpMessage, params);
  }

  /** Something that is not part of the conversation, such as the agent's use of the editor's files. */
  async beside(from: "agent" | "client", method: string, params: Params | null): Promise<void> {
    await this.#recorder.note(BESIDE, { from, method, ...(params ? { params: params as Json } : {}) });
  }

  /** The agent has answered the prompt. Returns the updates that close the calls which it left open. */
  async ended(result: unknown, error: unknown): Promise<readonly Params[]> {
    if (this.#recorder.turn === null) return [];
    const isCancelled = objectOf(result)?.["stopReason"] === "cancelled";
    const last = this.#closing(isCancelled ? "Cancelled." : "The turn ended without a result of this call.");
    if (error !== undefined) {
      const why = stringOf(objectOf(error)?.["message"]) ?? "the agent answered with an error";
      await this.#recorder.endTurn({ outcome: "failed", error: why }, last);
    } else if (isCancelled) await this.#recorder.endTurn({ outcome: "aborted", by: "user" }, last);
    else await this.#recorder.endTurn({ outcome: "completed" }, last);
    this.#open.clear();
    return last as unknown as readonly Params[];
  }

  /** The agent or the editor is gone in the middle of a turn. Returns the updates that close the open calls. */
  async interrupted(why: string): Promise<readonly Params[]> {
    const last = this.#closing(`Interrupted, outcome unknown: ${why}.`);
    if (this.#recorder.turn !== null) await this.#recorder.endTurn({ outcome: "failed", error: why }, last);
    this.#open.clear();
    return last as unknown as readonly Params[];
  }

  close(): Promise<void> {
    return this.#recorder.close();
  }

  /** The updates that end the open calls. */
  #closing(text: string): AcpMessage[] {
    const content = [{ type: "content", content: { type: "text", text } }];
    return [...this.#open].map((toolCallId) => ({
      sessionUpdate: "tool_call_update",
      toolCallId,
      status: "failed",
      content,
    }));
  }

  async #said(message: AcpMessage, params: Params): Promise<void> {
    try {
      if (this.#recorder.turn !== null) await this.#recorder.append(message);
      else await this.beside("agent", "session/update", params);
    } catch (error) {
      // A kind of update that no version of the protocol has had yet.
      if (!isHoldfastError(error, "MESSAGE_UNFIT")) throw error;
      await this.beside("agent", "session/update", params);
    }
  }
}

/** A fork has its source's notes, so the note counts only for the session that it names. */
function agentSessionIn(note: unknown, id: string): string {
  const { session, agent } = objectOf(note) ?? {};
  return session === id ? (stringOf(agent) ?? id) : id;
}
