import fc from "fast-check";
import { expect, test } from "vitest";
import { type History, type Mark, readTimeline } from "../../../src/state/read-timeline.ts";
import { packLanes } from "../../../src/timeline/lanes.ts";
import {
  type Bar,
  groupMarks,
  layOutDetail,
  layOutTimeline,
  pickBar,
  visibleBars,
} from "../../../src/timeline/layout.ts";
import { ticksFor } from "../../../src/timeline/ticks.ts";
import { makeTimeScale, pan, reveal, zoom } from "../../../src/timeline/time-scale.ts";
import { barWords } from "../../../src/timeline/words.ts";

const HOUR = 3_600_000;
const span = (startMs: number, endMs: number) => ({ startMs, endMs });

test("a long idle gap is folded, and work keeps its scale", () => {
  const scale = makeTimeScale([span(0, 60_000), span(2 * HOUR, 2 * HOUR + 60_000)], 0, 2 * HOUR + 60_000);
  expect(scale.folds).toHaveLength(1);
  expect(scale.folds[0]).toMatchObject({ startMs: 60_000, endMs: 2 * HOUR });
  expect(scale.length).toBeLessThan(130_000);
  expect(scale.at(30_000)).toBe(30_000);
  expect(scale.at(2 * HOUR + 60_000) - scale.at(2 * HOUR)).toBe(60_000);
});

test("a short pause stays as it was", () => {
  const scale = makeTimeScale([span(0, 60_000), span(65_000, 90_000)], 0, 90_000);
  expect(scale.folds).toHaveLength(0);
  expect(scale.length).toBe(90_000);
});

test("a thousand gaps together take at most about a quarter of the axis", () => {
  const spans = Array.from({ length: 1000 }, (_, index) => span(index * HOUR, index * HOUR + 5000));
  const scale = makeTimeScale(spans, 0, 999 * HOUR + 5000);
  const folded = scale.folds.reduce((sum, { from, to }) => sum + (to - from), 0);
  expect(scale.folds).toHaveLength(999);
  expect(folded / scale.length).toBeLessThan(0.26);
});

test("positions are in the order of the times, and lead back to them", () => {
  const spans = fc.array(
    fc.tuple(fc.integer({ min: 0, max: 1e9 }), fc.integer({ min: 0, max: 1e6 })).map(([at, ms]) => span(at, at + ms)),
    { maxLength: 30 },
  );
  fc.assert(
    fc.property(spans, fc.integer({ min: 0, max: 1e9 }), fc.integer({ min: 0, max: 1e9 }), (given, one, other) => {
      const scale = makeTimeScale(given, 0, 1e9 + 1e6);
      const [early, late] = [Math.min(one, other), Math.max(one, other)];
      expect(scale.at(early)).toBeLessThanOrEqual(scale.at(late) + 1e-6);
      expect(Math.abs(scale.timeAt(scale.at(one)) - one)).toBeLessThan(1);
    }),
  );
});

test("spans that overlap are in different rows; those beyond the last row share it", () => {
  expect(packLanes([span(0, 10), span(5, 15), span(10, 20), span(16, 18)], 4)).toEqual({
    lanes: [0, 1, 0, 1],
    count: 2,
  });
  expect(packLanes([span(0, 10), span(1, 10), span(2, 10), span(3, 10)], 2).lanes).toEqual([0, 1, 1, 1]);
});

test("zooming keeps the place under the pointer, and never leaves the axis", () => {
  const near = zoom({ from: 0, to: 1000 }, 0.5, 250, 1000);
  expect(near).toEqual({ from: 125, to: 625 });
  expect(zoom(near, 10, 250, 1000)).toEqual({ from: 0, to: 1000 });
  expect(pan(near, -500, 1000)).toEqual({ from: 0, to: 500 });
  expect(pan(near, 5000, 1000)).toEqual({ from: 500, to: 1000 });
  expect(reveal(near, 900, 910, 1000)).toEqual({ from: 500, to: 1000 });
  expect(reveal(near, 200, 300, 1000)).toBe(near);
  const closest = zoom({ from: 0, to: 1000 }, 1e-9, 500, 1000);
  expect(closest.to - closest.from).toBe(10);
});

const WHOLE = { cursor: null, turns: 1, lanes: 1, isMerged: false };
const at = (seconds: number): string => new Date(seconds * 1000).toISOString();

test("a tool without a recorded end, and without a process, ends where the process died", () => {
  const history = readTimeline({
    ...WHOLE,
    from: at(0),
    to: at(5000),
    entries: [
      { kind: "turn", turn: 1, from: at(0), to: null, seq: 1, prompt: "go", outcome: "interrupted" },
      { kind: "tool", turn: 1, from: at(10), to: null, seq: 2, call: "a", name: "shell", outcome: "unknown" },
      { kind: "mark", mark: "died", at: at(40), seq: 3, turn: 1, words: "the process died" },
      { kind: "mark", mark: "opened", at: at(4000), seq: 4, turn: 1, words: "opened" },
      { kind: "tool", turn: 1, from: at(4990), to: null, seq: 5, call: "b", name: "shell", outcome: "running" },
    ],
  });
  expect(history.tools.map(({ endMs }) => endMs)).toEqual([40_000, null]);
  expect(history.marks.map(({ kind }) => kind)).toEqual(["died"]);
});

test("a failed turn and a wait are marked", () => {
  const { marks } = readTimeline({
    ...WHOLE,
    from: at(0),
    to: at(9),
    entries: [
      { kind: "turn", turn: 1, from: at(0), to: at(9), seq: 1, prompt: "", outcome: "failed", error: "no credit" },
      { kind: "wait", turn: 1, from: at(3), to: at(5), seq: 2, reason: "permission" },
    ],
  });
  expect(marks.map(({ kind, words }) => [kind, words])).toEqual([
    ["failed", "no credit"],
    ["waiting", "waited for approval"],
  ]);
});

function manyTools(count: number): History {
  return {
    startMs: 0,
    endMs: count * 1000,
    ...{ turnsInAll: 1, lanes: 1, isMerged: false },
    turns: [{ kind: "turn", turn: 1, startMs: 0, endMs: count * 1000, count: 1, text: "go", outcome: "completed" }],
    models: [],
    tools: Array.from({ length: count }, (_, index) => ({
      kind: "tool" as const,
      turn: 1,
      startMs: index * 1000,
      endMs: index * 1000 + 900,
      count: 1,
      call: `call-${index}`,
      name: "read",
      about: "",
      outcome: "done" as const,
      child: null,
      steps: [],
      moreSteps: 0,
      unusedSteps: "",
    })),
    marks: [],
  };
}

test("of a hundred thousand bars, the visible ones and the one under the pointer are found without a look at all", () => {
  const { rows, scale } = layOutTimeline(manyTools(100_000), 0);
  const view = { from: scale.at(50_000_000), to: scale.at(50_010_000) };
  expect(visibleBars(rows[2]!, view).length).toBeLessThan(14);
  const found = pickBar(rows[2], scale.at(50_003_300), 0);
  expect(found?.span).toMatchObject({ call: "call-50003" });
  expect(pickBar(rows[2], scale.at(50_003_915), 20)?.span).toMatchObject({ call: "call-50003" });
  expect(pickBar(rows[2], scale.at(50_003_915), 10)).toBeNull();
  expect(pickBar(undefined, 0, 10)).toBeNull();
});

test("the bars of a part are drawn on the axis of the whole", () => {
  const merged = manyTools(1);
  const whole = layOutTimeline({ ...merged, startMs: 0, endMs: 100_000, lanes: 3, isMerged: true }, 0);
  const detail = layOutDetail(whole, manyTools(20));
  expect(detail.scale).toBe(whole.scale);
  expect(detail.rows).toHaveLength(whole.rows.length);
  expect(detail.rows[2]).toHaveLength(20);
});

test("a bar that stands for many says so, and names the gravest outcome", () => {
  const { rows } = layOutTimeline(manyTools(2), 0);
  const [bar] = rows[2]!;
  const many = { ...bar!, span: { ...bar!.span, count: 1234, outcome: "unknown" } } as Bar;
  expect(barWords(many, 0)).toEqual({
    title: "1,234 tool calls",
    detail: "in 900 ms · at least one outcome unknown · zoom in to see each",
  });
});

test("marks that are too close are one, named after the gravest", () => {
  const mark = (kind: Mark["kind"], atMs: number) => ({ mark: { kind, atMs, turn: 1, words: "", count: 1 }, at: atMs });
  const groups = groupMarks([mark("resumed", 10), mark("died", 12), mark("stopped", 90)], { from: 0, to: 100 }, 5);
  expect(groups.map(({ worst, marks }) => [worst.kind, marks.length])).toEqual([
    ["died", 2],
    ["stopped", 1],
  ]);
});

test("the axis has round times, none inside a fold", () => {
  const scale = makeTimeScale([span(0, 120_000), span(2 * HOUR, 2 * HOUR + 120_000)], 0, 2 * HOUR + 120_000);
  const ticks = ticksFor(scale, { from: 0, to: scale.length }, 10, 0);
  expect(ticks.length).toBeGreaterThan(5);
  expect(ticks.length).toBeLessThan(16);
  expect(ticks[0]!.label).toBe("00:00:00");
  for (const { at: place } of ticks) expect(scale.folds.some(({ from, to }) => place > from && place < to)).toBe(false);
});

test("an empty session has a timeline too", () => {
  const history = readTimeline({ ...WHOLE, from: null, to: null, entries: [] });
  const layout = layOutTimeline(history, 1000);
  expect(layout.rows.flat()).toEqual([]);
  expect(layout.scale.length).toBe(1);
});
