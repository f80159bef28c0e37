import { cutOffWords, type JournalRecord } from "holdfast";
import { cursorOf, endedAs, HANDED_OVER, unusedWords } from "holdfast/internal";
import type { SaidShown } from "../contract/served-host.ts";
import type { TimelineEntry } from "../schemas/transcript.ts";
import { callSubject } from "./call-subject.ts";
import { shorten } from "./shorten.ts";
import { StepBars } from "./step-bars.ts";

/** The members of a wire entry that have no times, and times as milliseconds since 1970. */
type Timed<K extends TimelineEntry["kind"], Times extends object> = Omit<
  Extract<TimelineEntry, { kind: K }>,
  "from" | "to" | "at" | "first" | "count"
> &
  Times;
type Span = {
  readonly startMs: number;
  /** The recorded end. */
  endMs: number | null;
  /** Without a recorded end: when it was over at the latest, because its process was. */
  overMs: number | null;
};
type Turn = Timed<"turn", Span>;
type Model = Timed<"model", Span & { firstMs?: number }>;
type Tool = Omit<Timed<"tool", Span>, "steps" | "moreSteps"> & { steps?: StepBars };
type Wait = Timed<"wait", Span>;
type Mark = Timed<"mark", { readonly startMs: number }>;
/** What happened when. */
export type TimelineItem = Turn | Model | Tool | Wait | Mark;

/** A conversation that another one took the place of. */
export interface EarlierConversation {
  /** Its last record. */
  readonly until: number;
  readonly fromMs: number;
  readonly toMs: number;
  readonly reason: string;
  readonly messages: number;
}

interface Place {
  readonly seq: number;
  readonly ms: number;
  readonly cursor: string;
}

/** A call that was recorded, and of which nothing else is known yet. */
interface UnstartedCall {
  readonly call: string;
  readonly name: string;
  readonly about: string;
  readonly turn: number;
  readonly seq: number;
  readonly ms: number;
}

const TEXT_CHARACTERS_MAX = 200;
const NAMES_MAX = 4;

/**
 * Folds the records of a session, over all its epochs, into what happened when. A model call has no record of its own
 * start: it begins where the model could be asked (the prompt, the last result, a resume) or with the first streamed
 * text, whichever is later known.
 */
export class TimelineFold {
  readonly #happenings: TimelineItem[] = [];
  readonly #replaced: EarlierConversation[] = [];
  readonly #read: (message: unknown, dialect: string) => SaidShown;
  readonly #tools = new Map<string, Tool>();
  /** Tools that have ended before their steps, as with `Promise.all`. */
  readonly #outlived = new Map<string, Tool>();
  readonly #recorded = new Map<string, UnstartedCall>();
  /** Tools that started before their call was recorded. */
  readonly #early = new Set<string>();
  #turn: Turn | null = null;
  #model: Model | null = null;
  #wait: Wait | null = null;
  /** Since when the model may have been asked. */
  #askedAt: { readonly ms: number; readonly seq: number } | null = null;
  #dialect = "";
  #isOpen = false;
  /** The writer records every start of a tool, so a call without one did not start. */
  #recordsStarts = false;
  #first: Place | null = null;
  #last: Place | null = null;
  /** The last record that the writer made by itself. */
  #lastSign: Place | null = null;
  #lanes = 1;
  #steps = 0;
  #turns = 0;
  #epoch: { readonly fromMs: number; readonly messages: number } = { fromMs: 0, messages: 0 };

  constructor(read: (message: unknown, dialect: string) => SaidShown) {
    this.#read = read;
  }

  get first(): Place | null {
    return this.#first;
  }

  get last(): Place | null {
    return this.#last;
  }

  /** How many tools ran at the same time, at most. */
  get lanes(): number {
    return this.#lanes;
  }

  get turns(): number {
    return this.#turns;
  }

  /** How much there is to keep in memory. */
  get size(): number {
    return this.#happenings.length + this.#steps;
  }

  /** The conversations before the current one, oldest first. */
  get replaced(): readonly EarlierConversation[] {
    return this.#replaced;
  }

  /** `cursor`: of a record that comes without its checksum. */
  add(record: JournalRecord, cursor: string = cursorOf(record)): void {
    const { seq, kind } = record;
    const parsed = Date.parse(record.at);
    const ms = Number.isNaN(parsed) ? (this.#last?.ms ?? 0) : parsed;
    const place = { seq, ms, cursor };
    this.#first ??= place;
    if (kind === "session" || kind === "opened") this.#dialect = str(record, "dialect") || this.#dialect;
    switch (kind) {
      case "opened":
        if (this.#isOpen) this.#died();
        this.#outlived.clear();
        this.#isOpen = true;
        this.#recordsStarts = record["intents"] === true;
        if (seq > 2) this.#mark("opened", place, "opened by a process");
        break;
      case "closed":
        this.#isOpen = false;
        if (this.#turn?.outcome === "running") this.#notStarted(place);
        this.#mark("closed", place, "closed");
        break;
      case "turn.started":
        this.#startTurn(record, ms);
        break;
      case "turn.resumed":
        this.#endWait(ms);
        if (this.#turn) this.#turn.outcome = "running";
        this.#mark("resumed", place, `turn ${num(record, "turn")} was resumed`);
        this.#askedAt = { ms, seq };
        break;
      case "turn.suspended":
        this.#suspend(record, ms);
        break;
      case "turn.ended":
        this.#endTurn(record, place);
        break;
      case "draft":
        if (record["discarded"] !== undefined) this.#endModel(ms, null);
        else this.#startModel(record, ms);
        break;
      case "message":
        this.#message(record, ms);
        break;
      case "tool.started":
        this.#startTool(record, ms);
        break;
      case "tool.ended":
        this.#endTool(record, ms);
        break;
      case "step.started":
      case "step.ended":
        this.#step(record, ms);
        break;
      case "signal":
        this.#mark("signal", place, `the process was told to end (${str(record, "signal")})`);
        break;
      case "repair":
        this.#mark("repaired", place, "what was interrupted was closed, and the model told");
        break;
      case "epoch":
        this.#replace(record, place);
        break;
      default:
        break;
    }
    this.#last = place;
    // The next writer begins a segment before it says that it opened the session.
    if (kind !== "segment") this.#lastSign = place;
  }

  /** Everything so far. `isRunning`: a writer has the session open now. Changes nothing, so that records can follow. */
  happenings(isRunning: boolean): readonly TimelineItem[] {
    const hasDied = this.#isOpen && !isRunning;
    const turn = this.#turn;
    if (this.#tools.size === 0 && turn?.outcome !== "running" && !hasDied) return this.#happenings;
    const ended = hasDied ? this.#lastSign : null;
    const now = new Map<TimelineItem, TimelineItem>();
    for (const tool of this.#tools.values())
      now.set(tool, { ...tool, outcome: isRunning ? "running" : "unknown", overMs: ended?.ms ?? null });
    if (turn?.outcome === "running" && !isRunning) now.set(turn, { ...turn, outcome: "interrupted" });
    if (ended && this.#model) now.set(this.#model, { ...this.#model, endMs: ended.ms });
    const all = this.#happenings.map((one) => now.get(one) ?? one);
    if (ended) all.push(this.#markOf("died", ended, DIED), ...this.#neverStarted(ended));
    return all;
  }

  #replace(record: JournalRecord, place: Place): void {
    const reason = str(record, "reason");
    const { fromMs, messages } = this.#epoch;
    this.#epoch = { fromMs: place.ms, messages: 0 };
    // A fork begins with the conversation of its source.
    if (reason === "fork") return;
    // Nothing was said in it: it began with the session.
    const beganMs = fromMs === 0 ? this.#first!.ms : fromMs;
    this.#replaced.push({ until: place.seq - 1, fromMs: beganMs, toMs: place.ms, reason, messages });
    this.#mark("replaced", place, replacedWords(reason));
  }

  #startTurn(record: JournalRecord, ms: number): void {
    const { seq } = record;
    this.#endWait(ms);
    this.#endModel(ms, null);
    if (this.#turn && this.#turn.endMs === null) {
      this.#turn.endMs = ms;
      if (this.#turn.outcome === "running") this.#turn.outcome = "interrupted";
    }
    const times = { startMs: ms, endMs: null, overMs: null };
    this.#turn = { kind: "turn", turn: num(record, "turn"), ...times, seq, prompt: "", outcome: "running" };
    this.#happenings.push(this.#turn);
    this.#turns++;
    this.#askedAt = { ms, seq };
    this.#recorded.clear();
    this.#early.clear();
  }

  #suspend(record: JournalRecord, ms: number): void {
    this.#endModel(ms, null);
    if (this.#turn) this.#turn.outcome = "waiting";
    const reason = str(record, "reason");
    // The next process continues it: nobody waited.
    if (record["until"] !== undefined && reason === HANDED_OVER) return;
    const times = { startMs: ms, endMs: null, overMs: null };
    this.#wait = { kind: "wait", turn: num(record, "turn"), ...times, seq: record.seq, reason };
    this.#happenings.push(this.#wait);
  }

  #endTurn(record: JournalRecord, place: Place): void {
    const { ms } = place;
    this.#endWait(ms);
    this.#endModel(ms, null);
    const outcome = str(record, "outcome");
    const by = str(record, "by");
    if (outcome === "aborted") this.#mark("stopped", place, cutOffWords({ kind: "aborted", by }));
    if (outcome !== "completed") this.#notStarted(place);
    this.#recorded.clear();
    if (!this.#turn || this.#turn.turn !== num(record, "turn")) return;
    this.#turn.endMs = ms;
    const isCut = outcome === "aborted" && endedAs(outcome, by) === "cut";
    this.#turn.outcome = isCut ? "interrupted" : isOutcome(outcome) ? outcome : "completed";
    if (by) this.#turn.by = by;
    if (str(record, "error")) this.#turn.error = str(record, "error");
  }

  #startModel(record: JournalRecord, ms: number): void {
    if (this.#model) return;
    const asked = this.#askedAt ?? { ms, seq: record.seq };
    const times = { startMs: asked.ms, endMs: null, overMs: null };
    this.#model = { kind: "model", turn: num(record, "turn"), ...times, seq: asked.seq, message: null };
    if (record.kind === "draft") this.#model.firstMs = ms;
    this.#happenings.push(this.#model);
  }

  #message(record: JournalRecord, ms: number): void {
    this.#epoch = { ...this.#epoch, messages: this.#epoch.messages + 1 };
    if (this.#epoch.fromMs === 0) this.#epoch = { ...this.#epoch, fromMs: ms };
    if (record["carried"] === true) return;
    const { seq } = record;
    const { role, text, calls, answers } = this.#read(record["message"], this.#dialect);
    const turn = num(record, "turn");
    for (const { call, failed } of answers) this.#answer(brief(call), failed, ms);
    if (role === "assistant") {
      for (const { id, name, input } of calls) {
        const call = brief(id);
        const recorded = { call, name: brief(name), about: callSubject(input), turn, seq, ms };
        if (!this.#early.delete(call)) this.#recorded.set(call, recorded);
      }
      this.#startModel(record, ms);
      this.#endModel(ms, str(record, "id"), str(record, "model"));
    } else {
      if (this.#turn && this.#turn.prompt === "" && role === "user") this.#turn.prompt = brief(text);
      this.#askedAt = { ms, seq };
    }
  }

  /** A result that came as a message, without `tool.ended`. */
  #answer(call: string, failed: boolean, ms: number): void {
    this.#recorded.delete(call);
    for (const [key, tool] of this.#tools) {
      if (tool.call !== call) continue;
      tool.endMs = ms;
      tool.outcome = failed ? "failed" : "done";
      this.#forget(key, tool);
    }
  }

  #startTool(record: JournalRecord, ms: number): void {
    const times = { startMs: ms, endMs: null, overMs: null };
    const call = str(record, "call");
    const tool: Tool = {
      kind: "tool",
      turn: num(record, "turn"),
      ...times,
      seq: record.seq,
      call,
      name: str(record, "name"),
      outcome: "unknown",
    };
    const child = str(record, "child");
    if (child) tool.child = child;
    const recorded = this.#recorded.get(call);
    if (!this.#recorded.delete(call)) this.#early.add(call);
    const about = callSubject(record["input"]) || recorded?.about;
    if (about) tool.about = about;
    const key = placeOf(str(record, "message"), call);
    this.#tools.set(key, tool);
    this.#outlived.delete(key);
    this.#lanes = Math.max(this.#lanes, this.#tools.size);
    this.#happenings.push(tool);
  }

  #endTool(record: JournalRecord, ms: number): void {
    const key = this.#keyOf(record);
    const tool = this.#tools.get(key);
    this.#askedAt = { ms, seq: record.seq };
    this.#recorded.delete(str(record, "call"));
    if (!tool) return;
    tool.endMs = ms;
    tool.outcome = record["error"] === undefined ? "done" : "failed";
    const unused = record["unusedSteps"];
    const names = Array.isArray(unused) ? unused.filter((name) => typeof name === "string") : [];
    if (names.length > 0) tool.unusedSteps = unusedWords(tool.name, names);
    this.#forget(key, tool);
  }

  /** Of the started call that a record is about. It may have started before the message that makes it. */
  #keyOf(record: JournalRecord): string {
    const call = str(record, "call");
    const key = placeOf(str(record, "message"), call);
    return this.#tools.has(key) || this.#outlived.has(key) ? key : placeOf("", call);
  }

  #forget(key: string, tool: Tool): void {
    this.#tools.delete(key);
    if (tool.steps?.bars.some(({ endMs }) => endMs === null)) this.#outlived.set(key, tool);
  }

  #step(record: JournalRecord, ms: number): void {
    const name = str(record, "step");
    // An epoch repeats what is known.
    if (record["carried"] === true || name === "") return;
    const key = this.#keyOf(record);
    const tool = this.#tools.get(key) ?? this.#outlived.get(key);
    if (!tool) return;
    tool.steps ??= new StepBars();
    const before = tool.steps.bars.length;
    if (record.kind === "step.started") tool.steps.start(name, ms);
    else tool.steps.end(name, ms, record["error"] !== undefined, str(record, "source"));
    this.#steps += tool.steps.bars.length - before;
  }

  #endModel(ms: number, message: string | null, model = ""): void {
    if (!this.#model) return;
    this.#model.endMs = ms;
    this.#model.message = message;
    if (model !== "") this.#model.model = model;
    this.#model = null;
  }

  #endWait(ms: number): void {
    if (this.#wait) this.#wait.endMs = ms;
    this.#wait = null;
  }

  /** The writer ended without a word: its last record is the last sign of life. */
  #died(): void {
    const place = this.#lastSign;
    if (!place) return;
    this.#mark("died", place, DIED);
    this.#notStarted(place);
    this.#endModel(place.ms, null);
    if (this.#turn?.outcome === "running") this.#turn.outcome = "interrupted";
    for (const tool of this.#tools.values()) {
      tool.outcome = "unknown";
      tool.overMs = place.ms;
    }
    this.#tools.clear();
    this.#isOpen = false;
  }

  #notStarted(place: Place): void {
    const calls = this.#neverStarted(place);
    this.#happenings.push(...calls);
    this.#lanes = Math.max(this.#lanes, this.#tools.size + Math.max(0, calls.length - 1));
    this.#recorded.clear();
  }

  /** The calls that had not started when the work ended here, and a mark that says so. */
  #neverStarted(place: Place): TimelineItem[] {
    // A call that waits for a person is not lost.
    if (!this.#recordsStarts || this.#wait !== null || this.#recorded.size === 0) return [];
    const calls = [...this.#recorded.values()];
    const bars = calls.map(({ call, name, about, turn, seq, ms }): Tool => {
      const times = { startMs: ms, endMs: place.ms, overMs: null };
      return { kind: "tool", turn, ...times, seq, call, name, outcome: "not-run", ...(about ? { about } : {}) };
    });
    return [...bars, this.#markOf("not-run", place, notRunWords(calls.map(({ name }) => name)))];
  }

  #mark(mark: Mark["mark"], place: Place, words: string): void {
    this.#happenings.push(this.#markOf(mark, place, words));
  }

  #markOf(mark: Mark["mark"], { ms, seq }: Place, words: string): Mark {
    return { kind: "mark", mark, startMs: ms, seq, turn: this.#turn?.turn ?? null, words };
  }
}

const DIED = "the process died";

function notRunWords(names: readonly string[]): string {
  const shown = names.slice(0, NAMES_MAX).join(", ");
  const more = names.length > NAMES_MAX ? ` and ${names.length - NAMES_MAX} more` : "";
  return `${names.length === 1 ? "a tool call" : `${names.length} tool calls`} had not started: ${shown}${more}`;
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

function placeOf(message: string, call: string): string {
  return `${message} ${call}`;
}

function isOutcome(outcome: string): outcome is "completed" | "aborted" | "failed" | "left" {
  return outcome === "completed" || outcome === "aborted" || outcome === "failed" || outcome === "left";
}

function str(record: JournalRecord, name: string): string {
  const value = record[name];
  return typeof value === "string" ? brief(value) : "";
}

/** Whatever a model or an agent wrote, a timeline shows little of it. */
function brief(text: string): string {
  return shorten(text, TEXT_CHARACTERS_MAX);
}

function num(record: JournalRecord, name: string): number {
  const value = record[name];
  return typeof value === "number" && Number.isSafeInteger(value) ? value : 0;
}
