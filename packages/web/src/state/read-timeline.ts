import type { Timeline, TimelineEntry } from "../api/wire.ts";

type WireStep = NonNullable<Extract<TimelineEntry, { kind: "tool" }>["steps"]>[number];

/** A bar of the timeline. Times are milliseconds since 1970. */
export type Span = TurnSpan | ModelSpan | ToolSpan;

interface Common {
  readonly turn: number;
  readonly startMs: number;
  /** Null while it goes on. */
  readonly endMs: number | null;
  /** How many it stands for. */
  readonly count: number;
}

export interface TurnSpan extends Common {
  readonly kind: "turn";
  readonly text: string;
  readonly outcome: Extract<TimelineEntry, { kind: "turn" }>["outcome"];
}

export interface ModelSpan extends Common {
  readonly kind: "model";
  /** When the first word came, if that is known. */
  readonly firstMs: number | null;
  readonly message: string | null;
  readonly model: string | null;
}

export interface ToolSpan extends Common {
  readonly kind: "tool";
  readonly call: string;
  readonly name: string;
  readonly about: string;
  readonly outcome: "done" | "failed" | "unknown" | "running" | "not-run" | "denied" | "waiting";
  readonly child: string | null;
  readonly steps: readonly StepSpan[];
  /** How many steps it has besides. */
  readonly moreSteps: number;
  /** The steps of earlier runs that it did not ask for, in words. */
  readonly unusedSteps: string;
}

/** A step inside a tool. */
export interface StepSpan {
  readonly name: string;
  readonly startMs: number;
  /** Null while it goes on. */
  readonly endMs: number | null;
  readonly outcome: "done" | "failed" | "unknown" | "running";
  /** Where its outcome is known from, in words, if not from the step itself. */
  readonly settled: string;
}

export type MarkKind = "died" | "signal" | "stopped" | "not-run" | "resumed" | "replaced" | "failed" | "waiting";

export interface Mark {
  readonly kind: MarkKind;
  readonly atMs: number;
  readonly turn: number | null;
  /** What happened, for people. */
  readonly words: string;
  /** How many of its kind it stands for. */
  readonly count: number;
}

export interface History {
  readonly startMs: number | null;
  readonly endMs: number | null;
  /** How many turns the whole session has. */
  readonly turnsInAll: number;
  /** How many tools ran at the same time, at most. */
  readonly lanes: number;
  /** Some bars stand for several. */
  readonly isMerged: boolean;
  readonly turns: readonly TurnSpan[];
  readonly models: readonly ModelSpan[];
  readonly tools: readonly ToolSpan[];
  readonly marks: readonly Mark[];
}

/** A part of a timeline in which every bar is shown by itself, as far as that goes. */
export interface Detail {
  readonly fromMs: number;
  readonly toMs: number;
  readonly history: History;
}

/** Not drawn: a process that came or went as it should, and the repair that every resumption begins with. */
const QUIET: readonly string[] = ["opened", "closed", "repaired"];

/** What the server says about a session's past, by kind. */
export function readTimeline({ from, to, turns: turnsInAll, lanes, isMerged, entries }: Timeline): History {
  const [turns, models, tools, marks]: [TurnSpan[], ModelSpan[], ToolSpan[], Mark[]] = [[], [], [], []];
  for (const entry of entries) {
    const { count = 1 } = entry;
    if (entry.kind === "mark") {
      const { mark, at, turn, words } = entry;
      if (!QUIET.includes(mark)) marks.push({ kind: mark as MarkKind, atMs: Date.parse(at), turn, words, count });
      continue;
    }
    const common = {
      turn: entry.turn,
      count,
      startMs: Date.parse(entry.from),
      endMs: entry.to === null ? null : Date.parse(entry.to),
    };
    if (entry.kind === "turn") {
      turns.push({ ...common, kind: "turn", text: entry.prompt, outcome: entry.outcome });
      if (entry.outcome === "failed" && common.endMs !== null)
        marks.push({
          kind: "failed",
          atMs: common.endMs,
          turn: entry.turn,
          words: entry.error ?? "the turn failed",
          count,
        });
    } else if (entry.kind === "model") {
      const { model = null, message } = entry;
      models.push({ ...common, kind: "model", firstMs: timeIn(entry, "first"), message, model });
    } else if (entry.kind === "tool") {
      const { call, name, outcome, child = null, steps = [], moreSteps = 0, unusedSteps = "" } = entry;
      const own = { call, name, about: textIn(entry, "about"), outcome, child };
      tools.push({ ...common, kind: "tool", ...own, steps: steps.map(stepOf), moreSteps, unusedSteps });
    } else
      marks.push({ kind: "waiting", atMs: common.startMs, turn: entry.turn, words: waitWords(entry.reason), count });
  }
  const lastMs = to === null ? 0 : Date.parse(to);
  // What has no recorded end, and does not run, ended with its process at the latest.
  const ended = <T extends TurnSpan | ToolSpan>(span: T): T => {
    if (span.endMs !== null || span.outcome === "running") return span;
    const death = span.kind === "tool" ? marks.find(({ kind, atMs }) => kind === "died" && atMs >= span.startMs) : null;
    return { ...span, endMs: Math.max(span.startMs, death?.atMs ?? lastMs) };
  };
  return {
    startMs: from === null ? null : Date.parse(from),
    endMs: to === null ? null : Date.parse(to),
    turnsInAll,
    lanes,
    isMerged,
    turns: turns.map(ended),
    models,
    tools: tools.map(ended).map((tool) => ({ ...tool, steps: tool.steps.map((step) => endedWith(tool, step)) })),
    marks,
  };
}

function stepOf({ name, from, to, outcome, settled = "" }: WireStep): StepSpan {
  return { name, startMs: Date.parse(from), endMs: to === null ? null : Date.parse(to), outcome, settled };
}

/** What cut its tool off cut the step off. */
function endedWith({ endMs }: ToolSpan, step: StepSpan): StepSpan {
  if (step.endMs !== null || step.outcome === "running" || endMs === null) return step;
  return { ...step, endMs: Math.max(step.startMs, endMs) };
}

function waitWords(reason: string): string {
  return reason === "permission" ? "waited for approval" : `waited: ${reason}`;
}

function textIn(entry: object, member: string): string {
  const value = (entry as Record<string, unknown>)[member];
  return typeof value === "string" ? value : "";
}

function timeIn(entry: object, member: string): number | null {
  const ms = Date.parse(textIn(entry, member));
  return Number.isNaN(ms) ? null : ms;
}
