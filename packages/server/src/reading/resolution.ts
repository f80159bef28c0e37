import type { TimelineEntry } from "../schemas/transcript.ts";
import type { StepBars } from "./step-bars.ts";
import type { TimelineItem } from "./timeline.ts";

type ToolEntry = Extract<TimelineEntry, { kind: "tool" }>;

/** What part of a timeline is asked for, and how finely. */
export interface Window {
  readonly fromMs: number;
  readonly toMs: number;
  /** How many bars of a row can be told apart. */
  readonly buckets: number;
}

/** An answer is at most this long, whatever the session's size. */
export const TIMELINE_BYTES_MAX = 180_000;
/** An entry of a timeline takes at least about this many bytes. */
const ENTRY_BYTES_MIN = 100;

/**
 * The happenings of a window, as they are sent. If there are too many, neighbours of one kind that are shorter than a
 * bucket are merged. Bars are merged with bars of their own kind, and marks with marks of their own, so that no death,
 * stop, resumption or replacement disappears behind another thing.
 */
export function atResolution(
  happenings: readonly TimelineItem[],
  window: Window,
): { readonly entries: readonly TimelineEntry[]; readonly isMerged: boolean } {
  const { fromMs, toMs, buckets } = window;
  const shown = happenings.filter((one) => one.startMs <= toMs && endOf(one) >= fromMs);
  let rows = rowsOf(shown);
  let widthMs = 0;
  if (shown.length > buckets) {
    widthMs = Math.max(1, busyMs(rows, window) / buckets);
    rows = rows.map((row) => mergeRow(row, widthMs));
  }
  for (;;) {
    const count = rows.reduce((sum, row) => sum + row.length, 0);
    if (count * ENTRY_BYTES_MIN <= TIMELINE_BYTES_MAX) {
      const sorted = rows.flat().toSorted((a, b) => a.startMs - b.startMs);
      const entries = sorted.map(wireEntry);
      if (isSmall(entries)) return { entries, isMerged: widthMs > 0 };
      const bare = entries.map(withoutSteps);
      // Nothing is left to merge: one of each kind is sent, whatever its size.
      if (isSmall(bare) || rows.every((row) => row.length <= 1)) return { entries: bare, isMerged: true };
    }
    widthMs = Math.max(1, widthMs * 2);
    // What is merged stays merged, so each step has less to do.
    rows = rows.map((row) => mergeRow(row, widthMs));
  }
}

function isSmall(entries: readonly TimelineEntry[]): boolean {
  return Buffer.byteLength(JSON.stringify(entries)) <= TIMELINE_BYTES_MAX;
}

function withoutSteps(entry: TimelineEntry): TimelineEntry {
  if (entry.kind !== "tool" || !entry.steps) return entry;
  const { steps, moreSteps = 0, ...own } = entry;
  return { ...own, moreSteps: moreSteps + steps.length };
}

/** Neighbours that are drawn as one. */
interface Merged {
  readonly startMs: number;
  endMs: number;
  count: number;
  /** Stands for all of them. */
  gravest: TimelineItem;
}

function single(one: TimelineItem): Merged {
  return { startMs: one.startMs, endMs: endOf(one), count: 1, gravest: one };
}

/** What can be merged with each other, in the order of the starts. */
function rowsOf(happenings: readonly TimelineItem[]): Merged[][] {
  const rows = new Map<string, Merged[]>();
  for (const one of happenings) {
    // What has no end is merged by its start, with its like.
    const name =
      one.kind === "mark" ? one.mark : endOf(one) === Number.POSITIVE_INFINITY ? `open ${one.kind}` : one.kind;
    const row = rows.get(name);
    if (row) row.push(single(one));
    else rows.set(name, [single(one)]);
  }
  return [...rows.values()].map((row) => row.toSorted((a, b) => a.startMs - b.startMs));
}

function mergeRow(row: readonly Merged[], widthMs: number): Merged[] {
  const merged: Merged[] = [];
  for (const one of row) {
    const last = merged.at(-1);
    const reach = one.endMs === Number.POSITIVE_INFINITY ? one.startMs : Math.max(one.endMs, last?.endMs ?? 0);
    if (!last || reach - last.startMs > widthMs) {
      merged.push({ ...one });
      continue;
    }
    last.endMs = Math.max(last.endMs, one.endMs);
    last.count += one.count;
    if (gravityOf(one.gravest) > gravityOf(last.gravest)) last.gravest = one.gravest;
  }
  return merged;
}

const GRAVITY: Readonly<Record<string, number>> = {
  ...{ done: 0, completed: 0, running: 1, waiting: 1, left: 2, "not-run": 2, aborted: 3, failed: 4 },
  ...{ interrupted: 5, unknown: 5 },
};

function gravityOf(one: TimelineItem): number {
  return one.kind === "turn" || one.kind === "tool" ? (GRAVITY[one.outcome] ?? 0) : 0;
}

/** How long anything went on in the window: idle hours between two turns do not count. */
function busyMs(rows: readonly (readonly Merged[])[], { fromMs, toMs }: Window): number {
  const work = rows.filter((row) => row[0]?.gravest.kind === "model" || row[0]?.gravest.kind === "tool");
  let [busy, until] = [0, fromMs];
  for (const { startMs, endMs } of work.flat().toSorted((a, b) => a.startMs - b.startMs)) {
    const [start, end] = [Math.max(startMs, until), Math.min(endMs, toMs)];
    if (end > start && end !== Number.POSITIVE_INFINITY) busy += end - start;
    until = Math.max(until, end);
  }
  return busy;
}

function endOf(one: TimelineItem): number {
  if (one.kind === "mark") return one.startMs;
  return one.endMs ?? one.overMs ?? Number.POSITIVE_INFINITY;
}

function wireEntry({ startMs, endMs, count, gravest }: Merged): TimelineEntry {
  const many = count > 1 ? { count } : {};
  const from = iso(startMs);
  if (gravest.kind === "mark") {
    const { startMs: _at, ...own } = gravest;
    return { ...own, at: from, ...many };
  }
  const { startMs: _start, endMs: ended, overMs: _over, ...own } = gravest;
  const to = count > 1 ? (endMs === Number.POSITIVE_INFINITY ? null : iso(endMs)) : ended === null ? null : iso(ended);
  if (own.kind === "tool") {
    const { steps, unusedSteps, ...tool } = own;
    if (count > 1) return { ...tool, from, to, ...many };
    return {
      ...tool,
      from,
      to,
      ...(steps ? wireSteps(steps, own.outcome) : {}),
      ...(unusedSteps ? { unusedSteps } : {}),
    };
  }
  if (own.kind !== "model") return { ...own, from, to, ...many };
  const { firstMs, ...model } = own;
  return { ...model, from, to, ...(firstMs === undefined || count > 1 ? {} : { first: iso(firstMs) }), ...many };
}

function wireSteps({ bars, more }: StepBars, outcome: ToolEntry["outcome"]): Pick<ToolEntry, "steps" | "moreSteps"> {
  if (bars.length === 0) return {};
  const open = outcome === "running" ? "running" : "unknown";
  const steps = bars.map(({ name, startMs, endMs, isFailed, settled }) => {
    const times = { from: iso(startMs), to: endMs === null ? null : iso(endMs) };
    const ended = isFailed ? "failed" : "done";
    return { name, ...times, outcome: endMs === null ? open : ended, ...(settled ? { settled } : {}) } as const;
  });
  return { steps, ...(more > 0 ? { moreSteps: more } : {}) };
}

function iso(ms: number): string {
  return new Date(ms).toISOString();
}
