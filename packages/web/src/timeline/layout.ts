import type { History, Mark, ModelSpan, StepSpan, ToolSpan, TurnSpan } from "../state/read-timeline.ts";
import { packLanes } from "./lanes.ts";
import { lastIndex, makeTimeScale, type TimeScale, type Viewport } from "./time-scale.ts";

export type Bar =
  | { readonly kind: "turn"; readonly span: TurnSpan; readonly from: number; readonly to: number; readonly row: number }
  | {
      readonly kind: "model";
      readonly span: ModelSpan;
      readonly from: number;
      readonly first: number;
      readonly to: number;
      readonly row: number;
    }
  | {
      readonly kind: "tool";
      readonly span: ToolSpan;
      readonly from: number;
      readonly to: number;
      readonly row: number;
      readonly steps: readonly PlacedStep[];
    };

/** A step, inside the bar of its tool. */
export interface PlacedStep {
  readonly outcome: StepSpan["outcome"];
  readonly from: number;
  readonly to: number;
}

export interface PlacedMark {
  readonly mark: Mark;
  readonly at: number;
}

/** Everything that a timeline shows, on an axis with folded gaps. Rows: turns, model calls, then tools. */
export interface TimelineLayout {
  readonly scale: TimeScale;
  /** By row, sorted by `from`. */
  readonly rows: readonly (readonly Bar[])[];
  /** Which rows have tools with steps. */
  readonly withSteps: readonly boolean[];
  readonly marks: readonly PlacedMark[];
}

const TOOL_LANES_MAX = 4;

/** `nowMs`: where bars that are still running end. */
export function layOutTimeline(history: History, nowMs: number): TimelineLayout {
  const isOpen = [...history.turns.slice(-1), ...history.models.slice(-1)].some(({ endMs }) => endMs === null);
  // A session is created before anything happens in it.
  const startMs = history.turns[0]?.startMs ?? history.startMs ?? nowMs;
  const endMs = Math.max(startMs, isOpen ? nowMs : (history.endMs ?? nowMs));
  const spans = [...history.models, ...history.tools].map((span) => closed(span, endMs));
  const instants = [...history.marks.map(({ atMs }) => atMs), ...history.turns.map((turn) => turn.startMs)];
  const scale = makeTimeScale([...spans, ...instants.map((atMs) => ({ startMs: atMs, endMs: atMs }))], startMs, endMs);
  const marks = history.marks.map((mark) => ({ mark, at: scale.at(mark.atMs) })).toSorted((a, b) => a.at - b.at);
  const rows = layOutRows(history, scale, history.lanes);
  return { scale, rows, withSteps: rows.map(hasSteps), marks };
}

/** The bars of a part of the timeline in place of those of the whole, on the same axis, so that nothing jumps. */
export function layOutDetail(layout: TimelineLayout, detail: History): TimelineLayout {
  const rows = layOutRows(detail, layout.scale, layout.rows.length - 2);
  return { ...layout, rows, withSteps: rows.map((row, index) => layout.withSteps[index] || hasSteps(row)) };
}

function hasSteps(row: readonly Bar[]): boolean {
  return row.some((bar) => bar.kind === "tool" && bar.steps.length > 0);
}

function layOutRows(history: History, scale: TimeScale, lanesMin: number): Bar[][] {
  const { endMs } = scale;
  const tools = history.tools.map((span) => closed(span, endMs)).toSorted((a, b) => a.startMs - b.startMs);
  const packed = packLanes(tools, TOOL_LANES_MAX);
  const lanes = Math.max(packed.count, Math.min(lanesMin, TOOL_LANES_MAX));
  const rows: Bar[][] = Array.from({ length: 2 + lanes }, () => []);
  for (const { span, startMs: start, endMs: end } of history.turns.map((turn) => closed(turn, endMs)))
    rows[0]!.push({ kind: "turn", span, from: scale.at(start), to: scale.at(end), row: 0 });
  for (const { span, startMs: start, endMs: end } of history.models.map((model) => closed(model, endMs))) {
    const first = scale.at(Math.min(end, span.firstMs ?? start));
    rows[1]!.push({ kind: "model", span, from: scale.at(start), first, to: scale.at(end), row: 1 });
  }
  for (const [index, { span, startMs: start, endMs: end }] of tools.entries()) {
    const row = 2 + packed.lanes[index]!;
    // A step can go on when its tool has ended.
    const within = (ms: number): number => scale.at(Math.min(Math.max(start, ms), end));
    const steps = span.steps.map(({ outcome, startMs, endMs: ended }) => ({
      ...{ outcome, from: within(startMs), to: within(ended ?? end) },
    }));
    rows[row]!.push({ kind: "tool", span, from: scale.at(start), to: scale.at(end), row, steps });
  }
  for (const row of rows) row.sort((a, b) => a.from - b.from);
  return rows;
}

function closed<T extends { readonly startMs: number; readonly endMs: number | null }>(span: T, endMs: number) {
  return { span, startMs: span.startMs, endMs: Math.max(span.startMs, span.endMs ?? endMs) };
}

/** The bars of a row that the viewport shows. Bars of one row hardly overlap, so a few before the first are enough. */
export function visibleBars(row: readonly Bar[], { from, to }: Viewport): readonly Bar[] {
  let first = lastIndex(row, (bar) => bar.from < from);
  for (let back = 0; back < 8 && first > 0 && row[first - 1]!.to >= from; back++) first -= 1;
  const last = lastIndex(row, (bar) => bar.from <= to);
  return row.slice(Math.max(0, first), last + 1).filter((bar) => bar.to >= from);
}

/** The bar at a position of a row, or the nearest one within `reach`; null if there is none. */
export function pickBar(row: readonly Bar[] | undefined, position: number, reach: number): Bar | null {
  if (!row) return null;
  const index = lastIndex(row, (bar) => bar.from <= position + reach);
  let best: Bar | null = null;
  let bestDistance = reach;
  for (let at = index; at >= 0 && at > index - 64; at--) {
    const bar = row[at]!;
    const distance = position < bar.from ? bar.from - position : position > bar.to ? position - bar.to : 0;
    if (distance === 0) return bar;
    if (distance < bestDistance) [best, bestDistance] = [bar, distance];
  }
  return best;
}

/** Marks that are drawn as one because they are closer than `reach`. The gravest names the group. */
export interface MarkGroup {
  readonly at: number;
  readonly marks: readonly PlacedMark[];
  readonly worst: Mark;
  readonly count: number;
}

const GRAVITY: readonly Mark["kind"][] = [
  ...(["died", "failed", "signal", "stopped", "not-run"] as const),
  ...(["replaced", "waiting", "resumed"] as const),
];

export function groupMarks(marks: readonly PlacedMark[], { from, to }: Viewport, reach: number): MarkGroup[] {
  const groups: PlacedMark[][] = [];
  for (const one of marks) {
    if (one.at < from || one.at > to) continue;
    const last = groups.at(-1);
    if (last && one.at - last[0]!.at < reach) last.push(one);
    else groups.push([one]);
  }
  return groups.map((group) => ({
    at: group[0]!.at,
    marks: group,
    count: group.reduce((sum, { mark }) => sum + mark.count, 0),
    worst: group.map(({ mark }) => mark).toSorted((a, b) => GRAVITY.indexOf(a.kind) - GRAVITY.indexOf(b.kind))[0]!,
  }));
}
