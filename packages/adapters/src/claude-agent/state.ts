import { type AnthropicMessage, dialects, type JournalRecord, type Json } from "holdfast";
import type { NewRecord } from "holdfast/store";
import type { FoldedState } from "../state-journal/state-journal.ts";

/** A call whose start a hook recorded. */
export interface StartedCall {
  readonly id: string;
  readonly name: string;
  readonly input: Json;
  readonly turn: number;
  /** Null until it has ended. */
  ended: { readonly value: Json } | { readonly error: string } | null;
}

/** A transcript: what its records fold into. The same function folds what was read and what is being written. */
export class TranscriptState implements FoldedState {
  readonly #uuids = new Set<string>();
  readonly #places = new Map<string, { readonly message: string; readonly index: number }>();
  readonly #started = new Map<string, StartedCall>();
  readonly #answered = new Set<string>();
  /** Prompts that a hook recorded, by their ids. */
  readonly #prompts = new Map<string, { readonly text: string; isMirrored: boolean; isAnswered: boolean }>();
  readonly #turn = { turns: 0, status: "ended" as "open" | "ended", resumes: 0 };
  /** Calls that the model was told about, but has not answered since. */
  #telling: readonly string[] = [];
  /** The same, once it has answered. */
  readonly #told = new Set<string>();
  #answer: { readonly response: string; readonly step: string } | null = null;
  cwd: string | undefined;
  hasEntries = false;
  hasOwnTitle = false;
  end: { readonly seq: number; readonly at: string } | null = null;

  read(record: JournalRecord): void {
    this.add(record);
    this.end = { seq: record.seq, at: record.at };
  }

  add(record: NewRecord | JournalRecord): void {
    const { kind } = record;
    const entry = record["entry"] as Readonly<Record<string, Json>> | undefined;
    if (entry) this.#addEntry(entry, kind);
    if (kind === "message") this.#addMessage(record);
    else if (kind === "tool.started") this.#start(record);
    else if (kind === "tool.ended") this.#endCall(record);
    else if (kind === "claude.told") this.#telling = record["calls"] as string[];
    else if (kind === "session") this.#addAttributes(record);
    else if (kind.startsWith("turn.")) this.#turned(record);
  }

  get turn(): { readonly turns: number; readonly status: "open" | "ended"; readonly resumes: number } {
    return this.#turn;
  }

  hasUuid(uuid: unknown): boolean {
    return typeof uuid === "string" && this.#uuids.has(uuid);
  }

  /** The message that makes the call, if it is recorded. */
  placeOf(call: string): { readonly message: string; readonly index: number } | null {
    return this.#places.get(call) ?? null;
  }

  started(call: string): StartedCall | null {
    return this.#started.get(call) ?? null;
  }

  /** Started, and no result of it is in the transcript. */
  get interruptedCalls(): StartedCall[] {
    return [...this.#started.values()];
  }

  isAnswered(call: string): boolean {
    return this.#answered.has(call);
  }

  /** A prompt that a hook recorded. */
  prompt(id: unknown): { readonly isMirrored: boolean } | null {
    return typeof id === "string" ? (this.#prompts.get(id) ?? null) : null;
  }

  /** Prompts that a hook recorded, and that the transcript does not have. */
  get promptsNotMirrored(): string[] {
    const open = [...this.#prompts.values()].filter(({ isMirrored, isAnswered }) => !isMirrored && !isAnswered);
    return open.map(({ text }) => text);
  }

  /** Whether the model was told about this call of a sub-agent, and has answered. */
  wasTold(call: string): boolean {
    return this.#told.has(call);
  }

  /** The step of a response of which a part is recorded. */
  stepOf(response: string): string | null {
    return this.#answer?.response === response ? this.#answer.step : null;
  }

  #addEntry({ type, uuid, promptId, isMeta }: Readonly<Record<string, Json>>, kind: string): void {
    this.hasEntries = true;
    if (typeof uuid === "string") this.#uuids.add(uuid);
    const isPrompt = kind === "claude.entry" && type === "user" && isMeta !== true;
    const prompt = isPrompt && typeof promptId === "string" ? this.#prompts.get(promptId) : undefined;
    if (prompt) prompt.isMirrored = true;
  }

  #addMessage(record: NewRecord | JournalRecord): void {
    const { id, step, message, entry, prompt } = record as unknown as {
      readonly id: string;
      readonly step: string;
      readonly message: AnthropicMessage;
      readonly entry?: { readonly message?: { readonly id?: unknown } };
      readonly prompt?: string;
    };
    if (prompt !== undefined) {
      this.#prompts.set(prompt, { text: dialects.anthropic.text(message), isMirrored: false, isAnswered: false });
    }
    for (const [index, call] of dialects.anthropic.calls(message).entries())
      this.#places.set(call.id, { message: id, index });
    for (const { call } of dialects.anthropic.results(message)) {
      this.#answered.add(call);
      this.#started.delete(call);
    }
    if (message.role !== "assistant") return;
    for (const call of this.#telling) {
      this.#started.delete(call);
      this.#told.add(call);
    }
    this.#telling = [];
    for (const one of this.#prompts.values()) one.isAnswered = true;
    const response = entry?.message?.id;
    this.#answer = typeof response === "string" ? { response, step } : null;
  }

  #start(record: NewRecord | JournalRecord): void {
    const {
      call,
      name,
      input = null,
      turn,
    } = record as unknown as {
      readonly call: string;
      readonly name: string;
      readonly input?: Json;
      readonly turn: number;
    };
    this.#started.set(call, { id: call, name, input, turn, ended: null });
  }

  #endCall(record: NewRecord | JournalRecord): void {
    const found = this.#started.get(record["call"] as string);
    if (!found) return;
    const { error, value = null } = record as { readonly error?: string; readonly value?: Json };
    found.ended = error === undefined ? { value } : { error };
  }

  #addAttributes(record: NewRecord | JournalRecord): void {
    if (typeof record["cwd"] === "string") this.cwd = record["cwd"];
    if (record["own"] === true) this.hasOwnTitle = true;
  }

  #turned(record: NewRecord | JournalRecord): void {
    const turn = this.#turn;
    if (record.kind === "turn.started") {
      turn.turns = record["turn"] as number;
      turn.resumes = 0;
    }
    if (record.kind === "turn.resumed") turn.resumes = record["n"] as number;
    turn.status = record.kind === "turn.ended" ? "ended" : "open";
  }
}
