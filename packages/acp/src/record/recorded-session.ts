import {
  type Account,
  type AcpMessage,
  accountOf,
  type CallFacts,
  isHoldfastError,
  type Json,
  type Reading,
  type Recorder,
} from "holdfast";
import { callWords, HANDED_OVER } from "holdfast/internal";
import { continuationOf } from "./continuation.ts";
import { historyOf, sentence } from "./history.ts";
import { mergeChunks } from "./merge-chunks.ts";
import { objectOf, type Params, stringOf } from "./message.ts";
import { BEFORE, type CallEvidence, NotedCalls } from "./noted-calls.ts";
import { UNAPPROVED, UnapprovedCalls } from "./unapproved-calls.ts";

/** Notes of a session: the agent's own id for it, and what was said beside the conversation. */
export const AGENT_SESSION = "acp.agentSession";
const BESIDE = "acp.line";
/** An agent may never end its calls: the oldest are forgotten first. */
const OPEN_CALLS_MAX = 1000;

interface RecordedReading {
  readonly reading: Reading<AcpMessage>;
  readonly account: Account;
  readonly history: readonly Params[];
}

/**
 * One session of a wrapped agent, in the journal. Each method resolves when what it was given is recorded, so that the
 * caller can pass it on. Nothing here throws for what an agent or an editor says: an update that is no conversation is
 * recorded beside it. The conversation is only in the journal, so a session of any length takes the same memory.
 */
export class RecordedSession {
  /** The id that the editor knows. */
  readonly id: string;
  readonly #recorder: Recorder<AcpMessage>;
  /** The calls that have not ended, and whether they may have begun: they were in progress, or permitted. */
  readonly #open = new Map<string, boolean>();
  readonly #noted: NotedCalls | null;
  readonly #unapproved: UnapprovedCalls;
  #agentSession: string;
  /** Tries of the open turn without progress, and whether a call has ended since the last one began. */
  #tries = 0;
  #hasProgress = false;
  /** Why it could not be recorded any further. */
  failure: Error | null = null;
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
    this.#unapproved = new UnapprovedCalls(recorder.attributes.notes[UNAPPROVED], (calls) =>
      recorder.note(UNAPPROVED, calls),
    );
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

  /** Each recorded message, what is true of the session, and what a client is shown when it loads it. */
  async read(): Promise<RecordedReading> {
    const reading = await this.#recorder.read();
    const facts: Record<string, CallFacts> = { ...this.#unapproved.facts };
    const open = reading.calls.map(({ id }) => id);
    const changes = this.folder === null ? null : await this.#noted?.changes(open, this.folder);
    for (const [call, one] of changes ?? []) facts[call] = { ...facts[call], changes: one };
    const account = accountOf(reading, { isOpenHere: true, policy: { facts } });
    const known = new Map(account.calls.map(({ id, words }) => [id, words]));
    // Of the calls of earlier turns, only that permission was not given is known.
    const words = (id: string): string =>
      known.get(id) ?? callWords(facts[id]?.unapproved ? "awaiting" : "unrecorded", {}, {});
    return { reading, account, history: historyOf(reading.entries, this.isRunning ? null : words) };
  }

  async history(): Promise<readonly Params[]> {
    return (await this.read()).history;
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
      this.#tries = 0;
      // Those of an earlier turn: agents use the ids of calls again.
      this.#noted?.clear();
    } else await this.#recorder.append(message);
  }

  /** What the agent said in one go. */
  async updates(updates: readonly Params[]): Promise<void> {
    for (const update of updates) this.#follow(update);
    await this.#unapproved.forget(updates.flatMap((update) => announcedBy(update) ?? begunBy(update) ?? []));
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
      this.#hasProgress = true;
      return;
    }
    this.#opened(call, begunBy(update) !== null || (kind !== "tool_call" && this.#open.get(call) === true));
    if (this.folder !== null && kind === "tool_call") this.#noted?.seen(update, this.folder);
  }

  #opened(call: string, hasBegun: boolean): void {
    this.#open.set(call, hasBegun);
    if (this.#open.size > OPEN_CALLS_MAX) this.#open.delete(this.#open.keys().next().value!);
  }

  async permission({ sessionId: _, ...params }: Params): Promise<void> {
    const asked = objectOf(params["toolCall"]) ?? {};
    const call = stringOf(asked["toolCallId"]);
    if (call !== null) {
      const hasBegun = this.#open.get(call) === true;
      this.#opened(call, hasBegun);
      // An agent may ask in the middle of a call: again outside of its sandbox, for example.
      if (!hasBegun) await this.#unapproved.asked(call);
      if (this.folder !== null) this.#noted?.seen(asked, this.folder);
      // The agent waits for the answer: what was looked at by then is from before the call.
      await this.#noted?.settled(call);
    }
    await this.#said(params as AcpMessage, params);
  }

  /** The client's answer to a request for permission; null if it gave none. */
  async decided(request: Params, outcome: Params | null, why?: string): Promise<void> {
    const reason = why === undefined ? {} : { reason: why };
    await this.beside("client", "session/request_permission", outcome && { ...outcome, ...reason });
    const permitted = await this.#unapproved.decided(request, outcome);
    if (permitted !== null && this.#open.has(permitted)) this.#opened(permitted, true);
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

  /** Another try of the interrupted turn begins. Throws NOTHING_TO_RESUME. */
  async claim(): Promise<void> {
    this.#tries = await this.#recorder.claimTurn();
    this.#hasProgress = false;
  }

  /**
   * The interrupted turn goes on with what the agent is to be told. Returns that, and the updates that close the calls
   * which the turn left open.
   */
  async resume(): Promise<{ readonly prompt: readonly Params[]; readonly closing: readonly Params[] }> {
    const { reading, account } = await this.read();
    const { text, request } = continuationOf(reading, account);
    const words = new Map(account.calls.map(({ id, words }) => [id, `Interrupted. ${sentence(words)}`]));
    for (const { id, effect } of account.calls) this.#open.set(id, effect !== "none");
    const closing = this.#closing((call) => words.get(call) ?? "Interrupted.");
    const prompt = [{ type: "text", text }];
    await this.#recorder.resumeTurn({ prompt } as AcpMessage, ({ id }) => words.get(id) ?? "Interrupted.");
    this.#open.clear();
    this.#noted?.clear();
    return { prompt: [...prompt, ...request], closing: closing as unknown as readonly Params[] };
  }

  /** The agent died in mid-turn. Records that the turn will be tried again. */
  async pause(reason: string): Promise<void> {
    const attempts = this.#hasProgress ? 0 : this.#tries;
    await this.#recorder.suspendTurn({ reason, until: Date.now(), attempts });
  }

  /** After so many tries without progress, a person has to look at it. */
  async park(reason: string, parked: number): Promise<void> {
    await this.#recorder.suspendTurn({ reason, parked });
  }

  /** A person lets the turn be tried again, if it is parked. */
  async retry(): Promise<void> {
    if ((await this.read()).account.state !== "parked") return;
    await this.#recorder.suspendTurn({ reason: "retry", until: Date.now(), attempts: 0 });
  }

  /**
   * This process ends. Between two calls, the turn goes on with the next process as if nothing had happened. A call
   * that is running is cut off, and so is its turn.
   */
  async handOver(): Promise<void> {
    if (this.#recorder.turn === null) return;
    if (!this.hasRunningCalls) return this.#recorder.suspendTurn({ reason: HANDED_OVER, until: Date.now() });
    await this.#recorder.endTurn({ outcome: "aborted", by: "close" });
    this.#open.clear();
  }

  /** A call has not ended, and does not wait for permission. */
  get hasRunningCalls(): boolean {
    const { facts } = this.#unapproved;
    return [...this.#open.keys()].some((call) => !facts[call]?.unapproved);
  }

  get turns(): number {
    return this.#recorder.turns;
  }

  /** The agent or the editor is gone in the middle of a turn. Returns the updates that close the open calls. */
  async interrupted(why: string): Promise<readonly Params[]> {
    const last = this.#open.size === 0 ? [] : await this.#closingAsIs(why);
    if (this.#recorder.turn !== null) await this.#recorder.endTurn({ outcome: "failed", error: why }, last);
    this.#open.clear();
    this.#noted?.clear();
    return last as unknown as readonly Params[];
  }

  async #closingAsIs(why: string): Promise<AcpMessage[]> {
    const { calls } = (await this.read()).account;
    const known = new Map(calls.map(({ id, words }) => [id, ` ${sentence(words)}`]));
    return this.#closing((call) => `Interrupted: ${why}.${known.get(call) ?? ""}`);
  }

  close(): Promise<void> {
    return this.#recorder.close();
  }

  /** The updates that end the open calls. */
  #closing(words: (call: string) => string): AcpMessage[] {
    return [...this.#open.keys()].map((toolCallId) => ({
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

function announcedBy(update: Params): string | null {
  return update["sessionUpdate"] === "tool_call" ? stringOf(update["toolCallId"]) : null;
}

function begunBy(update: Params): string | null {
  return update["status"] === "in_progress" ? stringOf(update["toolCallId"]) : null;
}

/** A fork has its source's notes, so the note counts only for the session that it names. */
function agentSessionIn(note: unknown, id: string): string {
  const { session, agent } = objectOf(note) ?? {};
  return session === id ? (stringOf(agent) ?? id) : id;
}
