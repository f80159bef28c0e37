import { type AcpMessage, dialects, isHoldfastError, type Json, type Reading, type Recorder } from "holdfast";
import { mergeChunks } from "./merge-chunks.ts";
import { objectOf, type Params, stringOf } from "./message.ts";
import { BEFORE, type CallEvidence, NotedCalls } from "./noted-calls.ts";

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
  readonly #noted: NotedCalls | null;
  #agentSession: string;
  /** Where an editor has it open; null while none has. What the journal says is not looked into. */
  folder: string | null = null;

  constructor(id: string, recorder: Recorder<AcpMessage>, evidence: CallEvidence | null = null) {
    this.id = id;
    this.#recorder = recorder;
    const record = async (notes: Json): Promise<void> => {
      // On a full disk, or after the session was closed: then nothing is noted.
      await recorder.note(BEFORE, notes).catch(() => undefined);
    };
    this.#noted = evidence && new NotedCalls(evidence, recorder.attributes.notes[BEFORE], record);
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
    if (this.#recorder.turn === null) {
      await this.#recorder.startTurn(message);
      // Those of an earlier turn: agents use the ids of calls again.
      this.#noted?.clear();
    } else await this.#recorder.append(message);
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
    if (update["status"] === "completed" || update["status"] === "failed") {
      this.#open.delete(call);
      this.#noted?.ended(call);
      return;
    }
    this.#opened(call);
    if (this.folder !== null && kind === "tool_call") this.#noted?.seen(update, this.folder);
  }

  #opened(call: string): void {
    this.#open.add(call);
    if (this.#open.size > OPEN_CALLS_MAX) this.#open.delete(this.#open.values().next().value!);
  }

  async permission({ sessionId: _, ...params }: Params): Promise<void> {
    const asked = objectOf(params["toolCall"]) ?? {};
    const call = stringOf(asked["toolCallId"]);
    if (call !== null) {
      this.#opened(call);
      if (this.folder !== null) this.#noted?.seen(asked, this.folder);
      // The agent waits for the answer: what was looked at by then is from before the call.
      await this.#noted?.settled(call);
    }
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
    const words = isCancelled ? "Cancelled." : "The turn ended without a result of this call.";
    const last = this.#closing(() => words);
    if (error !== undefined) {
      const why = stringOf(objectOf(error)?.["message"]) ?? "the agent answered with an error";
      await this.#recorder.endTurn({ outcome: "failed", error: why }, last);
    } else if (isCancelled) await this.#recorder.endTurn({ outcome: "aborted", by: "user" }, last);
    else await this.#recorder.endTurn({ outcome: "completed" }, last);
    this.#open.clear();
    this.#noted?.clear();
    return last as unknown as readonly Params[];
  }

  /** The agent or the editor is gone in the middle of a turn. Returns the updates that close the open calls. */
  async interrupted(why: string): Promise<readonly Params[]> {
    const since = await this.#changesSince(this.#open);
    const last = this.#closing((call) => {
      const changes = since.get(call);
      return `Interrupted, outcome unknown: ${why}.${changes === undefined ? "" : ` ${sentence(changes)}`}`;
    });
    if (this.#recorder.turn !== null) await this.#recorder.endTurn({ outcome: "failed", error: why }, last);
    this.#open.clear();
    this.#noted?.clear();
    return last as unknown as readonly Params[];
  }

  /** What has changed in the folder since the calls began that a process left open when it died: one line for each. */
  async changesSinceDeath(): Promise<readonly string[]> {
    if (!this.#noted || this.folder === null || this.#recorder.turn !== null) return [];
    const { calls } = await this.#recorder.read();
    const since = await this.#changesSince(calls.map(({ id }) => id));
    const named = new Map(calls.map(({ id, name }) => [id, name]));
    return [...since].map(([call, changes]) => `${named.get(call)}: ${changes}.`);
  }

  async #changesSince(calls: Iterable<string>): Promise<ReadonlyMap<string, string>> {
    if (!this.#noted || this.folder === null) return new Map();
    return this.#noted.changes([...calls], this.folder);
  }

  close(): Promise<void> {
    return this.#recorder.close();
  }

  /** The updates that end the open calls. */
  #closing(words: (call: string) => string): AcpMessage[] {
    return [...this.#open].map((toolCallId) => ({
      sessionUpdate: "tool_call_update",
      toolCallId,
      status: "failed",
      content: [{ type: "content", content: { type: "text", text: words(toolCallId) } }],
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

function sentence(words: string): string {
  return `${words.charAt(0).toUpperCase()}${words.slice(1)}.`;
}
