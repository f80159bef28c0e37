import type { JournalRecord } from "holdfast";
import type { z } from "zod";
import type { timelineEntry } from "../schemas/transcript.ts";

export type TimelineEntry = z.infer<typeof timelineEntry>;
type Turn = Extract<TimelineEntry, { kind: "turn" }>;
type Model = Extract<TimelineEntry, { kind: "model" }>;
type Tool = Extract<TimelineEntry, { kind: "tool" }>;
type Wait = Extract<TimelineEntry, { kind: "wait" }>;
type Mark = Extract<TimelineEntry, { kind: "mark" }>["mark"];

const PROMPT_CHARACTERS_MAX = 200;

/**
 * Folds the records of a session, over all its epochs, into what happened when. A model call has no record of its own
 * start: it begins where the model could be asked (the prompt, the last result, a resume) or with the first streamed
 * text, whichever is later known.
 */
export class TimelineFold {
  readonly entries: TimelineEntry[] = [];
  readonly #textOf: (message: unknown) => string;
  readonly #roleOf: (message: unknown) => string;
  readonly #tools = new Map<string, Tool>();
  #turn: Turn | null = null;
  #model: Model | null = null;
  #wait: Wait | null = null;
  /** Since when the model may have been asked. */
  #askedAt: { readonly at: string; readonly seq: number } | null = null;
  #isOpen = false;
  #last: JournalRecord | null = null;

  constructor(read: { readonly text: (message: unknown) => string; readonly role: (message: unknown) => string }) {
    this.#textOf = read.text;
    this.#roleOf = read.role;
  }

  get last(): JournalRecord | null {
    return this.#last;
  }

  add(record: JournalRecord): void {
    const { at, seq, kind } = record;
    switch (kind) {
      case "opened":
        if (this.#isOpen) this.#died();
        this.#isOpen = true;
        if (seq > 2) this.#mark("opened", record, "opened by a process");
        break;
      case "closed":
        this.#isOpen = false;
        this.#mark("closed", record, "closed");
        break;
      case "turn.started":
        this.#startTurn(record);
        break;
      case "turn.resumed":
        this.#endWait(at);
        if (this.#turn) this.#turn.outcome = "running";
        this.#mark("resumed", record, `turn ${num(record, "turn")} was resumed`);
        this.#askedAt = { at, seq };
        break;
      case "turn.suspended":
        this.#endModel(at, null);
        this.#wait = {
          kind: "wait",
          turn: num(record, "turn"),
          from: at,
          to: null,
          seq,
          reason: str(record, "reason"),
        };
        this.entries.push(this.#wait);
        if (this.#turn) this.#turn.outcome = "waiting";
        break;
      case "turn.ended":
        this.#endTurn(record);
        break;
      case "draft":
        if (record["discarded"] !== undefined) this.#endModel(at, null);
        else this.#startModel(record);
        break;
      case "message":
        this.#message(record);
        break;
      case "tool.started":
        this.#startTool(record);
        break;
      case "tool.ended":
        this.#endTool(record);
        break;
      case "signal":
        this.#mark("signal", record, `the process was told to end (${str(record, "signal")})`);
        break;
      case "repair":
        this.#mark("repaired", record, "what was interrupted was closed, and the model told");
        break;
      case "epoch":
        if (str(record, "reason") !== "fork") this.#mark("replaced", record, replacedWords(str(record, "reason")));
        break;
      default:
        break;
    }
    this.#last = record;
  }

  /** `isRunning`: a writer has the session open now. */
  finish(isRunning: boolean): void {
    if (this.#isOpen && !isRunning) this.#died();
    if (isRunning) for (const tool of this.#tools.values()) tool.outcome = "running";
    else if (this.#turn?.outcome === "running") this.#turn.outcome = "interrupted";
  }

  #startTurn(record: JournalRecord): void {
    const { at, seq } = record;
    this.#endWait(at);
    this.#endModel(at, null);
    if (this.#turn && this.#turn.to === null) {
      this.#turn.to = at;
      if (this.#turn.outcome === "running") this.#turn.outcome = "interrupted";
    }
    this.#turn = { kind: "turn", turn: num(record, "turn"), from: at, to: null, seq, prompt: "", outcome: "running" };
    this.entries.push(this.#turn);
    this.#askedAt = { at, seq };
  }

  #endTurn(record: JournalRecord): void {
    const { at } = record;
    this.#endWait(at);
    this.#endModel(at, null);
    const outcome = str(record, "outcome");
    if (outcome === "aborted") this.#mark("stopped", record, `stopped by ${str(record, "by") || "someone"}`);
    if (!this.#turn || this.#turn.turn !== num(record, "turn")) return;
    this.#turn.to = at;
    this.#turn.outcome = isOutcome(outcome) ? outcome : "completed";
    if (str(record, "by")) this.#turn.by = str(record, "by");
    if (str(record, "error")) this.#turn.error = str(record, "error");
  }

  #startModel(record: JournalRecord): void {
    if (this.#model) return;
    const { at, seq } = this.#askedAt ?? record;
    this.#model = { kind: "model", turn: num(record, "turn"), from: at, to: null, seq, message: null };
    this.entries.push(this.#model);
  }

  #message(record: JournalRecord): void {
    if (record["carried"] === true) return;
    const { at, seq } = record;
    const role = this.#roleOf(record["message"]);
    if (role === "assistant") {
      this.#startModel(record);
      this.#endModel(at, str(record, "id"), str(record, "model"));
    } else {
      if (this.#turn && this.#turn.prompt === "" && role === "user")
        this.#turn.prompt = this.#textOf(record["message"]).slice(0, PROMPT_CHARACTERS_MAX).toWellFormed();
      this.#askedAt = { at, seq };
    }
  }

  #startTool(record: JournalRecord): void {
    const tool: Tool = {
      kind: "tool",
      turn: num(record, "turn"),
      from: record.at,
      to: null,
      seq: record.seq,
      call: str(record, "call"),
      name: str(record, "name"),
      outcome: "unknown",
    };
    const child = str(record, "child");
    if (child) tool.child = child;
    this.#tools.set(`${str(record, "message")} ${tool.call}`, tool);
    this.entries.push(tool);
  }

  #endTool(record: JournalRecord): void {
    const key = `${str(record, "message")} ${str(record, "call")}`;
    const tool = this.#tools.get(key);
    this.#askedAt = { at: record.at, seq: record.seq };
    if (!tool) return;
    tool.to = record.at;
    tool.outcome = record["error"] === undefined ? "done" : "failed";
    this.#tools.delete(key);
  }

  #endModel(at: string, message: string | null, model = ""): void {
    if (!this.#model) return;
    this.#model.to = at;
    this.#model.message = message;
    if (model !== "") this.#model.model = model;
    this.#model = null;
  }

  #endWait(at: string): void {
    if (this.#wait) this.#wait.to = at;
    this.#wait = null;
  }

  /** The writer ended without a word: its last record is the last sign of life. */
  #died(): void {
    if (!this.#last) return;
    this.#mark("died", this.#last, "the process died");
    this.#endModel(this.#last.at, null);
    if (this.#turn?.outcome === "running") this.#turn.outcome = "interrupted";
    for (const tool of this.#tools.values()) tool.outcome = "unknown";
    this.#tools.clear();
    this.#isOpen = false;
  }

  #mark(mark: Mark, { at, seq }: JournalRecord, words: string): void {
    this.entries.push({ kind: "mark", mark, at, seq, turn: this.#turn?.turn ?? null, words });
  }
}

function replacedWords(reason: string): string {
  switch (reason) {
    case "compaction":
      return "the conversation was summarized";
    case "clear":
      return "the conversation was cleared";
    case "rewind":
      return "the conversation was rewound";
    default:
      return "the conversation was replaced";
  }
}

function isOutcome(outcome: string): outcome is "completed" | "aborted" | "failed" | "left" {
  return outcome === "completed" || outcome === "aborted" || outcome === "failed" || outcome === "left";
}

function str(record: JournalRecord, name: string): string {
  const value = record[name];
  return typeof value === "string" ? value : "";
}

function num(record: JournalRecord, name: string): number {
  const value = record[name];
  return typeof value === "number" && Number.isSafeInteger(value) ? value : 0;
}
